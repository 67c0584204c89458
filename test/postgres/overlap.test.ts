// Workers that overlap: one that leaves while another comes, and two whose clocks disagree.

import { describe, expect, it } from 'vitest'
import { workflow, type Holdfast } from 'holdfast'
import { systemClock } from '../../src/system.ts'
import { until } from '../support/until.ts'
import { migratedSchema } from '../support/postgres-shared.ts'
import { holdfastAt } from './proxied.ts'

async function address(): Promise<string> {
  const { url, schema } = await migratedSchema()
  return `${url}?schema=${schema}`
}

async function assertSound(holdfast: Holdfast): Promise<void> {
  expect((await holdfast.doctor()).filter(({ offenders }) => offenders.length > 0)).toEqual([])
}

describe('a rolling restart', { timeout: 60_000 }, () => {
  it('IF-P1 SW-P6 the old process does not take again what it gave back, nor anything new: the new one does', async () => {
    const store = await address()
    const bodies: { readonly by: string; readonly run: string }[] = []
    const slow = (by: string) =>
      workflow('slow', async (ctx) => {
        return ctx.step('work', async () => {
          bodies.push({ by, run: ctx.run.id })
          // It never ends by itself.
          if (by === 'old') await new Promise(() => undefined)
          return by
        })
      })
    const [before, after] = [slow('old'), slow('new')]
    const old = await holdfastAt({ store, workflows: [before] })
    const leaving = await old.work({ shutdownTimeout: '300ms', concurrency: 20 })
    const early = await Promise.all(Array.from({ length: 8 }, () => old.start(before)))
    await until('all have begun', () => bodies.length === 8)
    const young = await holdfastAt({ store, workflows: [after] })
    await young.work({ concurrency: 20 })
    const stopped = leaving.stop()
    const late = await Promise.all(Array.from({ length: 8 }, () => old.start(before)))
    await stopped
    const results = await Promise.all([...early, ...late].map((run) => run.result({ timeout: '30s' })))
    expect(results).toEqual(Array.from({ length: 16 }, () => 'new'))
    // Each that was given back was begun once by either, and what came later only by the new one.
    expect(
      bodies
        .filter(({ by }) => by === 'old')
        .map(({ run }) => run)
        .sort(),
    ).toEqual(early.map(({ id }) => id).sort())
    expect(bodies.filter(({ by }) => by === 'new')).toHaveLength(16)
    await assertSound(young)
  })
})

describe('workers whose clocks are five minutes fast and slow', { timeout: 60_000 }, () => {
  it('IF-S8 fire no timer early, lose no lease, and do everything once', async () => {
    const store = await address()
    const bodies: string[] = []
    const naps = workflow('naps', async (ctx, ms: number) => {
      const step = (name: string): Promise<number> => ctx.step(name, () => bodies.push(`${ctx.run.id} ${name}`))
      await step('before')
      await ctx.sleep(ms)
      await step('after')
      return ms
    })
    const workers: Holdfast[] = []
    for (const skewMs of [-300_000, 300_000]) {
      const clock = { ...systemClock, now: () => systemClock.now() + skewMs }
      const holdfast = await holdfastAt({ store, workflows: [naps], ports: { clock } })
      // A lease far shorter than the skew: a worker that compared clocks would find the other one dead.
      await holdfast.work({ lease: '2s', concurrency: 20 })
      workers.push(holdfast)
    }
    const [slow, fast] = workers as [Holdfast, Holdfast]
    const runs = await Promise.all(
      Array.from({ length: 40 }, (_, index) => (index % 2 === 0 ? slow : fast).start(naps, 100 + index * 40)),
    )
    await Promise.all(runs.map((run) => run.result({ timeout: '40s' })))
    expect(bodies.toSorted()).toEqual(runs.flatMap(({ id }) => [`${id} after`, `${id} before`]).toSorted())
    for (const [index, run] of runs.entries()) {
      const journal = await slow.journal(run)
      const at = (kind: string): number => Number(journal.find((entry) => entry.kind === kind)?.at)
      // By the clock of the database, which wrote both.
      expect(at('woken') - at('waiting')).toBeGreaterThanOrEqual(100 + index * 40)
      expect(journal.filter(({ kind }) => kind === 'crashed')).toEqual([])
    }
    await assertSound(fast)
  })
})
