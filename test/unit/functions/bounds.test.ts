// What a run may do at once is bounded: in entries and bytes of a transition, and in steps under way.

import { describe, expect, it } from 'vitest'
import { mostBytes, mostEntries, type Transition } from '../../../src/core/model/transition.ts'
import type { NewRun } from '../../../src/core/model/new-run.ts'
import { fatal } from '../../../src/core/definition/retry-mark.ts'
import { workflow } from '../../../src/functions/api/workflow.ts'
import { FunctionRig } from '../../support/function-rig.ts'

const numbers = (count: number): readonly number[] => Array.from({ length: count }, (_, at) => at)

/** How many bytes it takes as a text, whatever the engine thinks of that. */
const weightOf = (transition: Transition): number => Buffer.byteLength(JSON.stringify(transition))

/** Each transition follows the one before, and all of them make the journal. */
async function expectGapless(rig: FunctionRig, runId: string): Promise<void> {
  let seq = 1
  for (const { guard, append } of rig.commits) {
    expect(guard.seq).toBe(seq)
    seq += append.length
  }
  const journal = await rig.journal(runId)
  expect(journal.map((entry) => entry.seq)).toEqual(numbers(seq).map((at) => at + 1))
}

describe('5,000 parallel steps', () => {
  it('are sent while they settle, in transitions of at most 500 entries that follow each other', async () => {
    let ended = 0
    const endedAt: number[] = []
    const rig = new FunctionRig({ onCommit: () => void endedAt.push(ended) })
    const flow = workflow('wide', { parallel: 5_000 }, async (ctx) => {
      await Promise.all(
        numbers(5_000).map((at) =>
          ctx.step(`step ${at}`, async () => {
            for (let turn = 0; turn <= at % 50; turn += 1) await rig.turn()
            ended += 1
          }),
        ),
      )
    })
    const held = await (await rig.start(flow)).begin()
    expect(await held.status()).toBe('succeeded')
    expect(Math.max(...rig.commits.map(({ append }) => append.length))).toBeLessThanOrEqual(mostEntries)
    expect(rig.commits.length).toBeGreaterThan(10)
    expect(endedAt[0]).toBeLessThan(5_000)
    await expectGapless(rig, held.runId)
  })

  it('that end in one turn are several transitions', async () => {
    const rig = new FunctionRig()
    const flow = workflow('wide', { parallel: 5_000 }, async (ctx) => {
      await Promise.all(numbers(5_000).map((at) => ctx.step(`step ${at}`, () => at)))
    })
    const held = await (await rig.start(flow)).begin()
    expect(await held.status()).toBe('succeeded')
    expect(Math.max(...rig.commits.map(({ append }) => append.length))).toBeLessThanOrEqual(mostEntries)
    await expectGapless(rig, held.runId)
  })

  it('are replayed from several transitions', async () => {
    const rig = new FunctionRig()
    let performed = 0
    const flow = workflow('wide', async (ctx) => {
      const values = await Promise.all(numbers(1_700).map((at) => ctx.step(`step ${at}`, () => (performed += 1))))
      await ctx.sleep('1h')
      return values.length
    })
    const held = await (await rig.start(flow)).begin()
    await held.goOn('replayed')
    expect([await held.outcome(), performed]).toEqual([{ status: 'succeeded', value: 1_700 }, 1_700])
  })
})

describe('a transition', () => {
  it.each([
    ['ASCII', 'x'.repeat(900_000), 20],
    ['three bytes for each character', '漢'.repeat(300_000), 40],
  ])('weighs at most 4 MiB, however few its entries are: %s', async (_, text, steps) => {
    const rig = new FunctionRig()
    const flow = workflow('heavy', async (ctx) => {
      await Promise.all(numbers(steps).map((at) => ctx.step(`step ${at}`, () => text)))
    })
    const held = await (await rig.start(flow)).begin()
    expect(await held.status()).toBe('succeeded')
    expect(Math.max(...rig.commits.map(weightOf))).toBeLessThanOrEqual(mostBytes)
    expect(rig.commits.length).toBeGreaterThanOrEqual(5)
    await expectGapless(rig, held.runId)
  })

  it.each(['x'.repeat(500_000), '漢'.repeat(166_000)])(
    'also with the inputs of the children that it starts, and with texts of progress',
    async (text) => {
      let children = 0
      const prepare = (): NewRun => {
        const id = `01900000-0000-7000-8000-${(++children).toString(16).padStart(12, 'c')}`
        return { id, type: 'child', version: 1, metadata: null, first: { data: JSON.stringify(text) } } as NewRun
      }
      const rig = new FunctionRig({ prepare })
      const child = workflow('child', (_, input: string) => input)
      const flow = workflow('heavy', async (ctx) => {
        for (const _ of numbers(20)) ctx.progress(0.5, text)
        for (const _ of numbers(60)) void ctx.child(child, text, { onParentEnd: 'abandon' })
        await ctx.step('after', () => 1)
      })
      const held = await (await rig.start(flow)).begin()
      expect(await held.status()).toBe('succeeded')
      expect(rig.commits.flatMap(({ outbound }) => outbound?.starts ?? [])).toHaveLength(60)
      expect(Math.max(...rig.commits.map(weightOf))).toBeLessThanOrEqual(mostBytes + 100_000)
      await expectGapless(rig, held.runId)
    },
  )

  it('also when notes pile up before anything is awaited, and the last one ends the run', async () => {
    const rig = new FunctionRig()
    const flow = workflow('noted', (ctx) => {
      for (const at of numbers(1_200)) ctx.log(`line ${at}`)
      return 'done'
    })
    const held = await (await rig.start(flow)).begin()
    expect(await held.outcome()).toEqual({ status: 'succeeded', value: 'done' })
    expect(rig.commits.map(({ append }) => append.length)).toEqual([500, 500, 201])
    expect(rig.commits.map(({ status }) => status)).toEqual([null, null, 'succeeded'])
    await expectGapless(rig, held.runId)
  })

  it('that ends the run and is refused takes back only its last entry, although there were several', async () => {
    const rig = new FunctionRig()
    const flow = workflow('noted', (ctx) => {
      for (const at of numbers(1_200)) ctx.log(`line ${at}`)
      return 'done'
    })
    const held = await rig.start(flow)
    await held.cancel('too late', 'later')
    await held.begin()
    const story = await held.story()
    expect([story.length, story.at(-1), story.includes('succeeded')]).toEqual([1_202, 'cancelled', false])
  })
})

describe('parallel steps', () => {
  it.each([
    [500, {}],
    [7, { parallel: 7 }],
    [1, { parallel: 1 }],
  ])('are never more than %d under way, and begin in the order of their calls', async (bound, options) => {
    const rig = new FunctionRig()
    const began: number[] = []
    let underWay = 0
    let most = 0
    const count = bound * 3 + 1
    const flow = workflow('bounded', options, async (ctx) => {
      await Promise.all(
        numbers(count).map((at) =>
          ctx.step(`step ${at}`, async () => {
            began.push(at)
            underWay += 1
            most = Math.max(most, underWay)
            for (let turn = 0; turn <= at % 3; turn += 1) await rig.turn()
            underWay -= 1
          }),
        ),
      )
    })
    const held = await (await rig.start(flow)).begin()
    expect(await held.status()).toBe('succeeded')
    expect(most).toBe(bound)
    expect(began).toEqual(numbers(count))
  })

  it('that wait for their next attempt leave their room to others', async () => {
    const rig = new FunctionRig()
    const began: string[] = []
    const retry = { maxAttempts: 2, initial: 100, kind: 'constant', jitter: { mode: 'none' } } as const
    const flow = workflow('room', { parallel: 1, retry }, async (ctx) => {
      const perform = (name: string) => () => {
        began.push(name)
        if (name === 'a' && began.length === 1) throw new Error('Again')
      }
      await Promise.all(['a', 'b', 'c'].map((name) => ctx.step(name, perform(name))))
    })
    const held = await (await rig.start(flow)).begin()
    await rig.pass(100)
    expect(began).toEqual(['a', 'b', 'c', 'a'])
    expect(await held.status()).toBe('succeeded')
  })

  it.each(['fail for good', 'are tried again'] as const)(
    '500 that throw at once and %s make three commits',
    async (how) => {
      const rig = new FunctionRig()
      const no = how === 'fail for good' ? fatal('No') : new Error('No')
      const flow = workflow('throwing', async (ctx) => {
        await Promise.allSettled(
          numbers(500).map((at) =>
            ctx.step(`step ${at}`, () => {
              throw no
            }),
          ),
        )
        await ctx.sleep('1h')
      })
      await (await rig.start(flow)).begin()
      expect(rig.commits.length).toBeLessThanOrEqual(3)
      expect(rig.commits.reduce((count, { append }) => count + append.length, 0)).toBeGreaterThanOrEqual(500)
    },
  )
})
