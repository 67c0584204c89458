// Effects: children that a decider's instance has asked for. An instance that is over has decided all it wanted, so they go on;
// one that is cancelled or removed wants none of it any more.

import assert from 'node:assert/strict'
import { effectType } from '../../../core/rules/effect-type.ts'
import { type ContractBench, type Held } from '../bench.ts'
import type { ContractCase } from '../contract-case.ts'
import { waiting } from '../drafts.ts'
import { endPaths } from '../end-paths.ts'
import { outbound } from '../exchanges.ts'
import * as ask from '../requests.ts'

interface Effects {
  readonly instance: Held
  readonly pending: string
  readonly leased: string
}

/** A held instance with an effect that nobody has begun, and one that is under way. */
async function withEffects(bench: ContractBench, changes: Parameters<ContractBench['hold']>[0] = {}): Promise<Effects> {
  const instance = await bench.hold(changes)
  const type = effectType(bench.selector.type, 'charge')
  const pending = bench.child(instance.runId, { type })
  const leased = bench.child(instance.runId, { type, lease: { session: 'performer', token: 1 } })
  const starts = outbound({ starts: [pending, leased] })
  await bench.commit(instance, { append: [waiting()], outbound: starts })
  return { instance, pending: pending.run.id, leased: leased.run.id }
}

async function statesOf({ run }: ContractBench, { pending, leased }: Effects): Promise<readonly unknown[]> {
  const rows = await Promise.all([run(pending), run(leased)])
  return rows.flatMap(({ status, session, controlRequest }) => [status, session, controlRequest?.kind ?? null])
}

const goingOn = ['pending', null, null, 'running', 'performer', null]
const cancelled = ['cancelling', null, null, 'cancelling', 'performer', 'cancel']

const everyEnd = endPaths
  // A session without a heartbeat counts as dead, and then nobody performs the effects.
  .filter(
    ({ name }) =>
      name !== 'has cost too many holders their lives' && name !== 'is being cancelled and loses its holder',
  )
  .map((way): ContractCase => ({
    name: `IF-C4 effects of an instance that ${way.name} ${way.status === 'cancelled' ? 'are cancelled with it' : 'go on'}`,
    async run(bench) {
      const effects = await withEffects(bench, way.changes)
      await bench.beat('performer', { leaseMs: 1_000_000 })
      await way.end(bench, effects.instance)
      assert.equal((await bench.run(effects.instance.runId)).status, way.status)
      await bench.chores()
      assert.deepEqual(await statesOf(bench, effects), way.status === 'cancelled' ? cancelled : goingOn)
    },
  }))

export const effectCases: readonly ContractCase[] = [
  ...everyEnd,
  {
    name: 'effects of an instance that is removed are cancelled with it',
    async run(bench) {
      const effects = await withEffects(bench)
      await bench.control(effects.instance.runId, ask.remove)
      assert.deepEqual(await statesOf(bench, effects), cancelled)
    },
  },
  {
    name: 'an effect that is cancelled with its instance before anybody began it is claimed to be ended',
    async run(bench) {
      const effects = await withEffects(bench)
      await bench.control(effects.instance.runId, ask.cancelNow)
      const { type } = await bench.run(effects.pending)
      const { runs } = await bench.claim({ selectors: [{ type, version: 1 }] })
      assert.deepEqual(
        runs.map(({ id, status }) => [id, status]),
        [[effects.pending, 'cancelling']],
      )
    },
  },
]
