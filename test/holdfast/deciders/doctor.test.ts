// What the doctor of every store says of instances whose rows do not follow their journals: each is broken by a transition that
// the engine would never write.

import { describe, expect, it } from 'vitest'
import type { Draft } from '../../../src/core/model/entry.ts'
import type { Due } from '../../../src/core/model/due.ts'
import type { Run } from '../../../src/core/model/run.ts'
import type { NewRun } from '../../../src/store.ts'
import { everyStore, type SharedStore } from '../stores.ts'
import { orderOf } from './order.ts'

/** The engine never writes it for a decider. */
const logged: Draft = { kind: 'logged', name: 'info', meta: null, data: '1' }
const timer: Draft = { kind: 'timer', name: 'reminder', meta: { at: null, afterMs: 60_000 }, data: '{"type":"Late"}' }

interface Sound {
  readonly store: SharedStore['store']
  readonly run: Run
}

interface Wrong {
  readonly due: Due | null
  readonly child?: NewRun
}

async function commit({ store, run: { id, seq } }: Sound, draft: Draft, { due, child }: Wrong): Promise<void> {
  const starts = child === undefined ? [] : [{ run: child, awaited: true, onParentEnd: 'cancel' } as const]
  const [answer] = await store.commit([
    {
      id: 'by hand',
      runId: id,
      guard: { seq, lease: null },
      append: [draft],
      status: 'waiting',
      due,
      parkIf: null,
      undo: null,
      continues: null,
      takes: [],
      outbound: { starts, watches: [], unwatches: [] },
    },
  ])
  expect(answer).toMatchObject({ outcome: 'committed' })
}

async function broken({ store }: Sound): Promise<unknown> {
  return (await store.doctor()).filter(({ offenders }) => offenders.length > 0)
}

/** A run that performs an effect which its instance has not asked for. */
function performing({ id, shard, version }: Run): NewRun {
  return {
    id: `${id.slice(0, 18)}-8000-000000000001`,
    shard,
    type: 'order/sendMail',
    version,
    key: null,
    keyScope: 'workflow',
    idempotencyKey: null,
    parentId: id,
    tags: [],
    metadata: JSON.stringify({ id: '1', effect: 'sendMail#99' }),
    feed: false,
    priority: 0,
    due: null,
    timeoutMs: null,
    expiresInMs: null,
    lease: null,
    leaseMs: null,
    transition: 'by hand, too',
    first: { kind: 'started', name: null, meta: null, data: '1' },
  }
}

describe.each(everyStore)('the doctor of $name', ({ make }) => {
  /** An instance that waits for its timer for an hour. */
  async function sound(to?: string): Promise<Sound> {
    const { open, store } = await make()
    const order = orderOf()
    const holdfast = await open({ workflows: [order] })
    const create = { type: 'Create', orderId: '1' } as const
    await holdfast.execute(order, to === undefined ? create : { ...create, to })
    const [run] = await store.get([(await holdfast.instance(order, '1')).id])
    return { store, run: run as Run }
  }

  it('IF-S6 finds an instance that is not due when its first timer is', async () => {
    const well = await sound()
    expect(await broken(well)).toEqual([])
    await commit(well, timer, { due: { at: null, afterMs: 60_000 } })
    expect(await broken(well)).toEqual([])
    for (const afterMs of [null, 59_999, 60_001]) {
      const one = await sound()
      await commit(one, timer, { due: afterMs === null ? null : { at: null, afterMs } })
      expect(await broken(one)).toEqual([{ name: 'due_is_earliest_timer', offenders: [one.run.id] }])
    }
  })

  it('finds an effect that no run performs', async () => {
    expect(await broken(await sound('Ada'))).toEqual([])
    const one = await sound()
    const { due, seq, id } = one.run
    const effect: Draft = { kind: 'effect', name: `sendMail#${seq + 1}`, meta: null, data: '1' }
    await commit(one, effect, { due: { at: due, afterMs: null } })
    expect(await broken(one)).toEqual([{ name: 'effect_runs_follow_journal', offenders: [id] }])
  })

  it('finds a run that performs an effect which its instance has not asked for', async () => {
    const one = await sound()
    const child = performing(one.run)
    await commit(one, logged, { due: { at: one.run.due, afterMs: null }, child })
    expect(await broken(one)).toEqual([{ name: 'effect_runs_follow_journal', offenders: [child.id] }])
  })
})
