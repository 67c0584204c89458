// The effect of a commit: entries without a gap, unchanged, in the store's time.

import assert from 'node:assert/strict'
import { isHoldfastError } from '../../../core/errors/error.ts'
import type { Draft } from '../../../core/model/entry.ts'
import { mostBytes, mostEntries } from '../../../core/model/transition.ts'
import { atOnce, draftOf, succeeded } from '../bench.ts'
import type { ContractCase } from '../contract-case.ts'
import { ending, everyKind, oddPayloads, step } from '../drafts.ts'

export const commitCases: readonly ContractCase[] = [
  {
    name: 'a checkpoint appends without a gap, in store time, keeps the lease and forgives crashes',
    async run({ clock, start, take, commit, run, journal, claim }) {
      const { id, createdAt } = await start()
      const held = await take(id, 'me')
      const times = [createdAt]
      for (const seq of [2, 3, 4]) {
        await clock.advance(10)
        times.push(clock.now())
        const answer = await commit(held, { due: { at: null, afterMs: 1 } })
        assert.deepEqual(answer, {
          outcome: 'committed',
          seq,
          at: clock.now(),
          inbox: 0,
          released: false,
          controlRequest: null,
        })
      }
      const entries = await journal(id)
      assert.deepEqual(
        entries.map(({ seq, at }) => [seq, at]),
        times.map((at, index) => [index + 1, at]),
      )
      const row = await run(id)
      assert.deepEqual(
        [row.status, row.readiness, row.session, row.token, row.crashes, row.seq, row.updatedAt, row.due],
        ['running', 'leased', 'me', 1, 0, 4, clock.now(), null],
      )
      assert.deepEqual((await claim()).runs, [])
    },
  },
  {
    name: 'many entries of one transition are appended together, and its id stands on the first only',
    async run({ clock, hold, transition, send, journal }) {
      const held = await hold()
      const append = Array.from({ length: 300 }, (_, index) => step(`item#${index + 1}`, String(index)))
      const given = transition(held, { append })
      assert.equal(succeeded(await send(given)).seq, 301)
      const entries = (await journal(held.runId)).slice(1)
      assert.deepEqual(entries.map(draftOf), append)
      assert.deepEqual(
        entries.map(({ seq, at, transition: id }) => [seq, at, id]),
        append.map((_, index) => [index + 2, clock.now(), index === 0 ? given.id : null]),
      )
    },
  },
  {
    name: 'every kind of entry comes back as it was given, with its meta',
    async run({ hold, commit, journal }) {
      const held = await hold()
      await commit(held, { append: everyKind })
      assert.deepEqual((await journal(held.runId)).slice(1).map(draftOf), everyKind)
    },
  },
  {
    name: 'odd and long payloads and names come back to the letter',
    async run({ start, hold, commit, journal, deliver, message, mailbox }) {
      const held = await hold()
      const append = oddPayloads.map((data): Draft => step(`eu/größe 'x' "y" \\z 👍 ${data.slice(0, 40)}`, data))
      await commit(held, { append })
      assert.deepEqual((await journal(held.runId)).slice(1).map(draftOf), append)
      for (const data of oddPayloads) {
        const first = { kind: 'started', name: null, meta: null, data } as const
        assert.deepEqual((await journal((await start({ first })).id)).map(draftOf), [first])
        await deliver(message(held.runId, { data, name: data.slice(0, 40) }))
      }
      assert.deepEqual(
        (await mailbox(held.runId)).map(({ name, data }) => [name, data]),
        oddPayloads.map((data) => [data.slice(0, 40), data]),
      )
    },
  },
  {
    name: 'a batch with refused transitions in the middle harms no other, and each gets its own answer in order',
    async run({ store, clock, hold, newRun, transition, journal, run }) {
      const [a, b, c, d, e] = [await hold(), await hold(), await hold(), await hold(), await hold()]
      const answers = await store.commit([
        transition(e),
        transition({ ...b, seq: 9 }),
        transition(a, { append: [ending('succeeded')], status: 'succeeded' }),
        transition({ ...c, lease: { ...c.lease, token: 2 } }),
        transition({ ...c, runId: newRun().id }),
        transition(d, { append: [step('one'), step('two')] }),
      ])
      const at = clock.now()
      assert.deepEqual(answers, [
        { outcome: 'committed', seq: 2, at, inbox: 0, released: false, controlRequest: null },
        { outcome: 'refused', reason: 'stale' },
        { outcome: 'committed', seq: 2, at, inbox: 0, released: true, controlRequest: null },
        { outcome: 'refused', reason: 'lease-lost' },
        { outcome: 'refused', reason: 'not-found' },
        { outcome: 'committed', seq: 3, at, inbox: 0, released: false, controlRequest: null },
      ])
      const lengths: number[] = []
      for (const { runId } of [a, b, c, d, e]) lengths.push((await journal(runId)).length)
      assert.deepEqual(lengths, [2, 1, 1, 3, 2])
      assert.equal((await run(a.runId)).status, 'succeeded')
      assert.equal((await run(e.runId)).status, 'running')
    },
  },
  {
    name: 'transitions of two runs in one batch do not get into each other',
    async run({ store, hold, transition, journal }) {
      const [a, b] = [await hold(), await hold()]
      const [first, second] = [[step('a1', '"a1"'), step('a2', '"a2"')], [step('b1', '"b1"')]]
      const answers = await store.commit([transition(b, { append: second }), transition(a, { append: first })])
      assert.deepEqual(
        answers.map((answer) => succeeded(answer).seq),
        [2, 3],
      )
      assert.deepEqual((await journal(a.runId)).slice(1).map(draftOf), first)
      assert.deepEqual((await journal(b.runId)).slice(1).map(draftOf), second)
    },
  },
  {
    name: 'commits of many runs at once are all there afterwards',
    async run({ store, newRun, transition, journal }) {
      const made = Array.from({ length: 30 }, (_, index) => newRun({ lease: { session: `s${index}`, token: 1 } }))
      await store.start(made)
      await atOnce(made.length, async (index) => {
        const { id: runId, lease } = made[index] as (typeof made)[number]
        for (let seq = 1; seq <= 5; seq += 1) {
          const held = { runId, lease: lease ?? { session: '', token: 0 }, seq }
          const [answer] = await store.commit([transition(held, { append: [step(`${index}.${seq}`)] })])
          assert.equal(succeeded(answer).seq, seq + 1)
        }
      })
      for (const [index, { id }] of made.entries()) {
        const names = (await journal(id)).map(({ name }) => name)
        assert.deepEqual(names, [null, ...[1, 2, 3, 4, 5].map((seq) => `${index}.${seq}`)])
      }
    },
  },
  {
    name: 'a transition with as many entries as one may have, or as heavy as one may be, is taken whole',
    async run({ hold, transition, send, journal }) {
      const many = Array.from({ length: mostEntries }, (_, index) => step(`s${index}`, `${index}`))
      const heavy = Array.from({ length: 4 }, (_, index) => step(`s${index}`, `"${'é'.repeat(mostBytes / 4 - 200)}"`))
      for (const append of [many, heavy]) {
        const held = await hold()
        const given = transition(held, { append: [...append.slice(1), ending('succeeded')], status: 'succeeded' })
        assert.equal(succeeded(await send(given)).seq, append.length + 1)
        assert.deepEqual((await journal(held.runId)).slice(1).map(draftOf), given.append)
      }
    },
  },
  {
    name: 'an empty batch is answered with nothing',
    async run({ store }) {
      assert.deepEqual(await store.commit([]), [])
    },
  },
  {
    name: 'what only a defect could ask for is an error, changes nothing, and lets the rest of the batch be repeated',
    async run({ store, hold, transition, run, journal }) {
      const [sound, broken] = [await hold(), await hold()]
      const before = await run(broken.runId)
      const good = transition(sound)
      const nonsense = [
        transition(broken, { append: [] }),
        transition(broken, { append: [], status: 'succeeded' }),
        transition(broken, { status: 'waiting', parkIf: null }),
        transition(broken, { parkIf: { inbox: 0 } }),
      ]
      for (const bad of nonsense) {
        await assert.rejects(store.commit([good, bad]), (error) => isHoldfastError(error, 'BUG'))
        assert.deepEqual(await run(broken.runId), before)
        const [answer] = await store.commit([good])
        assert.equal(succeeded(answer).seq, 2)
      }
      assert.equal((await journal(sound.runId)).length, 2)
    },
  },
]
