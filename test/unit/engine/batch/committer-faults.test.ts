// The committer alone, on a store that fails: who is harmed, what is sent again, and how it ends.

import { describe, expect, it } from 'vitest'
import { CommitterRig, runs } from '../../../support/committer-rig.ts'
import { turn } from '../../../support/manual-ports.ts'
import { unavailable } from '../../../support/scripted-store.ts'

describe('poison', () => {
  it('is found in a full batch within 20 sendings, and harms only itself', async () => {
    const bench = new CommitterRig(runs(500))
    for (const run of runs(500)) bench.submit(run, [run === 'r321' ? 'poison' : 'fine'])
    await turn()
    await bench.finish()
    expect(bench.outcome('r321.1')).toBe('ENTRY_REJECTED')
    expect(bench.outcomes.filter(([, outcome]) => typeof outcome === 'string')).toHaveLength(1)
    for (const run of runs(500)) expect(bench.store.names(run)).toEqual(run === 'r321' ? [] : ['fine'])
    expect(bench.store.flushes.length).toBeLessThan(20)
    expect(bench.ids).toEqual(runs(500).map((run) => `${run}.1`))
  })

  it('in a merged unit harms its own transition and those of the run that follow it', async () => {
    const bench = new CommitterRig(['a', 'b', 'c', 'd'])
    await bench.occupy('a', 'b')
    for (const name of ['1', '2', 'poison', '4', '5']) bench.submit('c', [name])
    bench.submit('d', ['fine'])
    await bench.finish()
    expect(bench.store.names('c')).toEqual(['1', '2'])
    expect(bench.store.names('d')).toEqual(['fine'])
    const outcomes = [1, 2, 3, 4, 5].map((number) => bench.outcome(`c.${number}`))
    expect(outcomes).toMatchObject([{ seq: 1 }, { seq: 2 }, 'ENTRY_REJECTED', 'STALE_WRITE', 'STALE_WRITE'])
    expect(bench.ids.slice(2)).toEqual(['c.1', 'c.2', 'c.3', 'c.4', 'c.5', 'd.1'])
  })

  it('does not keep a later transition of the same run from being committed', async () => {
    const bench = new CommitterRig(['a'])
    bench.submit('a', ['poison'])
    await bench.finish()
    bench.submit('a', ['failed'], { guard: { seq: 0, lease: { session: 'here', token: 1 } } })
    await bench.finish()
    expect(bench.store.names('a')).toEqual(['failed'])
  })

  it('splits after any error that the store does not call unavailable, and commits the rest once', async () => {
    const bench = new CommitterRig(['a', 'b', 'c'])
    for (const run of ['a', 'b', 'c']) bench.submit(run, ['x'])
    await turn()
    bench.store.waiting[0]?.fail(new TypeError('boom'))
    await turn()
    await bench.finish()
    for (const run of ['a', 'b', 'c']) expect(bench.store.names(run)).toEqual(['x'])
    expect(bench.outcomes.filter(([, outcome]) => typeof outcome === 'string')).toEqual([])
  })

  it('commits once though the store threw an unknown error after it had committed', async () => {
    const bench = new CommitterRig(['a', 'b'])
    bench.submit('a', ['x'])
    bench.submit('b', ['x'])
    await turn()
    const [flush] = bench.store.waiting
    bench.store.apply(flush?.transitions ?? [])
    flush?.fail(new Error('the connection is gone'))
    await bench.finish()
    for (const run of ['a', 'b']) expect(bench.store.names(run)).toEqual(['x'])
    expect(bench.outcome('a.1')).toMatchObject({ seq: 1 })
  })

  it('is what a store is said to have that gives too few answers', async () => {
    const bench = new CommitterRig(['a', 'b'])
    bench.submit('a', ['x'])
    await turn()
    bench.store.waiting[0]?.answerWith([])
    await turn()
    expect(bench.outcome('a.1')).toBe('BUG')
  })
})

describe('an unavailable store', () => {
  it('is sent the same batch again after growing pauses, while others gather behind it', async () => {
    const bench = new CommitterRig(['a', 'b', 'c'])
    const { clock } = bench.ports
    bench.submit('a', ['1'])
    await turn()
    const [sent] = bench.store.flushes
    for (let attempt = 1; attempt <= 9; attempt++) {
      bench.store.waiting[0]?.fail(unavailable())
      await turn()
      if (attempt === 1) bench.submit('a', ['2'])
      expect(bench.store.flushes).toHaveLength(attempt)
      clock.advance(2_000)
      await turn()
      expect(bench.store.flushes).toHaveLength(attempt + 1)
      expect(bench.store.flushes[attempt]?.transitions).toEqual(sent?.transitions)
    }
    expect(clock.asked.map(Math.round)).toEqual([10, 20, 40, 80, 160, 320, 640, 1_000, 1_000])
    expect(bench.outcomes).toEqual([])
    await bench.finish()
    expect(bench.store.names('a')).toEqual(['1', '2'])
    expect(bench.store.flushes.at(-1)?.names).toEqual([['2']])
    expect(bench.ports.warnings).toHaveLength(9)
  })

  it('keeps everything that is submitted meanwhile, in order', async () => {
    const bench = new CommitterRig(['a', 'b', 'c'])
    const flushes = await bench.occupy('a', 'b')
    for (const flush of flushes) flush.fail(unavailable())
    await turn()
    for (const name of ['1', '2', '3']) bench.submit('c', [name])
    await turn()
    expect(bench.store.waiting).toEqual([])
    bench.store.onFlush = (flush) => flush.answer()
    bench.ports.clock.advance(2_000)
    await bench.finish()
    expect(bench.store.names('c')).toEqual(['1', '2', '3'])
    expect(bench.outcomes).toHaveLength(5)
  })

  it('that committed and lost the answer is asked again: one entry, and success', async () => {
    const bench = new CommitterRig(['a', 'b', 'c'])
    await bench.occupy('a', 'b')
    bench.submit('c', ['1'])
    bench.submit('c', ['2'], { status: 'succeeded' })
    for (const flush of bench.store.waiting) flush.answer()
    await turn()
    bench.store.waiting[0]?.lose()
    await turn()
    bench.ports.clock.advance(2_000)
    await bench.finish()
    expect(bench.store.names('c')).toEqual(['1', '2'])
    expect(bench.outcome('c.1')).toMatchObject({ seq: 1, released: false })
    expect(bench.outcome('c.2')).toMatchObject({ seq: 2, released: true })
  })

  it('while poison is sought loses nothing', async () => {
    const bench = new CommitterRig(['a', 'b', 'c', 'd'])
    for (const run of ['a', 'b', 'c', 'd']) bench.submit(run, [run === 'c' ? 'poison' : 'x'])
    await turn()
    let calls = 0
    bench.store.onFlush = (flush) => (calls++ % 2 === 0 ? flush.lose() : flush.answer())
    bench.store.waiting[0]?.answer()
    for (let round = 0; round < 10; round++) {
      await turn()
      bench.ports.clock.advance(2_000)
    }
    await bench.finish()
    for (const run of ['a', 'b', 'd']) expect(bench.store.names(run)).toEqual(['x'])
    expect(bench.outcomes.map(([id, outcome]) => [id, typeof outcome])).toEqual([
      ['a.1', 'object'],
      ['b.1', 'object'],
      ['c.1', 'string'],
      ['d.1', 'object'],
    ])
  })
})

describe('close', () => {
  it('rejects what waits at once, refuses what comes later, and lets what is on its way arrive', async () => {
    const bench = new CommitterRig(['a', 'b', 'c'])
    await bench.occupy('a', 'b')
    bench.submit('c', ['1'])
    bench.submit('a', ['2'])
    bench.committer.close()
    bench.submit('b', ['3'])
    await turn()
    expect(bench.outcomes).toEqual([
      ['c.1', 'CLOSED'],
      ['a.2', 'CLOSED'],
      ['b.2', 'CLOSED'],
    ])
    const drained = bench.committer.drain()
    await bench.finish()
    await drained
    expect(bench.store.names('a')).toEqual(['busy'])
    expect(bench.outcome('a.1')).toMatchObject({ seq: 1 })
    expect(bench.store.flushes).toHaveLength(2)
  })

  it('ends the pause before a repetition at once, and is not held up by the clock', async () => {
    const bench = new CommitterRig(['a'])
    bench.submit('a', ['1'])
    await turn()
    bench.store.waiting[0]?.fail(unavailable())
    await turn()
    bench.committer.close()
    await bench.committer.drain()
    expect(bench.outcome('a.1')).toBe('CLOSED')
    expect(bench.store.flushes).toHaveLength(1)
  })

  it('does not try again what comes back as unavailable afterwards', async () => {
    const bench = new CommitterRig(['a'])
    bench.submit('a', ['1'])
    await turn()
    bench.committer.close()
    bench.store.waiting[0]?.fail(unavailable())
    await bench.committer.drain()
    expect(bench.outcome('a.1')).toBe('CLOSED')
    expect(bench.ports.clock.asked).toEqual([])
  })

  it('in the same turn as a submission sends nothing', async () => {
    const bench = new CommitterRig(['a'])
    bench.submit('a', ['1'])
    bench.committer.close()
    bench.committer.close()
    await bench.committer.drain()
    await turn()
    expect(bench.outcome('a.1')).toBe('CLOSED')
    expect(bench.store.flushes).toEqual([])
  })
})

describe('drain', () => {
  it('settles at once when there is nothing', async () => {
    await new CommitterRig([]).committer.drain()
  })

  it('waits for everything submitted before it, and for nothing that comes after it', async () => {
    const bench = new CommitterRig(['a', 'b', 'c'])
    const [first, second] = await bench.occupy('a', 'b')
    let drained = false
    void bench.committer.drain().then(() => (drained = true))
    first.answer()
    await turn()
    expect(drained).toBe(false)
    bench.submit('c', ['later'])
    await turn()
    second.answer()
    await turn()
    expect(drained).toBe(true)
    expect(bench.store.waiting).toHaveLength(1)
    await bench.finish()
  })
})

describe('back-pressure', () => {
  it('holds producers back from the high-water mark on, and lets them go on as soon as a batch is taken', async () => {
    const bench = new CommitterRig(runs(12), { highWater: 10 })
    const [first] = await bench.occupy('r10', 'r11')
    let admitted = 0
    const produce = async (run: string): Promise<void> => {
      await bench.committer.room()
      admitted += 1
      bench.submit(run, ['x'])
    }
    for (const run of runs(10)) await produce(run)
    void produce('r0')
    await turn()
    expect(admitted).toBe(10)
    first.answer()
    await turn()
    expect(admitted).toBe(11)
    await bench.finish()
    expect(bench.outcomes).toHaveLength(13)
  })

  it('lets producers go when it is closed, to be refused', async () => {
    const bench = new CommitterRig(runs(3), { highWater: 1 })
    await bench.occupy('r0', 'r1')
    bench.submit('r2', ['x'])
    const room = bench.committer.room()
    bench.committer.close()
    await room
    bench.submit('r2', ['y'])
    await bench.finish()
    expect([bench.outcome('r2.1'), bench.outcome('r2.2')]).toEqual(['CLOSED', 'CLOSED'])
  })
})
