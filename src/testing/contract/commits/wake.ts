// The holder of a run learns of new messages by a hint or, at the latest, by its heartbeat.

import assert from 'node:assert/strict'
import type { HeldClaim, Hint } from '../../../store.ts'
import { eventually, type ContractBench, type Held } from '../bench.ts'
import type { ContractCase } from '../contract-case.ts'
import { ending, waiting } from '../drafts.ts'
import { endOf, jobs, on, parkWatching, outbound, publish } from '../exchanges.ts'
import * as ask from '../requests.ts'

const lease = { session: 'me', token: 1 }
const ready: Hint = { kind: 'ready', type: 'contract.plain' }

function claimOf({ runId, lease: { token } }: Held, inbox?: number): HeldClaim {
  return { runId, token, extendMs: null, ...(inbox === undefined ? {} : { inbox }) }
}

/** The hints during an action, up to the hint of a run of its own type that is started last. */
async function heardDuring({ store, start, unique }: ContractBench, act: () => Promise<unknown>): Promise<Hint[]> {
  const heard: Hint[] = []
  const unsubscribe = await store.listen((hint) => heard.push(hint))
  await act()
  const type = unique('contract.last')
  await start({ type })
  const isLast = (hint: Hint): boolean => hint.kind === 'ready' && hint.type === type
  await eventually(() => (heard.some(isLast) ? true : null), 'the last hint')
  unsubscribe()
  return heard
}

async function expectHint(bench: ContractBench, hint: Hint, act: () => Promise<unknown>): Promise<void> {
  const heard: Hint[] = []
  const unsubscribe = await bench.store.listen((one) => heard.push(one))
  await act()
  const wanted = JSON.stringify(hint)
  await eventually(() => (heard.some((one) => JSON.stringify(one) === wanted) ? true : null), `a hint ${wanted}`)
  unsubscribe()
}

export const wakeCases: readonly ContractCase[] = [
  {
    name: 'a heartbeat returns the inbox of each held run that has messages the session has not seen',
    async run(bench) {
      const { beat, hold, deliver, message } = bench
      await beat('me')
      const [a, b, c, d] = [await hold({ lease }), await hold({ lease }), await hold({ lease }), await hold({ lease })]
      for (const { runId } of [a, b, c]) await deliver(message(runId))
      await deliver(message(a.runId))
      const held = [claimOf(a, 1), claimOf(b, 1), claimOf(c), claimOf(d, 0)]
      assert.deepEqual((await beat('me', { held })).messages, [{ runId: a.runId, inbox: 2 }])
      assert.deepEqual((await beat('me', { held: [claimOf(b, 0), claimOf(a, 0)] })).messages, [
        { runId: b.runId, inbox: 1 },
        { runId: a.runId, inbox: 2 },
      ])
      assert.deepEqual((await beat('me', { held: [claimOf(a, 2)] })).messages, [])
      assert.deepEqual((await beat('me')).messages, [])
    },
  },
  {
    name: 'a heartbeat returns no messages of runs that the session does not hold',
    async run({ beat, hold, deliver, message, park, store, newRun }) {
      await beat('me')
      await beat('you')
      const [parked, given, theirs] = [
        await hold({ lease }),
        await hold({ lease }),
        await hold({ lease: { session: 'you', token: 1 } }),
      ]
      await park(parked)
      await store.release([{ runId: given.runId, ...given.lease }])
      for (const { runId } of [parked, given, theirs]) await deliver(message(runId))
      const strange = { runId: newRun().id, lease, seq: 1 }
      const answer = await beat('me', { held: [parked, given, theirs, strange].map((one) => claimOf(one, 0)) })
      assert.deepEqual(answer.messages, [])
      assert.equal(answer.lost.length, 4)
    },
  },
  {
    name: 'a heartbeat reports the end of a run that one watches, and of what came for it on a topic',
    async run(bench) {
      await bench.beat('me')
      const [watcher, target] = [await bench.hold({ lease }), await bench.hold({ lease })]
      await bench.commit(watcher, {
        append: [waiting()],
        outbound: outbound({ watches: [endOf(target.runId), on(jobs)] }),
      })
      await bench.commit(target, { append: [ending('succeeded')], status: 'succeeded' })
      const held = [claimOf(watcher, 0)]
      assert.deepEqual((await bench.beat('me', { held })).messages, [{ runId: watcher.runId, inbox: 1 }])
      await publish(bench, 'a', jobs)
      assert.deepEqual((await bench.beat('me', { held })).messages, [{ runId: watcher.runId, inbox: 2 }])
    },
  },
  {
    name: 'a message for a held run is hinted at, wherever it comes from',
    needs: 'notifies',
    async run(bench) {
      const [held, target] = [await bench.hold(), await bench.hold()]
      const hint: Hint = { kind: 'message', runId: held.runId }
      await expectHint(bench, hint, () => bench.deliver(bench.message(held.runId)))
      await bench.commit(held, {
        append: [waiting()],
        outbound: outbound({ watches: [endOf(target.runId), on(jobs)] }),
      })
      await expectHint(bench, hint, () => publish(bench, 'a', jobs))
      await expectHint(bench, hint, () => bench.control(target.runId, ask.cancelNow))
    },
  },
  {
    name: 'a message for a run without a holder, and a repeated message, give no message hint',
    needs: 'notifies',
    async run(bench) {
      const [parked, held] = [await bench.hold(), await bench.hold()]
      await bench.park(parked)
      const pending = await bench.start()
      const known = bench.message(held.runId)
      await bench.deliver(known)
      const ended = await bench.hold()
      await bench.commit(ended, { append: [ending('failed')], status: 'failed' })
      const policy = { onUnread: 'dead-letter' } as const
      const heard = await heardDuring(bench, async () => {
        for (const id of [parked.runId, pending.id]) await bench.deliver(bench.message(id))
        await bench.deliver(bench.message(ended.runId, { policy }))
        await bench.deliver(known)
      })
      const runIds = heard.flatMap((hint) => (hint.kind === 'message' ? [hint.runId] : []))
      // Hints of earlier deliveries may still be in flight.
      assert.deepEqual(
        runIds.filter((id) => id !== held.runId),
        [],
      )
    },
  },
  {
    name: 'a run that is woken by an end or a topic is hinted at, and so is a child that is started or cancelled',
    needs: 'notifies',
    async run(bench) {
      const target = await bench.hold()
      await parkWatching(bench, [endOf(target.runId)])
      const over = { append: [ending('succeeded')], status: 'succeeded' } as const
      await expectHint(bench, ready, () => bench.commit(target, over))
      await parkWatching(bench, [on(jobs)])
      await expectHint(bench, ready, () => publish(bench, 'a', jobs))
      const parent = await bench.hold()
      const child = bench.child(parent.runId, { type: 'contract.child' })
      const hint: Hint = { kind: 'ready', type: 'contract.child' }
      await expectHint(bench, hint, () => bench.commit(parent, { outbound: outbound({ starts: [child] }) }))
      await expectHint(bench, hint, () => bench.commit(parent, over))
    },
  },
]
