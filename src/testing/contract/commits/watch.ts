// Waiting for another run: a waiting run is notified of the end once, in the commit of the end, however it ends.

import assert from 'node:assert/strict'
import type { WaitTarget } from '../../../core/model/wait-target.ts'
import type { TerminalStatus } from '../../../core/model/run.ts'
import { atOnce, failures, succeeded, type ContractBench, type Held } from '../bench.ts'
import type { ContractCase } from '../contract-case.ts'
import { ending, waiting } from '../drafts.ts'
import { endPaths } from '../end-paths.ts'
import { endOf, expectAsleep, expectWoken, messages, parkWatching, outbound, saidBy } from '../exchanges.ts'
import * as ask from '../requests.ts'
import { controlled } from '../requests.ts'

const terminal: readonly TerminalStatus[] = ['succeeded', 'failed', 'cancelled']

/** Ends a run as its holder would. */
async function finish({ commit }: ContractBench, held: Held, status: TerminalStatus = 'succeeded'): Promise<void> {
  await commit(held, { append: [ending(status)], status })
}

const notifiedAtEveryEnd = endPaths.map((way): ContractCase => ({
  name: `a run that waits for another is notified once, and woken, when that one ${way.name}`,
  async run(bench) {
    const target = await bench.hold(way.changes)
    const watcher = await parkWatching(bench, [endOf(target.runId)])
    await bench.clock.advance(3)
    await way.end(bench, target)
    const row = await bench.run(target.runId)
    assert.equal(row.status, way.status)
    await expectWoken(bench, watcher.runId, 1)
    const [message, ...more] = await bench.mailbox(watcher.runId)
    assert.ok(message)
    const { kind, name, runId, policy, position, at } = message
    assert.deepEqual(
      { kind, name, runId, policy, position, at },
      { kind: 'ended', name: target.runId, runId: watcher.runId, policy: null, position: 1, at: bench.clock.now() },
    )
    const { status, data, reason } = way
    assert.deepEqual(saidBy(message), { status, seq: row.seq, data, reason })
    assert.deepEqual(more, [], 'exactly once')
  },
}))

export const watchCases: readonly ContractCase[] = [
  ...notifiedAtEveryEnd,
  {
    name: 'a run that waits for another is notified when no worker began that one in time',
    async run(bench) {
      const target = await bench.start({ expiresInMs: 1_000 })
      const watcher = await parkWatching(bench, [endOf(target.id)])
      await bench.clock.advance(1_000)
      await bench.rescue()
      await expectWoken(bench, watcher.runId, 1)
      const said = { status: 'failed', seq: 2, data: failures.expired, reason: null }
      assert.deepEqual(await messages(bench, watcher.runId), [['ended', target.id, said]])
    },
  },
  {
    name: 'a run that knows its mailbox to be empty still notifies the runs that wait for its end',
    async run(bench) {
      const target = await bench.hold()
      const watcher = await parkWatching(bench, [endOf(target.runId)])
      await bench.commit(target, { append: [ending('succeeded')], status: 'succeeded', emptyAt: 0 })
      await expectWoken(bench, watcher.runId, 1)
    },
  },
  {
    name: 'a run that another waits for is marked as watched, and nothing else of it changes',
    async run(bench) {
      const target = await bench.hold()
      const before = await bench.run(target.runId)
      assert.equal(before.watched, false)
      const watcher = await parkWatching(bench, [endOf(target.runId)])
      assert.deepEqual(await bench.run(target.runId), { ...before, watched: true })
      assert.equal((await bench.run(watcher.runId)).watched, false)
      await bench.commit(target)
      assert.equal((await bench.run(target.runId)).watched, true, 'a checkpoint does not forget it')
      await bench.store.release([{ runId: target.runId, ...target.lease }])
      assert.equal((await bench.claim()).runs[0]?.watched, true)
    },
  },
  {
    name: 'a wait for a run that is over already does not begin: the end is in the mailbox and the lease is kept',
    async run(bench) {
      for (const status of terminal) {
        const target = await bench.hold()
        await finish(bench, target, status)
        const { seq } = await bench.run(target.runId)
        const watcher = await bench.hold()
        const watches = [endOf(target.runId)]
        const answer = await bench.park(watcher, { append: [waiting()], outbound: outbound({ watches }) })
        assert.deepEqual([answer.released, answer.inbox, answer.seq], [false, 1, 2])
        const { status: now, readiness, session } = await bench.run(watcher.runId)
        assert.deepEqual([now, readiness, session], ['running', 'leased', watcher.lease.session])
        const [data, reason] = status === 'cancelled' ? [null, 'enough'] : [`"${status}"`, null]
        const said = { status, seq, data, reason }
        assert.deepEqual(await messages(bench, watcher.runId), [['ended', target.runId, said]])
        assert.equal((await bench.run(target.runId)).watched, false, 'nobody is left to be notified of it')
      }
    },
  },
  {
    name: 'a wait for a run that does not exist does not begin: the mailbox says that there is none',
    async run(bench) {
      const { id } = bench.newRun()
      const watcher = await bench.hold()
      const answer = await bench.park(watcher, { append: [waiting()], outbound: outbound({ watches: [endOf(id)] }) })
      assert.deepEqual([answer.released, answer.inbox], [false, 1])
      assert.deepEqual(await messages(bench, watcher.runId), [['ended', id, { status: 'not-found' }]])
    },
  },
  {
    name: 'a run may go on while it watches: its holder learns of the end with its next commit',
    async run(bench) {
      const [target, watcher] = [await bench.hold(), await bench.hold()]
      const answer = await bench.commit(watcher, {
        append: [waiting()],
        outbound: outbound({ watches: [endOf(target.runId)] }),
      })
      assert.deepEqual([answer.released, answer.inbox], [false, 0])
      const before = await bench.run(watcher.runId)
      await finish(bench, target)
      assert.deepEqual(await bench.run(watcher.runId), { ...before, inbox: 1 }, 'its holder keeps it')
      const parked = await bench.park(watcher, { append: [] })
      assert.deepEqual([parked.released, parked.inbox], [false, 1])
    },
  },
  {
    name: 'a run that waits no more on another one is not notified of its end',
    async run(bench) {
      const target = await bench.hold()
      const watcher = await parkWatching(bench, [endOf(target.runId)])
      await bench.deliver(bench.message(watcher.runId))
      const held = await bench.take(watcher.runId)
      const unwatches = [endOf(target.runId)]
      const changes = { append: [waiting('other')], parkIf: { inbox: 1 }, outbound: outbound({ unwatches }) }
      assert.equal((await bench.park(held, changes)).released, true)
      await finish(bench, target)
      await expectAsleep(bench, watcher.runId, 1)
    },
  },
  {
    name: 'a run that stops watching and watches again in one commit watches',
    async run(bench) {
      const target = await bench.hold()
      const watcher = await bench.hold()
      const both: readonly WaitTarget[] = [endOf(target.runId)]
      await bench.commit(watcher, { outbound: outbound({ watches: both }) })
      await bench.park(watcher, { append: [waiting()], outbound: outbound({ unwatches: both, watches: both }) })
      await finish(bench, target)
      await expectWoken(bench, watcher.runId, 1)
    },
  },
  {
    name: 'one that stops watching keeps no other from being notified',
    async run(bench) {
      const target = await bench.hold()
      const [one, other] = [await bench.hold(), await parkWatching(bench, [endOf(target.runId)])]
      await bench.commit(one, { outbound: outbound({ watches: [endOf(target.runId)] }) })
      await bench.commit(one, { outbound: outbound({ unwatches: [endOf(target.runId)] }) })
      await finish(bench, target)
      assert.deepEqual(await bench.mailbox(one.runId), [])
      await expectWoken(bench, other.runId, 1)
    },
  },
  {
    name: 'all runs that wait for one run are notified, each once',
    async run(bench) {
      const target = await bench.hold()
      const watchers = await atOnce(30, () => parkWatching(bench, [endOf(target.runId)]))
      await finish(bench, target)
      for (const { runId } of watchers) await expectWoken(bench, runId, 1)
    },
  },
  {
    name: 'a run that waits for several is notified of each, in the order in which they end',
    async run(bench) {
      const targets = [await bench.hold(), await bench.hold(), await bench.hold()] as const
      const watcher = await parkWatching(
        bench,
        targets.map(({ runId }) => endOf(runId)),
      )
      for (const index of [2, 0, 1] as const) await finish(bench, targets[index])
      const names = (await bench.mailbox(watcher.runId)).map(({ name }) => name)
      assert.deepEqual(names, [targets[2].runId, targets[0].runId, targets[1].runId])
    },
  },
  {
    name: 'a run that watches another one twice is notified of its end once',
    async run(bench) {
      const target = await bench.hold()
      const watcher = await bench.hold()
      const watches = [endOf(target.runId), endOf(target.runId)]
      await bench.commit(watcher, { outbound: outbound({ watches }) })
      await parkWatching(bench, watches, watcher)
      await finish(bench, target)
      await expectWoken(bench, watcher.runId, 1)
    },
  },
  {
    name: 'a run that watches again after it was notified is notified again',
    async run(bench) {
      const target = await bench.hold()
      const watcher = await parkWatching(bench, [endOf(target.runId)])
      await finish(bench, target)
      const held = await bench.take(watcher.runId)
      const [message] = await bench.mailbox(watcher.runId)
      await bench.commit(held, { takes: [message?.id ?? ''] })
      await bench.commit(held, { outbound: outbound({ watches: [endOf(target.runId)] }) })
      const [again, ...more] = await bench.mailbox(watcher.runId)
      assert.deepEqual([again?.kind, again?.position, more], ['ended', 2, []])
      assert.notEqual(again?.id, message?.id)
    },
  },
  {
    name: 'a run that is over or was removed is not woken by the end of what it waited for',
    async run(bench) {
      const target = await bench.hold()
      const gone = await parkWatching(bench, [endOf(target.runId)])
      const removed = await parkWatching(bench, [endOf(target.runId)])
      const other = await parkWatching(bench, [endOf(target.runId)])
      controlled(await bench.control(gone.runId, ask.cancel), 'done')
      controlled(await bench.control(removed.runId, ask.remove), 'done')
      const before = await bench.run(gone.runId)
      await finish(bench, target)
      assert.deepEqual(await bench.run(gone.runId), before)
      assert.deepEqual(await bench.mailbox(gone.runId), [])
      const { status, readiness, due } = await bench.run(removed.runId)
      assert.deepEqual([status, readiness, due], ['waiting', 'idle', null])
      await expectWoken(bench, other.runId, 1)
      assert.equal((await bench.claim()).runs.length, 1)
    },
  },
  {
    name: 'a run that is paused is notified, and stays paused',
    async run(bench) {
      const target = await bench.hold()
      const watcher = await parkWatching(bench, [endOf(target.runId)])
      controlled(await bench.control(watcher.runId, ask.pause), 'done')
      const before = await bench.run(watcher.runId)
      await finish(bench, target)
      assert.deepEqual(await bench.run(watcher.runId), { ...before, inbox: 1 })
    },
  },
  {
    name: 'a wait and the end that it waits for, in one batch, in either order: the run is notified, and does not sleep on',
    async run(bench) {
      for (const order of ['wait first', 'end first'] as const) {
        const [target, watcher] = [await bench.hold(), await bench.hold()]
        const watches = [endOf(target.runId)]
        const parked = {
          append: [waiting()],
          status: 'waiting',
          parkIf: { inbox: 0 },
          outbound: outbound({ watches }),
        } as const
        const wait = bench.transition(watcher, parked)
        const end = bench.transition(target, { append: [ending('succeeded')], status: 'succeeded' })
        const isFirst = order === 'wait first'
        const answers = await bench.store.commit(isFirst ? [wait, end] : [end, wait])
        const { released } = succeeded(answers[isFirst ? 0 : 1])
        const said = { status: 'succeeded', seq: 2, data: '"succeeded"', reason: null }
        assert.deepEqual(await messages(bench, watcher.runId), [['ended', target.runId, said]])
        if (released) await expectWoken(bench, watcher.runId, 1)
        else assert.equal((await bench.run(watcher.runId)).readiness, 'leased')
      }
    },
  },
  {
    name: 'two that wait for one another and end in one batch end',
    async run(bench) {
      const [a, b] = [await bench.hold(), await bench.hold()]
      await bench.commit(a, { outbound: outbound({ watches: [endOf(b.runId)] }) })
      await bench.commit(b, { outbound: outbound({ watches: [endOf(a.runId)] }) })
      const over = { append: [ending('succeeded')], status: 'succeeded' } as const
      const answers = await bench.store.commit([bench.transition(a, over), bench.transition(b, over)])
      for (const answer of answers) assert.equal(succeeded(answer).released, true)
      for (const { runId } of [a, b]) assert.deepEqual(await bench.mailbox(runId), [], 'no run is left to read it')
    },
  },
  {
    name: 'a wait whose answer was lost and that is sent again changes nothing, before and after the end',
    async run(bench) {
      const [target, watcher] = [await bench.hold(), await bench.hold()]
      const watches = [endOf(target.runId)]
      const parked = {
        append: [waiting()],
        status: 'waiting',
        parkIf: { inbox: 0 },
        outbound: outbound({ watches }),
      } as const
      const given = bench.transition(watcher, parked)
      const first = succeeded(await bench.send(given))
      assert.deepEqual(await bench.send(given), first)
      const end = bench.transition(target, { append: [ending('succeeded')], status: 'succeeded' })
      const over = succeeded(await bench.send(end))
      assert.deepEqual(await bench.send(end), over)
      await bench.send(given)
      await expectWoken(bench, watcher.runId, 1)
      assert.equal((await bench.mailbox(watcher.runId)).length, 1)
    },
  },
  {
    name: 'a refused transition begins no watch and stops none',
    async run(bench) {
      const target = await bench.hold()
      const [stranger, watcher] = [await bench.hold(), await bench.hold()]
      await bench.commit(watcher, { outbound: outbound({ watches: [endOf(target.runId)] }) })
      const stale = { seq: 7, lease: watcher.lease }
      const unwatch = bench.transition(watcher, {
        guard: stale,
        outbound: outbound({ unwatches: [endOf(target.runId)] }),
      })
      assert.deepEqual(await bench.send(unwatch), { outcome: 'refused', reason: 'stale' })
      const thief = { ...stranger, lease: { session: 'thief', token: 9 } }
      const watch = bench.transition(thief, { outbound: outbound({ watches: [endOf(target.runId)] }) })
      assert.deepEqual(await bench.send(watch), { outcome: 'refused', reason: 'lease-lost' })
      await finish(bench, target)
      assert.deepEqual(await bench.mailbox(stranger.runId), [])
      assert.equal((await bench.mailbox(watcher.runId)).length, 1)
    },
  },
  {
    name: 'a run stops watching what can never have been there',
    async run(bench) {
      const watcher = await bench.hold()
      const unknown = endOf('no such run')
      await bench.commit(watcher, { outbound: outbound({ watches: [unknown] }) })
      const [message] = await bench.mailbox(watcher.runId)
      await bench.commit(watcher, { outbound: outbound({ unwatches: [unknown] }) })
      await bench.commit(watcher, { takes: [message?.id ?? ''], outbound: outbound({ unwatches: [unknown] }) })
      assert.deepEqual(await bench.mailbox(watcher.runId), [])
    },
  },
  ...[3, 40].map((count): ContractCase => ({
    name: `${count} runs stop watching ${count} others at once, each its own`,
    async run(bench) {
      const targets = await atOnce(count, () => bench.hold())
      const watchers = await atOnce(count, () => bench.hold())
      const ends = targets.map(({ runId }) => endOf(runId))
      const own = (index: number): WaitTarget => ends[index] as WaitTarget
      const next = (index: number): WaitTarget => ends[(index + 1) % count] as WaitTarget
      for (const [index, watcher] of watchers.entries()) {
        await bench.commit(watcher, { outbound: outbound({ watches: [own(index), next(index)] }) })
      }
      const answers = await bench.store.commit(
        watchers.map((one, index) => bench.transition(one, { outbound: outbound({ unwatches: [own(index)] }) })),
      )
      assert.deepEqual(new Set(answers.map(({ outcome }) => outcome)), new Set(['committed']))
      for (const target of targets) await finish(bench, target)
      for (const [index, { runId }] of watchers.entries()) {
        const ends = (await bench.mailbox(runId)).map(({ name }) => endOf(name))
        assert.deepEqual(ends, [next(index)])
      }
    },
  })),
  {
    name: 'a run that is retried and ends again notifies the runs that have waited since',
    async run(bench) {
      const target = await bench.hold()
      const early = await parkWatching(bench, [endOf(target.runId)])
      await finish(bench, target, 'failed')
      controlled(await bench.control(target.runId, ask.retry), 'done')
      const late = await parkWatching(bench, [endOf(target.runId)])
      await bench.control(target.runId, ask.cancelNow)
      assert.equal((await bench.mailbox(early.runId)).length, 1)
      const [, , said] = (await messages(bench, late.runId))[0] ?? []
      assert.deepEqual(said, { status: 'cancelled', seq: 4, data: null, reason: 'at once' })
    },
  },
  {
    name: 'WC-C1 a wait that races with the end that it waits for never sleeps on it',
    async run(bench) {
      for (let round = 0; round < 20; round += 1) {
        const [target, watcher] = [await bench.hold(), await bench.hold()]
        const watches = [endOf(target.runId)]
        const park = (): Promise<unknown> =>
          bench.park(watcher, { append: [waiting()], outbound: outbound({ watches }) })
        const end = (): Promise<unknown> => finish(bench, target)
        await Promise.all(round % 2 === 0 ? [park(), end()] : [end(), park()])
        const { status, readiness, inbox } = await bench.run(watcher.runId)
        assert.equal(inbox, 1)
        const where = `${status} ${readiness}`
        assert.ok(where === 'waiting ready' || where === 'running leased', `it is ${where}`)
      }
    },
  },
]
