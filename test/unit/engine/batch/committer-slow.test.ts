// A flush that takes the store longer than it may: the unit that is the cause is found, and goes alone from there on.

import { describe, expect, it } from 'vitest'
import { HoldfastError } from '../../../../src/core/errors/error.ts'
import type { Committed } from '../../../../src/store.ts'
import { tooSlow } from '../../../../src/core/errors/too-slow.ts'
import { CommitterRig, runs } from '../../../support/committer-rig.ts'
import { turn } from '../../../support/manual-ports.ts'
import { unavailable, type Flush } from '../../../support/scripted-store.ts'

const late = (): Error => tooSlow('The database took longer than the storage timeout.')

/** What the engine makes of a call that nobody answered. */
const unanswered = (): Error => new HoldfastError('STORE_UNAVAILABLE', 'silence', { details: { call: 'commit' } })

/** Answers flushes as a store does that takes too long for one run. */
function slowFor(rig: CommitterRig, ...slow: readonly string[]): void {
  rig.store.onFlush = (flush) => {
    if (flush.runIds.some((id) => slow.includes(id))) flush.fail(late())
    else flush.answer()
  }
}

/** Lets so much time pass that nothing waits for a pause any more. */
async function pass(rig: CommitterRig, ms = 2_000): Promise<void> {
  await turn()
  rig.ports.clock.advance(ms)
  await turn()
}

function flushesWith(rig: CommitterRig, runId: string): readonly Flush[] {
  return rig.store.flushes.filter(({ runIds }) => runIds.includes(runId))
}

describe('a flush that takes too long', () => {
  it('is cut into pieces until the poisonous unit is alone; all others are committed', async () => {
    const rig = new CommitterRig(runs(500))
    slowFor(rig, 'r321')
    for (const run of runs(500)) rig.submit(run, ['one'])
    await pass(rig)
    const done = rig.outcomes.filter(([, outcome]) => typeof outcome === 'object')
    expect(done).toHaveLength(499)
    expect(rig.outcome('r321.1')).toBeUndefined()
    // Eight pieces at every level, and never one by one.
    expect(rig.store.flushes.length).toBeLessThan(1 + 3 * 8 + 3)
    expect(flushesWith(rig, 'r321').map(({ runIds }) => runIds.length)).toEqual([500, 63, 8, 1, 1, 1])
    expect(rig.ports.warnings.at(-1)).toContain('1 entry of run r321')
    await rig.finish()
    rig.ports.clock.advance(60_000)
    await turn()
    expect(rig.outcome('r321.1')).toMatchObject({ seq: 1 })
    expect(rig.store.violations).toEqual([])
  })

  it.each([2, 10, 64, 500])(
    'holds %i neighbours up for less than two storage timeouts, the first one included',
    async (many) => {
      const rig = new CommitterRig(runs(many), { limitMs: () => 8_000 })
      const { clock } = rig.ports
      rig.store.onFlush = (flush) => {
        const takes = flush.options.timeoutMs ?? 8_000
        if (flush.runIds.includes('r1')) clock.after(takes, () => flush.fail(late()))
        else flush.answer()
      }
      for (const run of runs(many)) rig.submit(run, ['one'])
      for (let passed = 0; passed < 15_900; passed += 100) await pass(rig, 100)
      expect(rig.outcomes).toHaveLength(many - 1)
      expect(rig.outcome('r1.1')).toBeUndefined()
    },
  )

  it('may be one that needs all of its time: it is tried with that at once, without a warning', async () => {
    const rig = new CommitterRig(runs(20), { limitMs: () => 8_000 })
    rig.store.onFlush = (flush) => {
      const isHeavy = flush.runIds.includes('r7')
      if (isHeavy && (flush.options.timeoutMs !== undefined || flush.runIds.length > 1)) flush.fail(late())
      else flush.answer()
    }
    for (const run of runs(20)) rig.submit(run, ['one'])
    await turn()
    expect(rig.outcomes).toHaveLength(20)
    expect(rig.ports.warnings).toEqual([])
  })

  it('because the store is slow for all has the more time the smaller its pieces are', async () => {
    const rig = new CommitterRig(runs(500), { limitMs: () => 8_000 })
    rig.store.onFlush = (flush) => {
      const needed = 3_500 + flush.runIds.length
      if ((flush.options.timeoutMs ?? 8_000) < needed || flush.runIds.length === 500) flush.fail(late())
      else flush.answer()
    }
    for (const run of runs(500)) rig.submit(run, ['one'])
    await turn()
    expect(rig.outcomes).toHaveLength(500)
    expect(rig.store.flushes.map(({ options }) => options.timeoutMs)).toEqual([
      undefined,
      ...Array.from({ length: 8 }, () => 1_000),
      ...Array.from({ length: 64 }, () => 2_000),
      ...rig.store.flushes.slice(73).map(() => 4_000),
    ])
  })

  it('because nothing is said to it is split as well, if the store answers something else', async () => {
    for (const isAnswering of [true, false]) {
      const rig = new CommitterRig(runs(20), { isAnswering: async () => isAnswering })
      rig.store.onFlush = (flush) => {
        if (flush.runIds.includes('r3')) flush.fail(unanswered())
        else flush.answer()
      }
      for (const run of runs(20)) rig.submit(run, ['one'])
      await pass(rig)
      expect(rig.outcomes).toHaveLength(isAnswering ? 19 : 0)
      await rig.finish()
      await pass(rig)
      expect(rig.outcomes).toHaveLength(20)
    }
  })

  it('and holds what the store cannot take goes on with the rest of it apart, in order', async () => {
    const rig = new CommitterRig(['a', 'b', 'c'])
    await rig.occupy('a', 'b')
    for (const name of ['1', 'poison', 'slow', '4']) rig.submit('c', [name])
    rig.store.onFlush = (flush) => {
      if (flush.names.flat().includes('poison') || !flush.names.flat().includes('slow')) flush.answer()
      else flush.fail(late())
    }
    for (const flush of rig.store.waiting) flush.answer()
    await pass(rig, 100)
    // Both places are free for the others.
    expect(rig.store.waiting).toEqual([])
    rig.store.onFlush = null
    const flushes = await rig.occupy('a', 'b')
    for (const flush of flushes) flush.answer()
    await rig.finish()
    await pass(rig)
    expect([rig.outcome('c.1'), rig.outcome('c.2')]).toMatchObject([{ seq: 1 }, 'ENTRY_REJECTED'])
    expect(rig.store.violations).toEqual([])
  })

  it('leaves both places to the others while it is split, and while its unit is tried again', async () => {
    const rig = new CommitterRig(['a', 'b', 'c', 'd'])
    rig.submit('a', ['slow'])
    await turn()
    rig.store.waiting[0]?.fail(late())
    await pass(rig, 100)
    expect(rig.store.waiting).toEqual([])
    const flushes = await rig.occupy('b', 'c')
    rig.submit('d', ['gathers'])
    await turn()
    expect(rig.store.waiting).toEqual(flushes)
    for (const flush of flushes) flush.answer()
    await turn()
    await rig.finish()
    expect(rig.outcome('a.1')).toBeUndefined()
    await pass(rig)
    expect(rig.outcome('a.1')).toMatchObject({ seq: 1 })
  })

  it('with two that are poisonous lets all others through, and both of them in the end', async () => {
    const rig = new CommitterRig(runs(64))
    slowFor(rig, 'r3', 'r50')
    for (const run of runs(64)) rig.submit(run, ['one'])
    await pass(rig)
    expect(rig.outcomes).toHaveLength(62)
    rig.store.onFlush = (flush) => flush.answer()
    // Once one of them is taken, the other need not wait for its own pause.
    rig.ports.clock.advance(2_000)
    await turn()
    expect(rig.outcomes).toHaveLength(64)
  })

  it('pauses longer and longer before the poisonous unit is tried again, up to a minute', async () => {
    const rig = new CommitterRig(['a'])
    slowFor(rig, 'a')
    rig.submit('a', ['one'])
    await pass(rig)
    for (let times = 0; times < 8; times += 1) await pass(rig, 100_000)
    const alone = rig.ports.clock.asked.map(Math.round)
    expect(alone).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000, 60_000])
  })

  it('keeps the order of a run whose unit was merged: its parts go one after the other', async () => {
    const rig = new CommitterRig(['a', 'b', 'c'])
    await rig.occupy('a', 'b')
    for (const name of ['1', '2', 'slow', '4']) rig.submit('c', [name])
    rig.store.onFlush = (flush) => {
      if (flush.names.flat().includes('slow')) flush.fail(late())
      else flush.answer()
    }
    for (const flush of rig.store.waiting) flush.answer()
    await pass(rig)
    expect(rig.store.names('c')).toEqual(['1', '2'])
    await rig.finish()
    await pass(rig)
    expect(rig.store.names('c')).toEqual(['1', '2', 'slow', '4'])
    expect(rig.ids.filter((id) => id.startsWith('c'))).toEqual(['c.1', 'c.2', 'c.3', 'c.4'])
  })

  it('is not what a store says that cannot be reached: nothing is split, however often it is sent', async () => {
    const rig = new CommitterRig(runs(100))
    rig.store.onFlush = (flush) => flush.fail(unavailable())
    for (const run of runs(100)) rig.submit(run, ['one'])
    for (let times = 0; times < 20; times += 1) await pass(rig)
    expect(new Set(rig.store.flushes.map(({ runIds }) => runIds.length))).toEqual(new Set([100]))
    await rig.finish()
    await pass(rig)
    expect(rig.outcomes).toHaveLength(100)
  })

  it('and then cannot be reached waits in the pieces that it has, two at a time', async () => {
    const rig = new CommitterRig(runs(100))
    rig.store.onFlush = (flush) => flush.fail(flush.runIds.length === 100 ? late() : unavailable())
    for (const run of runs(100)) rig.submit(run, ['one'])
    for (let times = 0; times < 20; times += 1) await pass(rig)
    expect(new Set(rig.store.flushes.map(({ runIds }) => runIds.length))).toEqual(new Set([100, 13]))
    expect(new Set(rig.store.flushes.map(({ runIds }) => runIds[0]))).toEqual(new Set(['r0', 'r13']))
    await rig.finish()
    await pass(rig)
    expect(rig.outcomes).toHaveLength(100)
  })

  it('ends with close: a submission that waits gets that as its error', async () => {
    const rig = new CommitterRig(['a', 'b'])
    slowFor(rig, 'a')
    rig.submit('a', ['one'])
    rig.submit('b', ['one'])
    await pass(rig)
    rig.committer.close()
    await rig.committer.drain()
    expect(rig.outcome('b.1')).toMatchObject({ seq: 1 })
    expect(rig.outcome('a.1')).toBe('CLOSED')
  })
})

it('what is locked when the committer is closed gets that as its error, and not asked for again', async () => {
  const rig = new CommitterRig(['a'])
  const busy: Committed = { outcome: 'refused', reason: 'busy' }
  rig.store.onFlush = (flush) => flush.answerWith([busy])
  rig.submit('a', ['one'])
  await turn()
  rig.committer.close()
  await rig.committer.drain()
  expect(rig.outcome('a.1')).toBe('CLOSED')
})

it('all that are locked go together: one flush at a time, however many they are', async () => {
  const rig = new CommitterRig(runs(20))
  const busy: Committed = { outcome: 'refused', reason: 'busy' }
  rig.store.onFlush = (flush) => flush.answerWith(flush.transitions.map(() => busy))
  for (const run of runs(20)) rig.submit(run, ['one'])
  await pass(rig)
  rig.store.onFlush = null
  rig.ports.clock.advance(1_000)
  await turn()
  expect(rig.store.waiting.map(({ runIds }) => runIds.length)).toEqual([20])
  await rig.finish()
  expect(rig.outcomes).toHaveLength(20)
})
