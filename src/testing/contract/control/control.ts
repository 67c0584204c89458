// Control commands in general: their answers, their order, and their repetition. The effect of each request is tested in the
// file that is named after it.

import assert from 'node:assert/strict'
import type { Control } from '../../../core/rules/control.ts'
import type { ControlCommand } from '../../../store.ts'
import { atOnce, ids, spoil, type ContractBench } from '../bench.ts'
import type { ContractCase } from '../contract-case.ts'
import { ending } from '../drafts.ts'
import * as ask from '../requests.ts'
import { controlled } from '../requests.ts'

/** Requests that leave an entry, each with a run to which it applies. */
const requests: readonly (readonly [string, Control, (bench: ContractBench) => Promise<string>])[] = [
  ['cancel', ask.cancel, async ({ start }) => (await start()).id],
  ['cancel of a run with something to undo', ask.cancel, parkedUndoable],
  ['cancel that does not wait for the holder', ask.cancelNow, async ({ hold }) => (await hold()).runId],
  ['pause', ask.pause, async ({ start }) => (await start()).id],
  ['resume', ask.resume, pausedRun],
  ['retry', ask.retry, ask.failedRun],
]

async function parkedUndoable(bench: ContractBench): Promise<string> {
  const held = await ask.holdUndoable(bench)
  await bench.park(held)
  return held.runId
}

async function pausedRun({ start, control }: ContractBench): Promise<string> {
  const { id } = await start()
  controlled(await control(id, ask.pause), 'done')
  return id
}

const repetitions = requests.map(([name, request, make]): ContractCase => ({
  name: `a repeated ${name} is answered as done and does nothing again, in any later state of the run`,
  async run(bench) {
    const runId = await make(bench)
    const given = { id: bench.unique('request'), runId, ...request }
    const before = (await bench.journal(runId)).length
    const [first] = await bench.store.control([given])
    assert.equal(first?.outcome, 'done')
    const entries = await bench.journal(runId)
    assert.equal(entries.length, before + 1)
    assert.equal(entries.at(-1)?.transition, given.id)
    await bench.clock.advance(5)
    assert.deepEqual(await bench.store.control([given]), [first])
    // The old request does not take effect a second time, even if it would be valid now.
    for (const next of [ask.pause, ask.resume, ask.pause]) await bench.control(runId, next)
    const row = await bench.run(runId)
    const length = (await bench.journal(runId)).length
    assert.deepEqual(await bench.store.control([given, given]), [
      { outcome: 'done', run: row },
      { outcome: 'done', run: row },
    ])
    assert.deepEqual([await bench.run(runId), (await bench.journal(runId)).length], [row, length])
  },
}))

export const controlCases: readonly ContractCase[] = [
  ...repetitions,
  {
    name: 'a retry that is repeated after the run failed again is not obeyed a second time',
    async run(bench) {
      const id = await ask.failedRun(bench)
      const given: ControlCommand = { id: 'the request', runId: id, ...ask.retry }
      await bench.store.control([given])
      await bench.commit(await bench.take(id), { append: [ending('failed')], status: 'failed' })
      const row = await bench.run(id)
      assert.deepEqual(await bench.store.control([given]), [{ outcome: 'done', run: row }])
      assert.equal((await bench.run(id)).status, 'failed')
    },
  },
  {
    name: 'a request that comes twice in one batch is obeyed once',
    async run({ store, start, journal }) {
      const { id } = await start()
      const given: ControlCommand = { id: 'the request', runId: id, ...ask.pause }
      const again: ControlCommand = { id: 'another', runId: id, ...ask.resume }
      const answers = await store.control([given, given, again, given])
      assert.deepEqual(
        answers.map(({ outcome }) => outcome),
        ['done', 'done', 'done', 'done'],
      )
      assert.deepEqual(
        (await journal(id)).map(({ kind }) => kind),
        ['started', 'paused', 'resumed'],
      )
    },
  },
  {
    name: 'a request to a run that does not exist is answered so, and an empty batch has no answers',
    async run({ store, newRun, control }) {
      assert.deepEqual(await store.control([]), [])
      for (const request of ask.everyRequest) {
        assert.deepEqual(await control(newRun().id, request), { outcome: 'not-found' })
      }
    },
  },
  {
    name: 'many requests are answered one by one, in order, and the second of a run finds what the first made of it',
    async run({ store, start, newRun, unique, run, claim }) {
      const [a, b] = [await start(), await start()]
      const request = (runId: string, what: Control): ControlCommand => ({ id: unique('request'), runId, ...what })
      const answers = await store.control([
        request(a.id, ask.pause),
        request(newRun().id, ask.pause),
        request(a.id, ask.resume),
        request(b.id, ask.retry),
        request(a.id, ask.resume),
        request(b.id, ask.cancel),
        request(b.id, ask.pause),
      ])
      assert.deepEqual(
        answers.map((answer) => ('reason' in answer ? answer.reason : answer.outcome)),
        ['done', 'not-found', 'done', 'not-failed', 'not-paused', 'done', 'ended'],
      )
      const first = answers[0]
      assert.ok(first?.outcome === 'done')
      assert.deepEqual([first.run.status, first.run.seq], ['paused', 2], 'each answer shows the run as it was then')
      assert.deepEqual([(await run(a.id)).status, (await run(b.id)).status], ['pending', 'cancelled'])
      assert.deepEqual(ids((await claim()).runs), [a.id])
    },
  },
  {
    name: 'what is appended is in the feed, in its place',
    async run({ store, start, control }) {
      const { id } = await start({ feed: true })
      const quiet = await start({ feed: false })
      await control(quiet.id, ask.pause)
      await control(id, ask.pause)
      await control(id, ask.resume)
      const changes = await store.changes(0, 10)
      assert.deepEqual(
        changes.map(({ runId, position, entry }) => [runId, position, entry.seq, entry.kind]),
        [
          [id, 1, 1, 'started'],
          [id, 2, 2, 'paused'],
          [id, 3, 3, 'resumed'],
        ],
      )
    },
  },
  {
    name: 'of many that cancel one run at once, one entry records it',
    async run(bench) {
      const { id } = await bench.start()
      const answers = await atOnce(10, () => bench.control(id, ask.cancel))
      assert.equal(answers.filter(({ outcome }) => outcome === 'done').length, 1)
      assert.deepEqual(await ask.kindsOf(bench, id), ['started', 'cancelled'])
    },
  },
  {
    name: 'changing an answer about a run, or the given tags, changes nothing in the store',
    async run({ store, beat, hold, control, run, commit }) {
      await beat('me')
      const tags = ['t']
      const held = await hold({ tags, lease: { session: 'me', token: 1 } })
      const { runId } = held
      const answer = await control(runId, ask.pause)
      const before = structuredClone(await run(runId))
      assert.deepEqual(before.tags, ['t'])
      spoil(tags)
      spoil(answer)
      spoil(await run(runId))
      spoil(await beat('me'))
      spoil(await store.find({}, { limit: 1 }))
      assert.deepEqual(await run(runId), before)
      spoil(await commit(held))
      assert.deepEqual((await run(runId)).controlRequest, before.controlRequest)
    },
  },
]
