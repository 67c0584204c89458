// The classic races at the port of a store, each as a small world: some runs, calls that are made at once, and what must be
// true afterwards in whatever order their statements came. A race rejects if something was lost or doubled.

import assert from 'node:assert/strict'
import type { Run } from '../../src/core/model/run.ts'
import type { Control } from '../../src/core/rules/control.ts'
import type { Claimed, Committed, Delivered, NewRun, Started, ControlResult } from '../../src/store.ts'
import { beatRaces } from './beat-races.ts'
import { keyRaces } from './key-races.ts'
import { projectionRaces } from './projection-races.ts'
import { claimRaces } from './claim-races.ts'
import { assertGapless, assertNobodySleeps, holdersOf, kinds, startOne, times, type Race } from './race-world.ts'
import { strangerRaces } from './stranger-races.ts'
import { unheldRaces } from './unheld-races.ts'
import { topicRaces } from './topic-races.ts'

const cancel: Control = { kind: 'cancel', mode: 'cooperative', reason: null }
const cancelNow: Control = { kind: 'cancel', mode: 'now', reason: null }
const pause: Control = { kind: 'pause', reason: 'operator', note: null }
const resume: Control = { kind: 'resume', note: null, amend: [], seq: null }
const retry: Control = { kind: 'retry', note: null, amend: [], seq: null }
const done = { kind: 'succeeded', name: null, meta: null, data: '1' } as const
const gaveUp = { kind: 'failed', name: null, meta: null, data: '1' } as const
const wait = { kind: 'waiting', name: 'w', meta: { conditions: [] }, data: null } as const

/** A run parks while so many messages arrive. */
function parkAgainstDeliver(count: number): Race {
  return async (world) => {
    const { hold, transition, send, deliver, message, run, mailbox } = world
    const held = await hold()
    const park = transition(held, { append: [wait], status: 'waiting', parkIf: { inbox: 0 } })
    const [parked, ...deliveries] = (await world.atOnce<unknown[]>(
      () => send(park),
      ...times(count, () => deliver(message(held.runId))),
    )) as [Committed, ...Delivered[]]
    const row = await run(held.runId)
    const messages = await mailbox(held.runId)
    assertNobodySleeps(row, messages.length)
    const positions = Array.from({ length: count }, (_, index) => index + 1)
    assert.deepEqual(
      [messages.map(({ position }) => position), row.inbox],
      [positions, count],
      'all are in the mailbox',
    )
    assert.equal(parked.outcome, 'committed')
    assert.equal(row.session === null, parked.released, 'the holder knows whether it still holds the run')
    if (!parked.released)
      assert.ok(parked.inbox > 0, 'the run that must look again is answered that something is there')
    const delivered = deliveries.filter(({ outcome }) => outcome === 'delivered').length
    assert.equal(delivered, parked.released ? 1 : 0, 'one of them wakes it, if it was asleep')
    await assertGapless(world, held.runId)
  }
}

/** Starts with one key; the last of the calls may end the run that has it. */
function starts(changes: Partial<NewRun>, taken: Started['taken']): Race {
  return async (world) => {
    const { newRun, store } = world
    const answers = await world.atOnce(...times(50, () => startOne(world, newRun(changes))))
    const created = answers.filter((answer) => answer.created)
    assert.equal(created.length, 1, 'one is created')
    for (const answer of answers) {
      assert.deepEqual([answer.run.id, answer.taken], [created[0]?.run.id, answer.created ? null : taken])
    }
    assert.equal(await store.count({}, 100), 1)
  }
}

const startsInOppositeOrder: Race = async (world) => {
  const { store, newRun } = world
  const [a, b] = [() => newRun({ key: 'a' }), () => newRun({ key: 'b' })]
  const answers = await world.atOnce(
    () => store.start([a(), b()]),
    () => store.start([b(), a()]),
    () => store.start([a(), b()]),
  )
  assert.equal(answers.flat().filter(({ created }) => created).length, 2)
  assert.equal(await store.count({}, 100), 2)
}

/** Each parent has one of the keys when it wants the other. */
const childrenInOppositeOrder: Race = async (world) => {
  const { child, hold, newRun, send, store, transition } = world
  const parents = [await hold(), await hold()]
  const starting = parents.map((held, index) => {
    const starts = ['a', 'b'].map((key) => child(held.runId, newRun({ parentId: held.runId, key })))
    const outbound = { starts: index === 0 ? starts : starts.toReversed(), watches: [], unwatches: [] }
    return transition(held, { append: [wait], outbound })
  })
  await world.atOnce(...starting.map((one) => () => send(one)))
  for (const key of ['a', 'b']) assert.equal((await holdersOf(world, key)).length, 1)
  assert.equal(await store.count({}, 100), 4)
}

const cancelAgainstComplete: Race = async (world) => {
  const { hold, transition, send, control, run } = world
  for (const request of [cancel, cancelNow]) {
    const held = await hold()
    const end = transition(held, { append: [done], status: 'succeeded' })
    const [ended, cancelled] = await world.atOnce(
      () => send(end),
      () => control(held.runId, request),
    )
    const { status } = await run(held.runId)
    const won = ended.outcome === 'committed'
    assert.equal(cancelled.outcome === 'refused', won, 'one of them wins')
    assert.equal(status, won ? 'succeeded' : request === cancel ? 'cancelling' : 'cancelled')
    assert.deepEqual(await kinds(world, held.runId), [
      'started',
      ...(won ? ['succeeded'] : request === cancel ? [] : ['cancelled']),
    ])
    await assertGapless(world, held.runId)
  }
}

const rescueAgainstCommit: Race = async (world) => {
  const { beat, hold, clock, transition, send, rescue, run, journal } = world
  await beat('dead')
  const held = await hold({ lease: { session: 'dead', token: 1 } })
  await clock.advance(30_000)
  const given = transition(held)
  const [committed, ...rescued] = await world.atOnce(
    () => send(given),
    () => rescue(),
    () => rescue(),
  )
  await rescue()
  const entries = await journal(held.runId)
  const written = entries.some((entry) => entry.transition === given.id)
  assert.equal(committed.outcome === 'committed', written, 'the writer knows whether it has written')
  assert.equal(entries.filter(({ kind }) => kind === 'crashed').length, 1, 'the crash is counted once')
  assert.ok(rescued.flatMap(({ takenOver }) => takenOver).length <= 1)
  assert.equal(entries.at(-1)?.kind, 'crashed', 'nothing is written after the takeover')
  assert.equal((await run(held.runId)).status, 'pending')
  await assertGapless(world, held.runId)
}

/** While a rescuer takes runs from a holder that seemed dead, that gives one back, and a process that is new holds it. */
const rescueAgainstNewcomer: Race = async (world) => {
  const { store, beat, hold, clock, claim, rescue, run } = world
  await beat('dead')
  const lease = { session: 'dead', token: 1 }
  const orphans = [await hold({ lease })]
  while (orphans.length < 6) orphans.push(await hold({ lease }))
  const given = orphans.at(-1)?.runId ?? ''
  await clock.advance(30_000)
  const [claimed] = await world.atOnce<(Run[] | null)[]>(
    async () => {
      const runs: Run[] = []
      await store.release([{ runId: given, ...lease }])
      await beat('new')
      for (let round = 0; round < 3; round += 1) runs.push(...(await claim({ session: 'new' })).runs)
      return runs
    },
    () => rescue().then(() => null),
  )
  for (const { id } of claimed ?? []) {
    const row = await run(id)
    assert.deepEqual([row.session, row.status], ['new', 'running'], 'nothing is taken from who lives')
  }
  await rescue()
  for (const { runId } of orphans) {
    const crashes = (await kinds(world, runId)).filter((kind) => kind === 'crashed').length
    assert.ok(crashes === 1 || (runId === given && crashes === 0), 'a crash is counted once')
  }
}

const controlAgainstControl: Race = async (world) => {
  const { store, start, run, journal } = world
  const { id: runId } = await start()
  const ask = (id: string, what: Control) => () => store.control([{ id, runId, ...what }])
  const answers = await world.atOnce(
    ask('pause', pause),
    ask('pause', pause),
    ask('resume', resume),
    ask('cancel', cancel),
    ask('cancel', cancel),
  )
  const entries = await journal(runId)
  const marks = entries.flatMap(({ transition }) => transition ?? [])
  assert.equal(new Set(marks).size, marks.length, 'a request is obeyed once')
  assert.equal((await run(runId)).status, 'cancelled')
  assert.equal(entries.at(-1)?.kind, 'cancelled')
  for (const [index, mark] of ['pause', 'pause', 'resume'].entries()) {
    const { outcome } = answers[index]?.[0] ?? { outcome: 'not-found' }
    if (marks.includes(mark) && index < 2) continue
    if (outcome === 'done') assert.ok(marks.includes(mark), `what was done stands in the journal: ${mark}`)
  }
  await assertGapless(world, runId)
}

/** A process that lives says so, twice under one id, while another one claims the suspect that it has lost. */
const wordAgainstClaim: Race = async (world) => {
  const { store, start, beat, rescue, run, selector, clock } = world
  const { id: runId } = await start()
  for (const session of ['one', 'two', 'three']) {
    const apart = session === 'three'
    await beat(session)
    const { runs } = await store.claim({ session, selectors: [selector], limit: 1, isolated: apart })
    const token = runs[0]?.token ?? 0
    if (apart) await beat(session, { held: [{ runId, token, extendMs: null, begun: 3 }] })
    await beat(session, { end: true })
    await rescue()
  }
  await clock.advance(10_000)
  await beat('next')
  const { seq } = await run(runId)
  const word = () => store.control([{ id: 'word', runId, kind: 'acquit', seq }])
  const [claimed] = await world.atOnce<[Claimed, unknown, unknown]>(
    () => store.claim({ session: 'next', selectors: [selector], limit: 1, isolated: true }),
    word,
    word,
  )
  const said = (await kinds(world, runId)).filter((kind) => kind === 'resumed').length
  const { crashes, session } = await run(runId)
  assert.ok(said <= 1, 'a crash is taken back once')
  assert.equal(crashes, 3 - said, 'as many are taken back as the journal says')
  const known = claimed.runs[0]
  assert.equal(session, known === undefined ? null : 'next')
  if (known !== undefined) assert.equal(known.crashes, crashes, 'nothing is taken back behind the next holder')
  await assertGapless(world, runId)
}

const retryAgainstRetry: Race = async (world) => {
  const { hold, commit, control, start } = world
  const failed: string[] = []
  for (let index = 0; index < 3; index += 1) {
    const held = await hold({ key: 'k' })
    await commit(held, { append: [gaveUp], status: 'failed' })
    failed.push(held.runId)
  }
  const answers = await world.atOnce<(ControlResult | Run)[]>(...failed.map((id) => () => control(id, retry)), () =>
    start({ key: 'other' }),
  )
  const holders = await holdersOf(world, 'k')
  assert.equal(holders.length, 1, 'one live run has the key')
  for (const answer of answers) {
    if ('outcome' in answer && answer.outcome === 'key-taken') assert.equal(answer.by, holders[0]?.id)
  }
  assert.equal(answers.filter((answer) => 'outcome' in answer && answer.outcome === 'done').length, 1)
}

const continueAgainstStart: Race = async (world) => {
  const { hold, newRun, transition, send, run } = world
  const held = await hold({ type: 'a', key: 'k' })
  const continues = { type: 'b', version: 1, feed: false }
  const anew = transition(held, {
    append: [{ kind: 'continued', name: null, meta: continues, data: '1' }],
    continues,
  })
  const [continued, started, late] = await world.atOnce<[Committed, Started, Started]>(
    () => send(anew),
    () => startOne(world, newRun({ type: 'b', key: 'k' })),
    () => startOne(world, newRun({ type: 'b', key: 'k' })),
  )
  const won = continued.outcome === 'committed'
  const holders = (await holdersOf(world, 'k')).filter(({ type }) => type === 'b')
  assert.equal(holders.length, 1, 'one live run of that type has the key')
  assert.equal([won, started.created, late.created].filter(Boolean).length, 1, 'one of them wins')
  for (const { run: answered } of [started, late]) assert.equal(answered.id, holders[0]?.id)
  if (!won) assert.deepEqual(continued, { outcome: 'refused', reason: 'key-taken' })
  assert.equal((await run(held.runId)).type, won ? 'b' : 'a')
}

const takeAgainstDeliver: Race = async (world) => {
  const { hold, deliver, message, transition, send, mailbox, run } = world
  const held = await hold()
  const [first, second] = [message(held.runId), message(held.runId)]
  await deliver(first)
  const take = transition(held, { append: [wait], status: 'waiting', parkIf: { inbox: 1 }, takes: [first.id] })
  const [taken, again, fresh] = await world.atOnce(
    () => send(take),
    () => deliver(first),
    () => deliver(second),
  )
  const row = await run(held.runId)
  const messages = await mailbox(held.runId)
  assert.deepEqual(again, { outcome: 'queued', repeated: true }, 'a repetition is answered as the first time')
  assert.deepEqual(
    messages.map(({ id, position }) => [id, position]),
    [[second.id, 2]],
  )
  assert.equal(row.inbox, 2)
  assertNobodySleeps(row, messages.length)
  assert.equal(taken.outcome, 'committed')
  if (fresh.outcome === 'delivered') assert.equal(taken.released, true)
}

/** A run ends while another one begins to watch it. */
const watchAgainstEnd: Race = async (world) => {
  const { hold, transition, send, run, mailbox } = world
  const [watched, watcher] = [await hold(), await hold()]
  const outbound = { starts: [], watches: [{ kind: 'run', runId: watched.runId }], unwatches: [] } as const
  const park = transition(watcher, { append: [wait], status: 'waiting', parkIf: { inbox: 0 }, outbound })
  const [parked] = await world.atOnce(
    () => send(park),
    () => send(transition(watched, { append: [done], status: 'succeeded' })),
  )
  const messages = await mailbox(watcher.runId)
  assert.deepEqual(
    messages.map(({ kind, name }) => [kind, name]),
    [['ended', watched.runId]],
    'it is notified once',
  )
  const row = await run(watcher.runId)
  assertNobodySleeps(row, messages.length)
  assert.equal(parked.outcome === 'committed' && parked.released, row.session === null)
}

/** A holder that gave its run back, and writes once more while another has it. */
const zombieAgainstHolder: Race = async (world) => {
  const { store, hold, transition, send, claim, commit, journal } = world
  const old = await hold()
  const late = transition(old)
  const [committed, , claims] = await world.atOnce(
    async () => {
      await journal(old.runId)
      await journal(old.runId)
      return send(late)
    },
    () => store.release([{ runId: old.runId, ...old.lease }]),
    async () => [await claim({ session: 'next' }), await claim({ session: 'next' }), await claim({ session: 'next' })],
  )
  const [row] = [...claims.flatMap(({ runs }) => runs), ...(await claim({ session: 'next' })).runs]
  assert.ok(row, 'the run was given back')
  assert.equal(row.seq, committed.outcome === 'committed' ? 2 : 1, 'the new holder knows of all that was written')
  await commit({ runId: row.id, lease: { session: 'next', token: row.token }, seq: row.seq })
  assert.equal((await journal(row.id)).length, row.seq + 1)
}

const readersOfTheFeed: Race = async (world) => {
  const { store, hold, commit, transition } = world
  const held = [await hold({ feed: true }), await hold({ feed: true }), await hold({ feed: true })]
  const beside = await hold({ feed: true })
  const quiet = await hold({ feed: false })
  const follow = async () => {
    const seen = []
    for (let round = 0; round < 6; round += 1) seen.push(...(await store.changes(seen.length, 4)))
    return seen
  }
  const answers = await world.atOnce<unknown[]>(
    ...held.map((one) => async () => {
      for (let round = 0; round < 3; round += 1) await commit(one)
    }),
    // One flush, of which the feed lists a half.
    () => store.commit([transition(quiet), transition(beside)]),
    follow,
    follow,
  )
  const whole = await store.changes(0, 100)
  assert.deepEqual(
    whole.map(({ position }) => position),
    Array.from({ length: 14 }, (_, index) => index + 1),
    'the feed has no gap',
  )
  const last = new Map<string, number>()
  for (const { runId, entry } of whole) {
    assert.equal(entry.seq, (last.get(runId) ?? 0) + 1, 'no run runs backwards')
    last.set(runId, entry.seq)
  }
  assert.ok(!last.has(quiet.runId), 'a run that does not ask for it is not in the feed')
  for (const seen of answers.slice(held.length + 1) as (typeof whole)[]) {
    assert.deepEqual(seen, whole.slice(0, seen.length), 'what was read stays as it was read')
  }
}

export const races: Readonly<Record<string, Race>> = {
  'park against deliver': parkAgainstDeliver(1),
  'park against three that deliver': parkAgainstDeliver(3),
  ...claimRaces,
  '50 starts with one key': starts({ key: 'k' }, 'key'),
  '50 starts with one idempotency key': starts({ idempotencyKey: 'i' }, 'idempotency-key'),
  'starts of two keys in opposite order': startsInOppositeOrder,
  'children with two keys in opposite order': childrenInOppositeOrder,
  'cancel against complete': cancelAgainstComplete,
  'rescue against commit': rescueAgainstCommit,
  'rescue against a new holder': rescueAgainstNewcomer,
  'steer against steer': controlAgainstControl,
  'a word for a suspect against its next claim': wordAgainstClaim,
  'retry against retry': retryAgainstRetry,
  'continue against start': continueAgainstStart,
  'take against deliver': takeAgainstDeliver,
  'watch against the end of the watched': watchAgainstEnd,
  'a late holder against the next': zombieAgainstHolder,
  ...beatRaces,
  ...strangerRaces,
  ...unheldRaces,
  ...topicRaces,
  ...keyRaces,
  ...projectionRaces,
  'readers of the feed against writers': readersOfTheFeed,
}
