// Hints spare a worker the wait for its next poll. They may be lost, so a case waits for one and counts none.

import assert from 'node:assert/strict'
import type { Hint } from '../../../store.ts'
import { eventually, type ContractBench } from '../bench.ts'
import type { ContractCase } from '../contract-case.ts'
import { ending, inMs, waiting } from '../drafts.ts'
import { outbound } from '../exchanges.ts'
import { cancel, cancelNow, failedRun, holdUndoable, pause, resume, retry } from '../requests.ts'

/** Listens while something is done, and waits for this hint. */
async function expectHint({ store }: ContractBench, hint: Hint, act: () => Promise<unknown>): Promise<void> {
  const heard: Hint[] = []
  const unsubscribe = await store.listen((one) => heard.push(one))
  await act()
  const wanted = JSON.stringify(hint)
  await eventually(() => (heard.some((one) => JSON.stringify(one) === wanted) ? true : null), `a hint ${wanted}`)
  unsubscribe()
}

const ready: Hint = { kind: 'ready', type: 'contract.plain' }

export const hintCases: readonly ContractCase[] = [
  {
    name: 'a run that is started is hinted at, and can be claimed by then',
    needs: 'notifies',
    async run({ store, start, claim }) {
      const claimed: number[] = []
      const unsubscribe = await store.listen(() => void claim().then(({ runs }) => claimed.push(runs.length)))
      await start()
      await eventually(() => (claimed.includes(1) ? true : null), 'the run is claimed by the store that got the hint')
      unsubscribe()
    },
  },
  {
    name: 'a delayed run is hinted at, so that a worker that sleeps longer than its delay learns of it',
    needs: 'notifies',
    run: (bench) => expectHint(bench, ready, () => bench.start({ due: inMs(100) })),
  },
  {
    name: 'a run that is given back is hinted at',
    needs: 'notifies',
    async run(bench) {
      const held = await bench.hold()
      await expectHint(bench, ready, () => bench.store.release([{ runId: held.runId, ...held.lease }]))
      const again = await bench.take(held.runId)
      await expectHint(bench, ready, () => bench.commit(again, { status: 'pending' }))
    },
  },
  {
    name: 'a run that a message wakes is hinted at',
    needs: 'notifies',
    async run(bench) {
      const held = await bench.hold()
      await bench.park(held)
      await expectHint(bench, ready, () => bench.deliver(bench.message(held.runId)))
    },
  },
  {
    name: 'a run that parks until a time is hinted at',
    needs: 'notifies',
    async run(bench) {
      const held = await bench.hold()
      await expectHint(bench, ready, () => bench.park(held, { due: { at: null, afterMs: 10 } }))
    },
  },
  {
    name: 'a run that ends is hinted at, however it ends',
    needs: 'notifies',
    async run(bench) {
      for (const status of ['succeeded', 'failed', 'cancelled'] as const) {
        const held = await bench.hold()
        const hint: Hint = { kind: 'ended', runId: held.runId }
        await expectHint(bench, hint, () => bench.commit(held, { append: [ending(status)], status }))
      }
    },
  },
  {
    name: 'a run that is resumed or retried, or that must be undone, is hinted at',
    needs: 'notifies',
    async run(bench) {
      const { id } = await bench.start()
      await bench.control(id, pause)
      await expectHint(bench, ready, () => bench.control(id, resume))
      const failed = await failedRun(bench)
      await expectHint(bench, ready, () => bench.control(failed, retry))
      const held = await holdUndoable(bench)
      await bench.park(held)
      await expectHint(bench, ready, () => bench.control(held.runId, cancel))
    },
  },
  {
    name: 'a run that is cancelled from outside is hinted at as ended, held or not',
    needs: 'notifies',
    async run(bench) {
      const { id } = await bench.start()
      await expectHint(bench, { kind: 'ended', runId: id }, () => bench.control(id, cancel))
      const { runId } = await bench.hold()
      await expectHint(bench, { kind: 'ended', runId }, () => bench.control(runId, cancelNow))
    },
  },
  {
    name: 'a control request for a held run is hinted at, wherever it comes from',
    needs: 'notifies',
    async run(bench) {
      for (const request of [pause, cancel]) {
        const { runId } = await bench.hold()
        await expectHint(bench, { kind: 'control', runId }, () => bench.control(runId, request))
      }
      const parent = await bench.hold()
      const child = bench.child(parent.runId)
      await bench.commit(parent, { append: [waiting()], outbound: outbound({ starts: [child] }) })
      const { runId } = await bench.take(child.run.id)
      await expectHint(bench, { kind: 'control', runId }, () => bench.control(parent.runId, cancelNow))
    },
  },
  {
    name: 'a run without a holder that times out soon is hinted at, however that came',
    needs: 'notifies',
    async run(bench) {
      const { clock, store, start, hold, control } = bench
      const at = (ms: number): Hint => ({ kind: 'deadline', at: clock.now() + ms })
      await expectHint(bench, at(500), () => start({ timeoutMs: 500, expiresInMs: 900 }))
      await expectHint(bench, at(400), () => start({ timeoutMs: 500, expiresInMs: 400 }))
      const held = await hold({ timeoutMs: 700 })
      await expectHint(bench, at(700), () => store.release([{ runId: held.runId, ...held.lease }]))
      const paused = await start({ timeoutMs: 300 })
      await control(paused.id, pause)
      await expectHint(bench, at(300), () => control(paused.id, resume))
    },
  },
  {
    name: 'every listener is notified, and none after it has unsubscribed',
    needs: 'notifies',
    async run({ store, start }) {
      const [first, second]: [Hint[], Hint[]] = [[], []]
      const stopFirst = await store.listen((hint) => first.push(hint))
      const stopSecond = await store.listen((hint) => second.push(hint))
      await start()
      await eventually(() => (first.length > 0 && second.length > 0 ? true : null), 'both get the hint')
      stopFirst()
      stopFirst()
      const heard = first.length
      await start({ type: 'after.unsubscribing' })
      await eventually(
        () => (second.some((hint) => hint.kind === 'ready' && hint.type === 'after.unsubscribing') ? true : null),
        'the other gets the hint',
      )
      assert.equal(first.length, heard)
      stopSecond()
    },
  },
]
