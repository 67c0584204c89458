// Every code that can be met through the public surface, each provoked once. What is left is listed with the reason why
// nobody can meet it yet, so that a new code must be put on one side or the other.

import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import {
  createHoldfast,
  HoldfastError,
  isHoldfastError,
  jsonCodec,
  topic,
  workflow,
  type Codec,
  type ErrorCode,
  type HoldfastOptions,
} from 'holdfast'
import { crashEverywhere, createTest } from 'holdfast/testing'
import { errorCodes } from '../../src/core/errors/error.ts'
import type { Store } from '../../src/store.ts'
import { systemPorts } from '../../src/system.ts'
import { until } from './gate.ts'
import { hurriedClock } from './hurried-clock.ts'
import { keepLines, memoryStore, open, openWorking } from './open.ts'

const greet = workflow('greet', (_ctx, name: string) => name)
const waits = workflow('waits', (ctx) => ctx.receive('never'))
const checked = workflow('checked', { input: z.string() }, (_ctx, text) => text)
const id = '01890a5d-ac96-774b-bcce-b302099a8057'

/** Runs a workflow and gives what its run failed with. */
async function causeOf(body: Parameters<typeof workflow>[1]): Promise<unknown> {
  const failing = workflow('failing', { retry: 'none' }, body as () => unknown)
  const holdfast = await openWorking([failing])
  const error: unknown = await (await holdfast.start(failing)).result().catch((thrown: unknown) => thrown)
  return (error as Error).cause
}

/** The memory store, but for what one test needs to go wrong. */
function faulty(change: (store: Store) => Partial<Store>): Store {
  const store: Store = memoryStore()
  const changed = change(store)
  return new Proxy(store, {
    get(target, key) {
      const value: unknown = Reflect.get(key in changed ? changed : target, key)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
}

/** What the log says about a run whose commits the store refuses. */
async function loggedAfter(reason: 'lease-lost' | 'stale'): Promise<unknown> {
  const logger = keepLines()
  const store = faulty(() => ({ commit: () => Promise.resolve([{ outcome: 'refused', reason } as const]) }))
  const holdfast = await openWorking([greet], { store, logger })
  await holdfast.start(greet, 'Ada')
  await until(() => logger.lines.length > 0)
  return logger.lines[0]?.details['error']
}

async function thrownBy(ask: () => unknown): Promise<unknown> {
  try {
    return await ask()
  } catch (error) {
    return error
  }
}

const provocations: Partial<Record<ErrorCode, () => Promise<unknown>>> = {
  INVALID_OPTION: () => thrownBy(() => createHoldfast({ store: 'memory:', workers: 4 } as HoldfastOptions)),
  INVALID_INPUT: async () => {
    const holdfast = await open({ workflows: [checked] })
    return thrownBy(() => holdfast.start('checked', 42))
  },
  INVALID_DURATION: () => causeOf(async (ctx) => void (await ctx.sleep('5 fortnights' as never))),
  INVALID_NAME: () => causeOf((ctx) => ctx.step('', () => 1)),
  NOT_STORABLE: async () => {
    const holdfast = await open({ workflows: [greet] })
    return thrownBy(() => holdfast.start('greet', () => 'a function'))
  },
  WORKFLOW_EXISTS: () =>
    thrownBy(() => createHoldfast({ store: 'memory:', workflows: [greet, workflow('greet', () => 1)] })),
  WORKFLOW_UNKNOWN: async () => {
    const holdfast = await open({ workflows: [greet] })
    return thrownBy(() => holdfast.start('great', 'Ada'))
  },
  STORE_UNKNOWN: () => thrownBy(() => createHoldfast({ store: 'papyrus:scroll' })),
  CRASH_UNSAFE: () => thrownBy(() => crashEverywhere(waits, undefined)),
  BODY_UNSAFE: async () => {
    const t = await createTest({ workflows: [workflow('hasty', async () => Date.now())] })
    await t.start('hasty')
    const error = await thrownBy(() => t.drain())
    await t.close()
    return error
  },
  STEP_UNKNOWN: async () => {
    const t = await createTest({ workflows: [greet] })
    t.fail('gret')
    return thrownBy(() => t.close())
  },
  CLOSED: async () => {
    const holdfast = await open({ workflows: [greet] })
    await holdfast.close()
    return thrownBy(() => holdfast.start(greet, 'Ada'))
  },
  RUN_NOT_FOUND: async () => {
    const holdfast = await open()
    return thrownBy(() => holdfast.get(id))
  },
  RUN_EXISTS: async () => {
    const holdfast = await open({ workflows: [greet, checked] })
    await holdfast.start(greet, 'Ada', { id })
    return thrownBy(() => holdfast.start(checked, 'Ada', { id }))
  },
  INPUT_CONFLICT: async () => {
    const holdfast = await open({ workflows: [greet] })
    await holdfast.start(greet, 'Ada', { idempotencyKey: 'request-1' })
    return thrownBy(() => holdfast.start(greet, 'Bo', { idempotencyKey: 'request-1' }))
  },
  WRONG_STATUS: async () => {
    const holdfast = await open({ workflows: [greet] })
    const run = await holdfast.start(greet, 'Ada')
    return thrownBy(() => holdfast.resume(run))
  },
  MAILBOX_FULL: async () => {
    const holdfast = await open({ workflows: [waits], limits: { mailbox: 1 } })
    const run = await holdfast.start(waits)
    await holdfast.signal(run, 'one')
    return thrownBy(() => holdfast.signal(run, 'two'))
  },
  TOPIC_FULL: async () => {
    const holdfast = await open({ limits: { retained: 1 } })
    const jobs = topic<number>('jobs', { delivery: 'one' })
    await holdfast.broadcast(jobs, 1)
    return thrownBy(() => holdfast.broadcast(jobs, 2))
  },
  STALE_WRITE: () => loggedAfter('stale'),
  LEASE_LOST: () => loggedAfter('lease-lost'),
  RUN_FAILED: async () => {
    const failing = workflow('failing', { retry: 'none' }, () => Promise.reject(new Error('No')))
    const holdfast = await openWorking([failing])
    const run = await holdfast.start(failing)
    return thrownBy(() => run.result())
  },
  RUN_CANCELLED: async () => {
    const holdfast = await open({ workflows: [greet] })
    const run = await holdfast.start(greet, 'Ada')
    await run.cancel({ reason: 'nobody is there' })
    return thrownBy(() => run.result())
  },
  ENTRY_REJECTED: async () => {
    let refused = false
    const store = faulty((real) => ({
      async commit(transitions) {
        if (refused) return real.commit(transitions)
        refused = true
        throw new HoldfastError('ENTRY_REJECTED', 'This entry can never be stored. Nothing else is harmed.')
      },
    }))
    const holdfast = await openWorking([greet], { store })
    const run = await holdfast.start(greet, 'Ada')
    return ((await thrownBy(() => run.result())) as Error).cause
  },
  BUG: async () => {
    const store = faulty((real) => ({
      claim: async (request) => {
        const claimed = await real.claim({ ...request, selectors: [{ type: 'greet', version: 1 }] })
        return { ...claimed, runs: claimed.runs.map((run) => ({ ...run, type: 'unheard-of' })) }
      },
    }))
    const starter = await open({ store, workflows: [greet] })
    const run = await starter.start(greet, 'Ada')
    await openWorking([checked], { store })
    return ((await thrownBy(() => run.result())) as Error).cause
  },
  RUN_CRASHED: async () => {
    const store = memoryStore()
    const strict = workflow('strict', { maxCrashes: 3, onCrashes: 'fail' }, (_ctx, name: string) => name)
    const starter = await open({ store, workflows: [strict] })
    const run = await starter.start(strict, 'Ada')
    const selectors = [{ type: 'strict', version: 1 }]
    // Three processes that claim the run and are never heard of again; the last one performs nothing else.
    for (const apart of [false, false, true]) {
      const session = `dead-${String(apart)}-${Math.random()}`
      await store.beat({ session, leaseMs: 60_000 })
      const { runs } = await store.claim({ session, selectors, limit: 1, isolated: apart })
      const [claimed] = runs
      if (claimed === undefined) throw new Error('Nothing was claimed')
      const held = [{ runId: claimed.id, token: claimed.token, extendMs: null, begun: 3 }]
      await store.beat({ session, leaseMs: 60_000, ...(apart ? { held } : {}), end: !apart })
      const dead = { limit: 10, maxCrashes: 99, failures: { crashed: '1', 'timed-out': '2', expired: '3' } }
      if (apart) await store.beat({ session, leaseMs: 0, end: true })
      else await store.rescue(dead)
    }
    await openWorking([strict], { store })
    return ((await thrownBy(() => run.result())) as Error).cause
  },
  RUN_TIMEOUT: async () => {
    const slow = workflow('slow', async (ctx) => void (await ctx.sleep('1 day')))
    const holdfast = await open({ workflows: [slow] })
    await holdfast.work({ lease: 60 })
    const run = await holdfast.start(slow, undefined, { timeout: 1 })
    return ((await thrownBy(() => run.result())) as Error).cause
  },
  RUN_EXPIRED: async () => {
    const store = memoryStore()
    const starter = await open({ store, workflows: [greet] })
    const run = await starter.start(greet, 'Ada', { expiresIn: 1 })
    const worker = await open({ store })
    await worker.work({ lease: 60 })
    return ((await thrownBy(() => run.result())) as Error).cause
  },
  STEP_TIMEOUT: () => causeOf((ctx) => ctx.step('hang', () => new Promise<never>(() => undefined), { timeout: 1 })),
  PAYLOAD_CORRUPT: async () => {
    const store = memoryStore()
    const json = jsonCodec()
    const secret: Codec = {
      encode: (value, place) => `sealed ${json.encode(value, place)}`,
      decode: (text, place) => json.decode(text.slice('sealed '.length), place),
    }
    const writer = await open({ store, workflows: [greet], codec: secret })
    const run = await writer.start(greet, 'Ada')
    const reader = await open({ store })
    await writer.work()
    await run.result()
    return thrownBy(() => reader.run(run).result())
  },
  ALREADY_ANSWERED: async () => {
    const twice = workflow('twice', { retry: 'none' }, async (ctx) => {
      const message = await ctx.receive('n', { message: true })
      await message.reply(1)
      await message.reply(2)
    })
    const holdfast = await open({ workflows: [twice] })
    await holdfast.work()
    const run = await holdfast.start(twice)
    await run.ask('n')
    const error = await thrownBy(() => run.result())
    return (error as Error).cause
  },
  ASK_REFUSED: async () => {
    const refusing = workflow('refusing', async (ctx) => (await ctx.receive('n', { message: true })).refuse('no'))
    const holdfast = await open({ workflows: [refusing] })
    await holdfast.work()
    const run = await holdfast.start(refusing)
    return thrownBy(() => run.ask('n'))
  },
  ASK_UNANSWERED: async () => {
    const holdfast = await open({ workflows: [greet] })
    const run = await holdfast.start(greet, 'Ada')
    await run.cancel()
    return thrownBy(() => run.ask('n'))
  },
  ASK_TIMEOUT: async () => {
    const holdfast = await open({ workflows: [greet] })
    const run = await holdfast.start(greet, 'Ada')
    return thrownBy(() => run.ask('n', 1, { timeout: 0 }))
  },
  RESULT_TIMEOUT: async () => {
    const holdfast = await open({ workflows: [greet] })
    const run = await holdfast.start(greet, 'Ada')
    return thrownBy(() => run.result({ timeout: 0 }))
  },
  STORE_UNAVAILABLE: async () => {
    const offload = {
      thresholdBytes: 1,
      put: () => Promise.reject(new Error('The bucket is gone')),
      get: () => Promise.reject(new Error('The bucket is gone')),
    }
    const holdfast = await open({ workflows: [greet], offload })
    return thrownBy(() => holdfast.start(greet, 'Ada'))
  },
  STORE_REFUSED: () => thrownBy(() => createHoldfast({ store: 'sqlite::memory:', migrate: false })),
}

/** Codes that another test meets: below, in the tests of the SQLite store, of the committer and of children. */
const metElsewhere: readonly ErrorCode[] = [
  'DRIFT',
  'SCHEMA_TOO_NEW',
  'RUN_CANCELLING',
  'RUN_RESUMED',
  'CHILD_FAILED',
  'CHILD_CANCELLED',
  'CHILD_REFUSED',
  // In test/holdfast/deciders, test/unit/deciders and test/testing.
  'DECIDE_FAILED',
  'DECIDE_UNSAFE',
  'EVENT_UNREADABLE',
  'EXECUTE_TIMEOUT',
  'INPUT_REJECTED',
  'LAW_BROKEN',
  // In test/holdfast/projections.
  'PROJECTION_BEHIND',
  'PROJECTION_CONFLICT',
  'PROJECTION_UNKNOWN',
]

describe('error codes', () => {
  it('are all provoked', () => {
    expect([...Object.keys(provocations), ...metElsewhere].toSorted()).toEqual(errorCodes.toSorted())
  })

  it.each(Object.entries(provocations))('%s is met, with a message of whole sentences', async (code, provoke) => {
    const error = await provoke()
    expect(isHoldfastError(error, code as ErrorCode)).toBe(true)
    expect(error).toBeInstanceOf(HoldfastError)
    const { message, family } = error as HoldfastError
    expect(message).toMatch(/^[A-Za-z].{20,}$/s)
    expect(family).toBe(new HoldfastError(code as ErrorCode, '').family)
  })
})

describe('a commit that a driver cannot even send', () => {
  it('fails its run, and no other, instead of being sent again for ever', async () => {
    let sendings = 0
    const store = faulty((real) => ({
      async commit(transitions) {
        const isTooLong = transitions.some(({ append }) => append.some(({ name }) => name === 'too long'))
        if (isTooLong) sendings += 1
        if (isTooLong) throw new HoldfastError('BUG', 'Invalid string length')
        return real.commit(transitions)
      },
    }))
    const long = workflow('long', (ctx) => ctx.step('too long', () => 1))
    const holdfast = await openWorking([long, greet], { store })
    const [run, other] = await Promise.all([holdfast.start(long), holdfast.start(greet, 'Ada')])
    expect(await thrownBy(() => run.result())).toMatchObject({ code: 'RUN_FAILED', cause: { code: 'BUG' } })
    await other.result()
    expect(sendings).toBeLessThanOrEqual(2)
  })
})

describe('drift', () => {
  it('pauses a run whose code no longer asks for what its journal has, and says so in journal and log', async () => {
    const store = memoryStore()
    const logger = keepLines()
    const before = workflow('changing', async (ctx) => {
      await ctx.step('charge', () => 1)
      await ctx.step('hang', () => new Promise<never>(() => undefined))
    })
    const after = workflow('changing', (ctx) => ctx.step('bill', () => 1))
    const first = await open({ store, workflows: [before] })
    const worker = await first.work({ shutdownTimeout: 0 })
    const run = await first.start(before)
    await until(async () => (await first.journal(run)).length === 2)
    await worker.stop()

    const { turns, random } = systemPorts()
    const ports = { clock: hurriedClock(), turns, random }
    const second = await openWorking([after], { store, logger, ports })
    await until(async () => (await run.status()) === 'paused')
    const message = expect.stringMatching(/step-succeeded "charge".*step "bill"/s) as string
    expect((await second.journal(run)).at(-1)).toMatchObject({ kind: 'paused', meta: { reason: 'drift', message } })
    expect(logger.lines.map(({ message }) => message)).toContainEqual(
      expect.stringContaining(`Run ${run.id} of "changing" is paused (drift): The code changed`),
    )
    expect(logger.lines.map(({ details }) => details['error'])).toContainEqual(
      expect.objectContaining({ code: 'DRIFT' }),
    )
    expect(logger.lines).toContainEqual(expect.objectContaining({ level: 'error', message }))
  })
})
