// The committer alone, on a store whose answers come by hand: what goes together, and in what order answers arrive.

import { describe, expect, it } from 'vitest'
import { CommitterRig, runs } from '../../../support/committer-rig.ts'
import { turn } from '../../../support/manual-ports.ts'
import { mostBytes } from '../../../../src/core/model/transition.ts'
import { entry, type Flush } from '../../../support/scripted-store.ts'

describe('gathering', () => {
  it('sends at once when nothing is on its way, without a timer', async () => {
    const bench = new CommitterRig(['a'])
    bench.submit('a', ['x'])
    await Promise.resolve()
    expect(bench.store.flushes).toHaveLength(1)
    expect(bench.ports.clock.asked).toEqual([])
    await bench.finish()
    expect(bench.outcome('a.1')).toMatchObject({ seq: 1, at: 1, inbox: 0, released: false, controlRequest: null })
  })

  it('sends together what is submitted together', async () => {
    const bench = new CommitterRig(['a', 'b', 'c'])
    for (const run of ['a', 'b', 'c']) bench.submit(run, ['x'])
    await turn()
    expect(bench.store.flushes.map(({ runIds }) => runIds)).toEqual([['a', 'b', 'c']])
  })

  it('waits for what a worker is about to submit as long as that comes, and no longer', async () => {
    let isFilling = true
    const bench = new CommitterRig(['a', 'b', 'c', 'd'], { isFilling: () => isFilling })
    bench.submit('a', ['x'])
    await turn()
    bench.submit('b', ['x'])
    await turn()
    expect(bench.store.flushes).toEqual([])
    bench.submit('c', ['x'])
    isFilling = false
    for (let turns = 0; turns < 3; turns += 1) await turn()
    expect(bench.store.flushes.map(({ runIds }) => runIds)).toEqual([['a', 'b', 'c']])
    // Nothing comes, though it was announced.
    isFilling = true
    bench.submit('d', ['x'])
    for (let turns = 0; turns < 5; turns += 1) await turn()
    expect(bench.store.flushes[1]?.runIds).toEqual(['d'])
    await bench.finish()
  })

  it('waits ten milliseconds at most, though more keeps coming: bodies that keep the thread busy bring one a turn', async () => {
    const bench = new CommitterRig(['a', 'b', 'c', 'd'], { isFilling: () => true })
    for (const run of ['a', 'b', 'c', 'd']) {
      bench.submit(run, ['x'])
      await turn()
      bench.ports.clock.advance(5)
      await turn()
    }
    expect(bench.store.flushes[0]?.runIds).toEqual(['a', 'b', 'c'])
    await bench.finish()
  })

  it('never has a third flush on its way, and sends what gathered as one', async () => {
    const bench = new CommitterRig(['a', 'b', 'c', 'd', 'e'])
    const [first] = await bench.occupy('a', 'b')
    for (const run of ['c', 'd', 'e']) {
      bench.submit(run, ['x'])
      await turn()
    }
    expect(bench.store.flushes).toHaveLength(2)
    first.answer()
    await turn()
    expect(bench.store.flushes[2]?.runIds).toEqual(['c', 'd', 'e'])
    await bench.finish()
  })

  it('never has a run in two flushes, though the second way is free', async () => {
    const bench = new CommitterRig(['a', 'b'])
    bench.submit('a', ['1'])
    await turn()
    bench.submit('a', ['2'])
    bench.submit('b', ['1'])
    await turn()
    expect(bench.store.flushes.map(({ runIds }) => runIds)).toEqual([['a'], ['b']])
    bench.store.waiting[0]?.answer()
    await turn()
    expect(bench.store.flushes[2]?.names).toEqual([['2']])
    await bench.finish()
    expect(bench.store.names('a')).toEqual(['1', '2'])
  })

  it('does not let a busy run starve the others', async () => {
    const bench = new CommitterRig(runs(6), { maxItems: 2 })
    const [first] = await bench.occupy('r0', 'r1')
    for (const run of ['r2', 'r3', 'r4', 'r5']) bench.submit(run, ['x'])
    bench.submit('r0', ['again'])
    first.answer()
    await turn()
    expect(bench.store.flushes[2]?.runIds).toEqual(['r2', 'r3'])
    await bench.finish()
    expect(bench.store.flushes.at(-1)?.runIds).toEqual(['r0'])
  })

  it('forgets thousands of runs that have ended, and keeps the order of those that go on', async () => {
    const bench = new CommitterRig(runs(5_000), { maxItems: 10_000 })
    bench.store.onFlush = (flush) => flush.answer()
    for (const run of runs(5_000)) bench.submit(run, ['1'])
    await turn()
    const [hung] = await holdOne(bench, 'r7', '2')
    for (const run of runs(5_000)) bench.submit(run, ['3'])
    await turn()
    expect(bench.store.names('r7')).toEqual(['1'])
    hung.answer()
    await bench.finish()
    expect(bench.store.names('r7')).toEqual(['1', '2', '3'])
    expect(bench.outcomes).toHaveLength(10_001)
  })
})

/** Submits one entry whose flush is not answered, while others are. */
async function holdOne(bench: CommitterRig, run: string, name: string): Promise<readonly [Flush]> {
  const { onFlush } = bench.store
  bench.store.onFlush = null
  bench.submit(run, [name])
  await turn()
  bench.store.onFlush = onFlush
  return bench.store.waiting as [Flush]
}

describe('merging', () => {
  it('sends the queue of a run as one transition, and gives each submitter its own answer', async () => {
    const bench = new CommitterRig(['a', 'b', 'c'])
    await bench.occupy('a', 'b')
    bench.submit('c', ['1', '2'])
    bench.submit('c', ['3'])
    bench.submit('c', ['4'], { status: 'succeeded' })
    await bench.finish()
    const [merged] = bench.store.flushes[2]?.transitions ?? []
    expect(merged).toMatchObject({ id: 'c.1', guard: { seq: 0 }, status: 'succeeded' })
    expect(bench.store.flushes[2]?.names).toEqual([['1', '2', '3', '4']])
    expect(bench.outcome('c.1')).toEqual({ seq: 2, at: 4, inbox: 0, released: false, controlRequest: null })
    expect(bench.outcome('c.2')).toEqual({ seq: 3, at: 4, inbox: 0, released: false, controlRequest: null })
    expect(bench.outcome('c.3')).toMatchObject({ seq: 4, at: 4, inbox: 0, released: true, controlRequest: null })
  })

  it('puts no more entries into one transition than a store has to take', async () => {
    const bench = new CommitterRig(['a', 'b', 'c'])
    await bench.occupy('a', 'b')
    const names = (from: number, count: number): string[] => Array.from({ length: count }, (_, at) => `${from + at}`)
    for (const from of [0, 200, 400, 600]) bench.submit('c', names(from, 200))
    bench.submit('c', ['last'], { status: 'succeeded' })
    await bench.finish()
    const sent = bench.store.flushes.slice(2).flatMap(({ transitions }) => transitions)
    expect(sent.map(({ append }) => append.length)).toEqual([400, 401])
    expect(bench.store.names('c')).toEqual([...names(0, 800), 'last'])
  })

  it('puts no more bytes into one transition than a store has to take, unless one entry has more', async () => {
    const bench = new CommitterRig(['a', 'b', 'c'])
    await bench.occupy('a', 'b')
    const large = 'x'.repeat(mostBytes / 2 - 1_000)
    for (const name of ['1', '2', '3']) bench.submit('c', [name], { append: [entry(name, large)] })
    bench.submit('c', ['4'], { append: [entry('4', 'x'.repeat(mostBytes))] })
    await bench.finish()
    const sent = bench.store.flushes.slice(2).flatMap(({ transitions }) => transitions)
    expect(sent.map(({ append }) => append.length)).toEqual([2, 1, 1])
    expect(bench.store.names('c')).toEqual(['1', '2', '3', '4'])
  })

  it('answers the run that parks, and no other, that a message came in between', async () => {
    const bench = new CommitterRig(['a', 'b', 'c'])
    await bench.occupy('a', 'b')
    bench.submit('c', ['1'])
    bench.submit('c', ['2'], { status: 'waiting', parkIf: { inbox: 0 } })
    bench.store.deliver('c')
    await bench.finish()
    expect(bench.store.names('c')).toEqual(['1', '2'])
    expect(bench.outcome('c.2')).toMatchObject({ seq: 2, inbox: 1, released: false })
  })

  it('sends what cannot be merged in another flush, in its order', async () => {
    const bench = new CommitterRig(['a', 'b', 'c'])
    await bench.occupy('a', 'b')
    bench.submit('c', ['1'], { status: 'pending' })
    bench.submit('c', ['2'])
    await bench.finish()
    expect(bench.store.flushes.slice(2).map(({ names }) => names)).toEqual([[['1']], [['2']]])
    expect(bench.outcome('c.2')).toBe('LEASE_LOST')
  })

  it('settles in the order of submission within a flush, across merged ones', async () => {
    const bench = new CommitterRig(['a', 'b', 'c', 'd'])
    await bench.occupy('a', 'b')
    for (const name of ['1', '2']) for (const run of ['c', 'd']) bench.submit(run, [name])
    await bench.finish()
    expect(bench.ids.slice(2)).toEqual(['c.1', 'd.1', 'c.2', 'd.2'])
  })

  it('settles in the order of submission when a run that was submitted first became ready last', async () => {
    const bench = new CommitterRig(['a', 'b', 'c'])
    const [first] = await bench.occupy('a', 'b')
    bench.submit('a', ['2'])
    bench.submit('c', ['1'])
    first.answer()
    await turn()
    expect(bench.store.flushes[2]?.runIds).toEqual(['c', 'a'])
    bench.store.waiting.find((flush) => flush === bench.store.flushes[2])?.answer()
    await turn()
    expect(bench.ids).toEqual(['a.1', 'a.2', 'c.1'])
    await bench.finish()
  })
})

describe('limits', () => {
  it('sends at most 500 runs in a flush', async () => {
    const bench = new CommitterRig(runs(1_201))
    for (const run of runs(1_201)) bench.submit(run, ['x'])
    await turn()
    await bench.finish()
    expect(bench.store.flushes.map(({ transitions }) => transitions.length)).toEqual([500, 500, 201])
    expect(bench.ids).toHaveLength(1_201)
  })

  it('sends at most 4 MiB in a flush', async () => {
    const bench = new CommitterRig(runs(5))
    for (const run of runs(5)) bench.submit(run, ['x'], { append: [entry('x', 'x'.repeat(2 ** 20))] })
    await bench.finish()
    expect(bench.store.flushes.map(({ transitions }) => transitions.length)).toEqual([3, 2])
  })

  it('sends what is larger than that alone', async () => {
    const bench = new CommitterRig(runs(3))
    const large = { append: [entry('large', 'x'.repeat(5 * 2 ** 20))] }
    bench.submit('r0', ['x'])
    bench.submit('r1', ['large'], large)
    bench.submit('r2', ['x'])
    await turn()
    await bench.finish()
    expect(bench.store.flushes.map(({ runIds }) => runIds)).toEqual([['r0'], ['r1'], ['r2']])
  })

  it('does not merge a run beyond them', async () => {
    const bench = new CommitterRig(['a', 'b', 'c'])
    await bench.occupy('a', 'b')
    const large = { append: [entry('large', 'x'.repeat(3 * 2 ** 20))] }
    bench.submit('c', ['1'], large)
    bench.submit('c', ['2'], large)
    await bench.finish()
    expect(bench.store.flushes.slice(2).map(({ names }) => names)).toEqual([[['large']], [['large']]])
    expect(bench.outcome('c.2')).toMatchObject({ seq: 2 })
  })
})

describe('a refusal', () => {
  it('rejects the one that was refused, and no other in the batch', async () => {
    const bench = new CommitterRig(['a', 'stolen', 'late', 'z'])
    bench.store.steal('stolen')
    bench.submit('a', ['x'])
    bench.submit('stolen', ['x'])
    bench.submit('late', ['x'], { guard: { seq: 9, lease: { session: 'here', token: 1 } } })
    bench.submit('nobody', ['x'])
    bench.submit('z', ['x'])
    await bench.finish()
    expect(bench.store.flushes).toHaveLength(1)
    expect(bench.outcomes.map(([id, outcome]) => [id, typeof outcome === 'string' ? outcome : 'committed'])).toEqual([
      ['a.1', 'committed'],
      ['stolen.1', 'LEASE_LOST'],
      ['late.1', 'STALE_WRITE'],
      ['nobody.1', 'RUN_NOT_FOUND'],
      ['z.1', 'committed'],
    ])
  })

  it('rejects all that were merged into what was refused', async () => {
    const bench = new CommitterRig(['a', 'b', 'c'])
    await bench.occupy('a', 'b')
    bench.submit('c', ['1'])
    bench.submit('c', ['2'])
    bench.store.steal('c')
    await bench.finish()
    expect([bench.outcome('c.1'), bench.outcome('c.2')]).toEqual(['LEASE_LOST', 'LEASE_LOST'])
  })
})
