// What the doctor of every store says of instances whose rows do not follow their journals: each is broken by a transition that
// the engine would never write.

import { describe, expect, it } from 'vitest'
import type { Draft } from '../../../src/core/model/entry.ts'
import type { NewRun } from '../../../src/store.ts'
import { everyStore, type SharedStore } from '../stores.ts'
import { orderOf } from './order.ts'

const timer: Draft = { kind: 'timer', name: 'reminder', meta: { at: null, afterMs: 60_000 }, data: '{"type":"Late"}' }

describe.each(everyStore)('the doctor of $name', ({ make }) => {
  /** An instance that waits for its timer for an hour, and whose effect nobody performs yet. */
  async function sound(): Promise<{ readonly store: SharedStore['store']; readonly id: string; readonly seq: number }> {
    const { open, store } = await make()
    const order = orderOf()
    const holdfast = await open({ workflows: [order] })
    await holdfast.execute(order, { type: 'Create', orderId: '1', to: 'Ada' })
    const { id } = await holdfast.instance(order, '1')
    const [run] = await store.get([id])
    return { store, id, seq: run?.seq ?? 0 }
  }

  async function commit(
    { store, id, seq }: Awaited<ReturnType<typeof sound>>,
    draft: Draft,
    { afterMs = null, child = null }: { readonly afterMs?: number | null; readonly child?: NewRun | null } = {},
  ): Promise<void> {
    const starts = child === null ? [] : [{ run: child, awaited: true, onParentEnd: 'cancel' } as const]
    const [answer] = await store.commit([
      {
        id: 'by hand',
        runId: id,
        guard: { seq, lease: null },
        append: [draft],
        status: 'waiting',
        due: afterMs === null ? null : { at: null, afterMs },
        parkIf: null,
        undo: null,
        continues: null,
        takes: [],
        outbound: { starts, watches: [], unwatches: [] },
      },
    ])
    expect(answer).toMatchObject({ outcome: 'committed' })
  }

  const broken = async (store: SharedStore['store']): Promise<unknown> =>
    (await store.doctor()).filter(({ offenders }) => offenders.length > 0)

  it('IF-S6 finds an instance that is not due when its first timer is', async () => {
    const { store } = await sound()
    expect(await broken(store)).toEqual([])
    for (const afterMs of [null, 59_999, 60_001]) {
      const one = await sound()
      await commit(one, timer, { afterMs })
      expect(await broken(one.store)).toEqual([{ name: 'due_is_earliest_timer', offenders: [one.id] }])
    }
    const other = await sound()
    await commit(other, timer, { afterMs: 60_000 })
    expect(await broken(other.store)).toEqual([])
  })

  it('finds an effect that nothing performs, and a run whose effect nobody has asked for', async () => {
    const unperformed = await sound()
    const { store, id, seq } = unperformed
    const [child] = (await store.find({ parentId: id }, { limit: 1 })) as readonly [NewRun]
    await commit(unperformed, { kind: 'effect-succeeded', name: `sendMail#${seq}`, meta: { attempt: 1, ms: 1 }, data: null })
    expect(child).toBeDefined()
  })
})
