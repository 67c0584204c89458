// Retrying a failed run, and repairing its journal. The only way out of an end is recorded in the journal.

import assert from 'node:assert/strict'
import type { Draft } from '../../../core/model/entry.ts'
import { draftOf, failsAfter } from '../bench.ts'
import type { ContractCase } from '../contract-case.ts'
import { ending } from '../drafts.ts'
import * as ask from '../requests.ts'
import { expectControlRefused, failedRun, holdUndoable, kindsOf, controlled } from '../requests.ts'

const dropped: Extract<Draft, { kind: 'amended' }> = {
  kind: 'amended',
  name: null,
  meta: { seq: 2, dropped: true },
  data: null,
}
const replaced: Extract<Draft, { kind: 'amended' }> = {
  ...dropped,
  meta: { seq: 2, dropped: false },
  data: '"repaired"',
}

export const retryCases: readonly ContractCase[] = [
  {
    name: 'a failed run that is retried is pending again, says so in its journal, and is not over any more',
    async run(bench) {
      const { clock, control, run, take, commit } = bench
      const id = await failedRun(bench)
      await clock.advance(7)
      const row = controlled(await control(id, ask.retry), 'done')
      assert.deepEqual(await run(id), row)
      assert.deepEqual(
        [row.status, row.readiness, row.due, row.endedAt, row.seq, row.crashes, row.updatedAt],
        ['pending', 'ready', clock.now(), null, 4, 0, clock.now()],
      )
      assert.deepEqual(await kindsOf(bench, id), ['started', 'step-succeeded', 'failed', 'retried'])
      const held = await take(id)
      await commit(held, { append: [ending('succeeded')], status: 'succeeded' })
      assert.equal((await run(id)).status, 'succeeded')
    },
  },
  {
    name: 'a retry has no bound on its time: what ended the run would end it again',
    async run(bench) {
      const { clock, start, rescue, control, run, take } = bench
      const { id } = await start({ timeoutMs: 50, expiresInMs: 20 })
      await clock.advance(50)
      assert.equal((await rescue()).ended.length, 1)
      const row = controlled(await control(id, ask.retry), 'done')
      assert.deepEqual([row.timeoutAt, row.expiresAt], [null, null])
      await clock.advance(1_000)
      assert.deepEqual((await rescue()).ended, [])
      await take(id)
      assert.equal((await run(id)).status, 'running')
    },
  },
  {
    name: 'a run that its crashes ended begins to count anew when it is retried',
    async run({ clock, selector, beat, hold, rescue, control, take }) {
      await beat('dead')
      const held = await hold({ lease: { session: 'dead', token: 1 } })
      await clock.advance(30_000)
      assert.equal((await rescue({ workflows: [failsAfter(selector, 1)] })).ended[0]?.reason, 'crashed')
      controlled(await control(held.runId, ask.retry), 'done')
      await beat('next')
      await take(held.runId, 'next')
      await clock.advance(30_000)
      const { takenOver, ended } = await rescue({ workflows: [failsAfter(selector, 2)] })
      assert.deepEqual([takenOver[0]?.crashes, ended], [1, []])
    },
  },
  {
    name: 'repairs of the journal are appended with the retry or the resumption, before it',
    async run({ store, control, journal, ...bench }) {
      const id = await failedRun({ store, control, journal, ...bench })
      controlled(
        await control(id, { kind: 'retry', note: null, amend: [dropped, replaced], seq: 3 }, 'the request'),
        'done',
      )
      const entries = (await journal(id)).slice(3)
      assert.deepEqual(entries.map(draftOf), [
        dropped,
        replaced,
        { kind: 'retried', name: null, meta: { note: null }, data: null },
      ])
      assert.deepEqual(
        entries.map(({ seq, transition }) => [seq, transition]),
        [
          [4, 'the request'],
          [5, null],
          [6, null],
        ],
      )
      const paused = await bench.start()
      controlled(await control(paused.id, ask.pause), 'done')
      controlled(await control(paused.id, { kind: 'resume', note: null, amend: [replaced], seq: 2 }), 'done')
      assert.deepEqual(
        (await journal(paused.id)).map(({ kind }) => kind),
        ['started', 'paused', 'amended', 'resumed'],
      )
    },
  },
  {
    name: 'repairs that were made for another state of the journal are refused, and nothing is written',
    async run(bench) {
      const id = await failedRun(bench)
      for (const seq of [0, 2, 4]) {
        await expectControlRefused(bench, id, { kind: 'retry', note: null, amend: [dropped], seq }, 'changed')
      }
      const paused = await bench.start()
      controlled(await bench.control(paused.id, ask.pause), 'done')
      await expectControlRefused(bench, paused.id, { kind: 'resume', note: null, amend: [dropped], seq: 1 }, 'changed')
    },
  },
  {
    name: 'a run whose steps were undone is not retried',
    async run(bench) {
      const held = await holdUndoable(bench)
      const failing: Draft = { kind: 'failing', name: null, meta: null, data: '"no"' }
      await bench.commit(held, { append: [failing], undo: 'due' })
      await bench.commit(held, { append: [ending('failed')], status: 'failed' })
      await expectControlRefused(bench, held.runId, ask.retry, 'undone')
    },
  },
  {
    name: 'nothing but a failed run is retried: success and cancellation are final',
    async run(bench) {
      for (const status of ['succeeded', 'cancelled'] as const) {
        const held = await bench.hold()
        await bench.commit(held, { append: [ending(status)], status })
        await expectControlRefused(bench, held.runId, ask.retry, 'not-failed')
      }
    },
  },
]
