// The races of those who write for a run that nobody holds: against messages, against one another, and against who claims it.

import assert from 'node:assert/strict'
import type { Committed } from '../../src/store.ts'
import { event, unheld } from '../../src/testing/contract/unheld.ts'
import { outbound } from '../../src/testing/contract/exchanges.ts'
import { assertGapless, assertNobodySleeps, type Race, type RaceWorld } from './race-world.ts'

const wait = { kind: 'waiting', name: 'w', meta: { conditions: [] }, data: null } as const
const done = { kind: 'succeeded', name: null, meta: null, data: '1' } as const

/** A run that waits until a message comes, perhaps also for a time. */
async function waiting({ hold, send, transition }: RaceWorld, afterMs: number | null = null): Promise<string> {
  const held = await hold()
  const due = afterMs === null ? null : { at: null, afterMs }
  const park = transition(held, { append: [wait], status: 'waiting', parkIf: { inbox: 0 }, due })
  assert.equal((await send(park)).outcome, 'committed')
  return held.runId
}

/** An input is decided while messages arrive. */
function decideAgainstDeliver(afterMs: number | null): Race {
  return async (world) => {
    const { send, deliver, message, run, mailbox } = world
    const runId = await waiting(world, afterMs)
    const given = unheld(world, await run(runId), { due: afterMs === null ? null : { at: null, afterMs: 9 * afterMs } })
    const [decided] = await world.atOnce<[Committed, unknown, unknown]>(
      () => send(given),
      () => deliver(message(runId)),
      () => deliver(message(runId)),
    )
    assert.equal(decided.outcome, 'committed')
    assertNobodySleeps(await run(runId), (await mailbox(runId)).length)
    await assertGapless(world, runId)
  }
}

/** Several decide behind one entry, and a worker claims the run for a message. */
const decideAgainstClaim: Race = async (world) => {
  const { send, deliver, message, claim, run, journal } = world
  const runId = await waiting(world)
  const row = await run(runId)
  await deliver(message(runId))
  const given = Array.from({ length: 3 }, () => unheld(world, row))
  const answers = await world.atOnce<unknown[]>(...given.map((one) => () => send(one)), () =>
    claim({ session: 'drainer' }),
  )
  const decided = answers.slice(0, 3) as Committed[]
  const accepted = decided.filter(({ outcome }) => outcome === 'committed').length
  assert.ok(accepted <= 1, 'one of them decides')
  const after = await run(runId)
  assert.equal(after.seq, row.seq + accepted)
  if (after.session === null) await claim({ session: 'drainer' })
  const held = await run(runId)
  assert.equal(held.session, 'drainer', 'the message is not forgotten')
  const entries = await journal(runId)
  const late = unheld(world, held, { append: [event('late')] })
  assert.deepEqual(await send(late), { outcome: 'refused', reason: 'held' })
  assert.equal((await journal(runId)).length, entries.length)
  await assertGapless(world, runId)
}

/** Two children end and settle behind one entry, while another process decides and a message comes. */
const settleAgainstAll: Race = async (world) => {
  const { child, deliver, mailbox, message, send, run, store, transition } = world
  const runId = await waiting(world)
  const lease = { session: 'performer', token: 1 }
  const children = [child(runId, { lease }), child(runId, { lease })]
  const asked = unheld(world, await run(runId), { outbound: outbound({ starts: children }) })
  assert.equal((await send(asked)).outcome, 'committed')
  const row = await run(runId)
  const ends = children.map((one) =>
    transition(
      { runId: one.run.id, lease, seq: 1 },
      { append: [done], status: 'succeeded', settles: unheld(world, row) },
    ),
  )
  const answers = await world.atOnce<unknown[]>(
    ...ends.map((end) => () => send(end)),
    () => send(unheld(world, row)),
    () => deliver(message(runId)),
  )
  const [one, other, decided] = answers as [Committed, Committed, Committed]
  const settled = [one, other].map((answer) => {
    assert.equal(answer.outcome, 'committed', 'a child ends whatever its parent does')
    return answer.settled?.outcome
  })
  while ((await store.doChores()).worked);
  const accepted = [...settled, decided.outcome].filter((outcome) => outcome === 'committed').length
  assert.equal((await run(runId)).seq, row.seq + accepted)
  const ended = (await mailbox(runId)).filter(({ kind }) => kind === 'ended').length
  assert.equal(ended + settled.filter((outcome) => outcome === 'committed').length, 2, 'each outcome comes once')
  assertNobodySleeps(await run(runId), (await mailbox(runId)).length)
  await assertGapless(world, runId)
}

export const unheldRaces: Readonly<Record<string, Race>> = {
  'a decision without a lease against deliver': decideAgainstDeliver(null),
  'a decision that sets a time against deliver': decideAgainstDeliver(1_000),
  'decisions without a lease against a claim': decideAgainstClaim,
  'two effects that settle against a decision and a message': settleAgainstAll,
}
