// A store that does not answer, seen through what the engine puts in front of it. Time belongs to the test.

import { describe, expect, it } from 'vitest'
import { HoldfastError, type ErrorCode } from '../../../../src/core/errors/error.ts'
import { boundedStore, kept } from '../../../../src/engine/store/bounded-store.ts'
import type { Store, StoreAdmin, StoreSecrets } from '../../../../src/store.ts'
import { MemoryStore } from '../../../../src/stores/memory/store.ts'
import { systemPorts } from '../../../../src/system.ts'
import { createVirtualClock } from '../../../../src/testing/virtual-clock.ts'
import { keepLines } from '../../../holdfast/open.ts'
import { changed } from '../../../holdfast/virtual-world.ts'

type Calls = Store & Omit<StoreAdmin, 'doctor'> & StoreSecrets
type Method = Exclude<keyof Calls, 'capabilities' | 'migrate' | 'close'>

const given: { readonly [Name in Method]: Parameters<Calls[Name]> } = {
  start: [[]],
  claim: [{ session: 's', selectors: [], limit: 1 }],
  load: [[]],
  commit: [[]],
  deliver: [[]],
  control: [[]],
  beat: [{ session: 's', leaseMs: 1 }],
  rescue: [{ limit: 1, maxCrashes: 5, failures: { crashed: '1', 'timed-out': '2', expired: '3' } }],
  doChores: [],
  release: [[]],
  get: [[]],
  changes: [0, 1],
  listen: [() => undefined],
  find: [{}, { limit: 1 }],
  count: [{}, 1],
  deadLetters: [{}, { limit: 1 }],
  settleDeadLetter: [{ runId: 'r', id: 'i' }, 'retried'],
  otherKeys: [[], 1],
  rewritePayloads: [{ runId: 'r', seq: 1, keyId: null, entries: [], messages: [] }],
  tokenKey: [],
}
const methods = Object.keys(given) as Method[]

function setUp(changes: (store: MemoryStore) => Partial<Calls> = () => ({}), limitMs = 5_000) {
  const clock = createVirtualClock()
  const store = new MemoryStore({ clock })
  const logger = keepLines()
  const limit = { ms: limitMs }
  const bounded = boundedStore(changed(store, changes(store)), { ...systemPorts(), clock, logger }, () => limit.ms)
  const call = (name: Method): Promise<unknown> =>
    Reflect.apply(bounded[name as keyof Store] as (...all: unknown[]) => Promise<unknown>, bounded, given[name])
  return { clock, store, bounded: bounded as Calls, call, logger, limit }
}

describe('a call of a store', () => {
  it.each(methods)('%s() that is never answered is rejected when its time is over, and not before', async (name) => {
    const { clock, call } = setUp(() => ({ [name]: () => new Promise(() => undefined) }))
    let refused: unknown = null
    call(name).catch((error: unknown) => (refused = error))
    await clock.advance(4_999)
    expect(refused).toBeNull()
    await clock.advance(1)
    expect(refused).toMatchObject({ code: 'STORE_UNAVAILABLE', details: { call: name, waitedMs: 5_000 } })
  })

  it.each(methods)('%s() that is answered leaves no timer behind', async (name) => {
    const { clock, call } = setUp()
    await call(name)
    expect(clock.pending).toBe(0)
  })

  it('keeps its own error, also if that is thrown and not rejected', async () => {
    const { bounded, clock } = setUp(() => ({
      get: () => Promise.reject(new Error('refused')),
      load: () => {
        throw new Error('thrown')
      },
    }))
    await expect(bounded.get([])).rejects.toThrow('refused')
    await expect(bounded.load([])).rejects.toThrow('thrown')
    expect(clock.pending).toBe(0)
  })

  it('is given up when the limit of its time says so: a lease that begins later shortens it', async () => {
    const { clock, call, limit } = setUp(() => ({ get: () => new Promise(() => undefined) }))
    limit.ms = 100
    const refused = call('get').catch((error: unknown) => error)
    await clock.advance(100)
    expect(await refused).toMatchObject({ code: 'STORE_UNAVAILABLE', details: { waitedMs: 100 } })
  })

  it('of listen() that is answered too late is taken back', async () => {
    let isListening = false
    const { clock, call } = setUp((store) => ({
      async listen() {
        await new Promise<void>((resolve) => void clock.after(6_000, resolve))
        isListening = true
        const unlisten = await store.listen(() => undefined)
        return () => {
          isListening = false
          unlisten()
        }
      },
    }))
    const listening = call('listen').catch((error: unknown) => error)
    await clock.advance(5_000)
    expect(await listening).toMatchObject({ code: 'STORE_UNAVAILABLE' })
    await clock.advance(1_000)
    expect(isListening).toBe(false)
  })

  it('that is not bounded goes through: what the store has besides is there, and what it has not is not', async () => {
    const { bounded, store } = setUp()
    expect(bounded.capabilities).toEqual(store.capabilities)
    expect('doctor' in bounded).toBe(true)
    expect('inTransaction' in bounded).toBe(false)
    await bounded.migrate()
    await bounded.close()
    await expect(bounded.get([])).rejects.toMatchObject({ code: 'CLOSED' })
  })
})

describe('a store that refuses work until an operator acts', () => {
  const refuse = (code: ErrorCode, message: string): Promise<never> => Promise.reject(new HoldfastError(code, message))
  const errors = (logger: ReturnType<typeof keepLines>): readonly string[] =>
    logger.lines.filter(({ level }) => level === 'error').map(({ message }) => message)

  it('is reported once for each reason, and again only after it was repaired', async () => {
    const line = { isUp: false }
    const { call, logger } = setUp((store) => ({
      claim: (request) => (line.isUp ? store.claim(request) : refuse('STORE_REFUSED', 'There is no table runs.')),
      beat: (request) => (line.isUp ? store.beat(request) : refuse('STORE_REFUSED', 'There is no table sessions.')),
    }))
    const ask = (name: Method): Promise<unknown> => call(name).catch(() => undefined)
    for (const name of ['claim', 'beat', 'claim', 'beat', 'claim'] as const) await ask(name)
    expect(errors(logger)).toEqual([
      expect.stringContaining('There is no table runs.'),
      expect.stringContaining('There is no table sessions.'),
    ])
    line.isUp = true
    await ask('claim')
    expect(logger.lines.at(-1)).toMatchObject({ level: 'info', details: { call: 'claim' } })
    line.isUp = false
    await ask('claim')
    await ask('beat')
    expect(errors(logger)).toHaveLength(3)
  })

  it('is not in the log where a caller hears of it, nor when it is only away', async () => {
    const { call, logger } = setUp(() => ({
      get: () => refuse('STORE_REFUSED', 'There is no table runs.'),
      claim: () => refuse('STORE_UNAVAILABLE', 'Away.'),
    }))
    await expect(call('get')).rejects.toMatchObject({ code: 'STORE_REFUSED' })
    await expect(call('claim')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    expect(logger.lines).toEqual([])
  })

  it('is to the work of a run as one that is away: it is kept', () => {
    const refused = new HoldfastError('STORE_REFUSED', 'There is no table runs.', { details: { sqlState: '42P01' } })
    expect(kept(refused)).toMatchObject({ code: 'STORE_UNAVAILABLE', cause: refused, details: { sqlState: '42P01' } })
    const other = new HoldfastError('ENTRY_REJECTED', 'Too large.')
    expect(kept(other)).toBe(other)
  })
})
