// What happens after a failure, by default and as configured, read from the journal. Time is hurried, never asserted.

import { describe, expect, it } from 'vitest'
import { fatal, isHoldfastError, retryAfter, workflow } from 'holdfast'
import type { Holdfast, JournalEntry, Retry, StepTools, WorkOptions } from 'holdfast'
import { systemPorts } from '../../src/system.ts'
import { until } from './gate.ts'
import { hurriedClock } from './hurried-clock.ts'
import { open, openWorking } from './open.ts'
import { insertOrder, ownTables, type Db } from './own-tables.ts'
import { virtualWorld } from './virtual-world.ts'

async function hurried(workflows: Parameters<typeof open>[0], options: WorkOptions = {}): Promise<Holdfast> {
  const { turns, random } = systemPorts()
  const holdfast = await open({ ...workflows, ports: { clock: hurriedClock(), turns, random } })
  // At this pace the usual lease would be over in 30 ms, and a busy machine takes longer for a heartbeat.
  await holdfast.work({ lease: '6 hours', ...options })
  return holdfast
}

const delayOf = ({ meta }: JournalEntry): number => (meta as { readonly delayMs: number }).delayMs

/** The delays between the attempts of a step that always fails. */
async function delaysUnder(retry: Retry | undefined): Promise<readonly number[]> {
  const failing = workflow('failing', (ctx) =>
    ctx.step('fail', () => Promise.reject(new Error('Never')), retry === undefined ? {} : { retry }),
  )
  const holdfast = await hurried({ workflows: [failing] })
  const run = await holdfast.start(failing)
  await expect(run.result()).rejects.toMatchObject({ code: 'RUN_FAILED', cause: { message: 'Never' } })
  const journal = await holdfast.journal(run)
  const last = journal.find((entry) => entry.kind === 'step-failed')
  const delays = journal.filter((entry) => entry.kind === 'attempt-failed').map(delayOf)
  expect(last?.meta).toMatchObject({ attempt: delays.length + 1 })
  return delays
}

function within([low, high]: readonly [number, number], value: number | undefined): void {
  expect(value).toBeGreaterThanOrEqual(low)
  expect(value).toBeLessThanOrEqual(high)
}

describe('a failing step', () => {
  it('that the default policy tries again soon stays in memory for its first delay: the run is not parked for it', async () => {
    const { open: openVirtual, clock, until } = virtualWorld()
    let attempts = 0
    const failing = workflow('failing', (ctx) =>
      ctx.step('fail', () => {
        attempts += 1
        return Promise.reject(new Error('Never'))
      }),
    )
    const holdfast = await openVirtual({ workflows: [failing] })
    await holdfast.work()
    const run = await holdfast.start(failing)
    await until(() => attempts === 1)
    await clock.advance('900 ms')
    expect([attempts, await run.status()]).toEqual([1, 'running'])
    await until(() => attempts === 2)
    await clock.advance('900 ms')
    expect([attempts, await run.status()]).toEqual([2, 'waiting'])
  })

  it('PQ-R1 is tried three times by default, each delay about twice the one before, with jitter', async () => {
    const delays = await delaysUnder(undefined)
    expect(delays).toHaveLength(2)
    within([1_000, 1_500], delays[0])
    within([2_000, 3_000], delays[1])
  })

  it('PQ-R1 may follow the preset spread: ±25 %, never below a second', async () => {
    const delays = await delaysUnder('spread')
    expect(delays).toHaveLength(2)
    within([1_000, 1_250], delays[0])
    within([1_500, 2_500], delays[1])
  })

  it('PQ-R1 may be tried after a fixed delay, or after plain exponential ones', async () => {
    const plain = { maxAttempts: 4, initial: '10s', jitter: { mode: 'none' } } as const
    expect(await delaysUnder({ ...plain, kind: 'constant' })).toEqual([10_000, 10_000, 10_000])
    expect(await delaysUnder({ ...plain, kind: 'exponential' })).toEqual([10_000, 20_000, 40_000])
    expect(await delaysUnder({ ...plain, kind: 'linear', max: '25s' })).toEqual([10_000, 20_000, 25_000])
  })

  it('PQ-R2 sets its own delay with retryAfter, in place of the computed one', async () => {
    const warned = workflow('news', (ctx) =>
      ctx.step('ask', ({ attempt }) => {
        if (attempt === 1) throw retryAfter('30s', 'Slow down')
        return attempt
      }),
    )
    const holdfast = await hurried({ workflows: [warned] })
    const run = await holdfast.start(warned)
    expect(await run.result()).toBe(2)
    const failed = (await holdfast.journal(run)).filter((entry) => entry.kind === 'attempt-failed')
    expect(failed.map(delayOf)).toEqual([30_000])
    expect(failed[0]?.data).toMatchObject({ message: 'Slow down' })
  })

  it('PQ-R3 is not tried again when its error is fatal, whose class the body still sees', async () => {
    let attempts = 0
    const hopeless = workflow('hopeless', async (ctx) => {
      const failed = ctx.step('ask', () => {
        attempts += 1
        throw fatal(new RangeError('No such card'))
      })
      return failed.catch((error: unknown) => error instanceof RangeError && error.message)
    })
    const holdfast = await hurried({ workflows: [hopeless] })
    expect(await (await holdfast.start(hopeless)).result()).toBe('No such card')
    expect(attempts).toBe(1)
  })

  it('PQ-R3 is not tried again when the policy says that its error is not worth it', async () => {
    let attempts = 0
    const retry = { retryable: (error: unknown) => !(error instanceof TypeError) }
    const picky = workflow('picky', (ctx) =>
      ctx.step(
        'ask',
        () => {
          attempts += 1
          throw new TypeError('Ours')
        },
        { retry },
      ),
    )
    const holdfast = await hurried({ workflows: [picky] })
    await expect((await holdfast.start(picky)).result()).rejects.toMatchObject({ cause: { name: 'TypeError' } })
    expect(attempts).toBe(1)
  })

  it('PQ-R3 that is exhausted fails the run at once: its body is not tried again', async () => {
    let [bodies, attempts] = [0, 0]
    const exhausted = workflow('exhausted', { retry: { maxAttempts: 2, initial: '1s' } }, async (ctx) => {
      bodies += 1
      await ctx.step('ask', () => {
        attempts += 1
        throw new Error('Never')
      })
    })
    const holdfast = await hurried({ workflows: [exhausted] })
    await expect((await holdfast.start(exhausted)).result()).rejects.toMatchObject({ code: 'RUN_FAILED' })
    expect([bodies, attempts]).toEqual([1, 2])
  })

  it('that is caught lets the body go on', async () => {
    const careful = workflow('careful', async (ctx) => {
      try {
        return await ctx.step('ask', () => Promise.reject(new Error('Never')), { retry: 'none' })
      } catch {
        return ctx.step('instead', () => 'plan B')
      }
    })
    const holdfast = await hurried({ workflows: [careful] })
    expect(await (await holdfast.start(careful)).result()).toBe('plan B')
  })

  it.each(['a step', 'an undo'])(
    'of %s judges errors without the context: an identity that it took would be missing in every replay',
    async (of) => {
      const inPredicate: unknown[] = []
      const drawn: string[] = []
      const picky = workflow('picky', { retry: 'none' }, async (ctx) => {
        const retryable = (): boolean => {
          try {
            return ctx.uuid() !== ''
          } catch (error) {
            inPredicate.push(error)
            return true
          }
        }
        const fail = (step: StepTools): void => {
          if (step.attempt === 1) throw new Error('No')
        }
        const retry = { maxAttempts: 2, initial: 1, retryable }
        await ctx.step('a', of === 'a step' ? fail : () => undefined, { retry, undo: (_result, step) => fail(step) })
        drawn.push(ctx.uuid())
        await ctx.receive('go')
        throw fatal('Undo it')
      })
      const holdfast = await hurried({ workflows: [picky] }, { cachedRuns: 0 })
      const run = await holdfast.start(picky)
      await until(async () => (await run.status()) === 'waiting')
      await holdfast.signal(run, 'go')
      await expect(run.result()).rejects.toMatchObject({ code: 'RUN_FAILED' })
      expect(inPredicate).toContainEqual(expect.objectContaining({ code: 'INVALID_OPTION' }))
      expect(new Set(drawn).size).toBe(1)
      expect(drawn.length).toBeGreaterThan(1)
    },
  )

  it('is not harmed by a predicate that throws: the error counts as worth another attempt', async () => {
    const retry = {
      maxAttempts: 2,
      retryable: (): boolean => {
        throw new Error('The predicate is broken')
      },
    }
    const broken = workflow('broken', { retry }, (ctx) =>
      ctx.step('ask', ({ attempt }) => {
        if (attempt === 1) throw new Error('First')
        return attempt
      }),
    )
    const holdfast = await hurried({ workflows: [broken] })
    expect(await (await holdfast.start(broken)).result()).toBe(2)
  })

  it('that takes too long is aborted and tried again', async () => {
    const reasons: unknown[] = []
    const slow = workflow('slow', (ctx) =>
      ctx.step(
        'ask',
        ({ attempt, abortSignal }) => {
          if (attempt === 2) return 'in time'
          abortSignal.addEventListener('abort', () => reasons.push(abortSignal.reason))
          return new Promise<string>(() => undefined)
        },
        { timeout: '5s' },
      ),
    )
    const holdfast = await hurried({ workflows: [slow] })
    expect(await (await holdfast.start(slow)).result()).toBe('in time')
    expect(reasons.map((reason) => isHoldfastError(reason, 'STEP_TIMEOUT'))).toEqual([true])
  })
})

describe('a step that keeps the thread busy past its timeout', () => {
  const busy = (ms: number): void => {
    const end = performance.now() + ms
    while (performance.now() < end);
  }

  it.each([
    ['at once', async () => busy(60)],
    ['after an await', () => Promise.resolve().then(() => busy(60))],
  ])('%s has failed when it returns: its timer could not be called', async (_when, work) => {
    const flow = workflow('busy', { retry: 'none' }, (ctx) =>
      ctx.step(
        'think',
        async () => {
          await work()
          return 'late'
        },
        { timeout: 20, retry: 'none' },
      ),
    )
    const holdfast = await openWorking([flow])
    await expect((await holdfast.start(flow)).result()).rejects.toMatchObject({ cause: { code: 'STEP_TIMEOUT' } })
  })

  it('and is a transaction is rolled back', async () => {
    const { open: openHere, orders } = await ownTables()
    const flow = workflow('busy', { retry: 'none' }, (ctx) =>
      ctx.transaction(
        'think',
        (tx: Db) => {
          insertOrder(tx, 'late')
          busy(60)
        },
        { timeout: 20, retry: 'none' },
      ),
    )
    const holdfast = await openHere({ workflows: [flow] })
    await holdfast.work()
    await expect((await holdfast.start(flow)).result()).rejects.toMatchObject({ cause: { code: 'STEP_TIMEOUT' } })
    expect(orders()).toEqual([])
  })
})

describe('a failing body', () => {
  it('is tried three times by default, and keeps the steps that succeeded', async () => {
    let [bodies, steps] = [0, 0]
    const stumbling = workflow('stumbling', async (ctx) => {
      bodies += 1
      const step = await ctx.step('once', () => (steps += 1))
      if (bodies < 3) throw new Error('Stumbled')
      return step
    })
    const holdfast = await hurried({ workflows: [stumbling] })
    const run = await holdfast.start(stumbling)
    expect(await run.result()).toBe(1)
    expect([bodies, steps]).toEqual([3, 1])
    const failed = (await holdfast.journal(run)).filter((entry) => entry.kind === 'attempt-failed')
    expect(failed.map(({ name, meta }) => [name, (meta as { attempt: number }).attempt])).toEqual([
      [null, 1],
      [null, 2],
    ])
  })

  it('fails its run when the attempts are used up, with the last error', async () => {
    let bodies = 0
    const falling = workflow('falling', () => {
      throw new Error(`Fall ${(bodies += 1)}`)
    })
    const holdfast = await hurried({ workflows: [falling] })
    await expect((await holdfast.start(falling)).result()).rejects.toMatchObject({ cause: { message: 'Fall 3' } })
  })
})
