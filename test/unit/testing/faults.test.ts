import { describe, expect, it } from 'vitest'
import { MemoryStore } from '../../../src/stores/memory/store.ts'
import type { Hint, Store } from '../../../src/store.ts'
import {
  brokenDriver,
  createSeededRandom,
  createVirtualClock,
  faultAtCall,
  faultsByRate,
  withFaults,
  type FaultKind,
  type FaultPlan,
} from '../../../src/testing/index.ts'
import { createContractBench } from '../../../src/testing/contract/index.ts'

function rig(plan: FaultPlan) {
  const clock = createVirtualClock()
  const real = new MemoryStore({ clock })
  const met: string[] = []
  const store = withFaults(real, plan, { clock }, (method, kind) => void met.push(`${method} ${kind}`))
  const { newRun, message } = createContractBench({ store: real, clock })
  return { clock, real, store, met, newRun, message }
}

const meeting = (kind: FaultKind, options = {}) => rig(faultAtCall(1, kind, options))

/** How a call stands: whether it was answered, and with what. */
function watched<Answer>(call: Promise<Answer>) {
  const state: { answer?: Answer; error?: unknown; isSettled: boolean } = { isSettled: false }
  call.then(
    (answer) => Object.assign(state, { answer, isSettled: true }),
    (error: unknown) => Object.assign(state, { error, isSettled: true }),
  )
  return state
}

describe('a fault changes what the caller gets, never what the store does with a call', () => {
  it('before: an error, and nothing happened', async () => {
    const { store, real, newRun, met } = meeting('before')
    const run = newRun()
    await expect(store.start([run])).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    expect(await real.get([run.id])).toEqual([undefined])
    expect(met).toEqual(['start before'])
  })

  it('after: it took effect, and the caller gets an error all the same', async () => {
    const { store, real, newRun } = meeting('after', { error: brokenDriver })
    const run = newRun()
    await expect(store.start([run])).rejects.toThrow(TypeError)
    expect(await real.get([run.id])).toMatchObject([{ id: run.id }])
    const [again] = await store.start([run])
    expect(again?.created).toBe(true)
  })

  it.each(['slow', 'late'] as const)('%s: answered when the delay is over, and not before', async (kind) => {
    const { store, real, newRun, clock } = meeting(kind, { delayMs: 500 })
    const run = newRun()
    const call = watched(store.start([run]))
    await clock.advance(499)
    expect(call.isSettled).toBe(false)
    expect((await real.get([run.id]))[0] !== undefined).toBe(kind === 'slow')
    await clock.advance(1)
    expect(call.answer).toMatchObject([{ created: true, run: { id: run.id } }])
  })

  it('an error of the store is as slow as any other answer', async () => {
    const { store, real, clock } = meeting('slow', { delayMs: 500 })
    await real.close()
    const call = watched(store.get([]))
    await clock.advance(499)
    expect(call.isSettled).toBe(false)
    await clock.advance(1)
    expect(call.error).toMatchObject({ code: 'CLOSED' })
  })

  it.each(['lost-reply', 'lost-request'] as const)('%s: never answered', async (kind) => {
    const { store, real, newRun, clock } = meeting(kind)
    const run = newRun()
    const call = watched(store.start([run]))
    await clock.advance('1d')
    expect(call.isSettled).toBe(false)
    expect((await real.get([run.id]))[0] !== undefined).toBe(kind === 'lost-reply')
    expect(await store.get([run.id]), 'the next call is answered').toHaveLength(1)
  })

  it('what the store can never take spoils its batch, every time, and no other', async () => {
    const plan = { ...faultAtCall(0, 'before'), rejects: (item: unknown) => JSON.stringify(item).includes('poison') }
    const { store, real, newRun, message } = rig(plan)
    const [run] = await store.start([newRun()])
    const runId = String(run?.run?.id)
    const [good, bad] = [message(runId), message(runId, { data: '"poison"' })]
    for (let time = 0; time < 2; time += 1) {
      await expect(store.deliver([good, bad])).rejects.toMatchObject({ code: 'ENTRY_REJECTED' })
    }
    expect(await real.get([runId])).toMatchObject([{ inbox: 0 }])
    expect(await store.deliver([good])).toEqual([{ outcome: 'queued' }])
  })

  it('a store can always be closed', async () => {
    const { store, real, met } = meeting('lost-reply')
    await store.close()
    expect(met).toEqual([])
    await expect(real.get([])).rejects.toMatchObject({ code: 'CLOSED' })
  })
})

describe('nothing that crosses the port is shared', () => {
  it('a request that is changed after the call does not change what was asked', async () => {
    const { store, newRun, clock } = meeting('late')
    const tags = ['first']
    const run = newRun({ tags })
    const call = watched(store.start([run]))
    tags[0] = 'changed'
    await clock.advance(1_000)
    expect(call.answer).toMatchObject([{ run: { tags: ['first'] } }])
  })

  it('a store that shares its objects is found out by nobody behind it', async () => {
    const kept = { entries: [], messages: [] }
    const sharing = { load: async () => [kept] } as unknown as Store
    const store = withFaults(sharing, faultAtCall(0, 'before'), { clock: createVirtualClock() })
    const [loaded] = await store.load([])
    expect(loaded).toEqual(kept)
    expect(loaded).not.toBe(kept)
  })

  it('listeners hear of what happens, and can leave', async () => {
    const { store, newRun } = rig(faultAtCall(0, 'before'))
    const heard: Hint[] = []
    const leave = await store.listen((hint) => void heard.push(hint))
    const { type } = newRun()
    await store.start([newRun()])
    await Promise.resolve()
    expect(heard).toEqual([{ kind: 'ready', type }])
    leave()
    await store.start([newRun()])
    await Promise.resolve()
    expect(heard).toHaveLength(1)
  })
})

describe('which calls are befallen', () => {
  it('a countdown meets exactly the n-th call, and says whether it came', async () => {
    const plan = faultAtCall(3, 'before')
    const { store, met } = rig(plan)
    await store.get([])
    await store.changes(0, 1)
    expect(plan).toMatchObject({ isReached: false, calls: 2 })
    await expect(store.count({}, 1)).rejects.toThrow('cannot be reached')
    await store.get([])
    expect(plan).toMatchObject({ isReached: true, calls: 4 })
    expect(met).toEqual(['count before'])
  })

  const drawn = (seed: number, rates: Parameters<typeof faultsByRate>[1]): (FaultKind | null)[] => {
    const plan = faultsByRate(createSeededRandom(seed), rates)
    return Array.from({ length: 10_000 }, (_, call) => plan.next(call % 2 === 0 ? 'commit' : 'get'))
  }

  it('rates are kept, and a seed repeats itself', () => {
    const rates = { before: 0.1, after: 0.05, 'lost-reply': 0.02 }
    const faults = drawn(7, rates)
    expect(drawn(7, rates)).toEqual(faults)
    expect(drawn(8, rates)).not.toEqual(faults)
    const share = (kind: FaultKind | null): number => faults.filter((fault) => fault === kind).length / faults.length
    for (const [kind, rate] of Object.entries(rates)) expect(share(kind as FaultKind)).toBeCloseTo(rate, 1)
    expect(new Set(faults)).toEqual(new Set([null, 'before', 'after', 'lost-reply']))
  })

  it('to spare a method does not change what befalls the others', () => {
    const rates = { before: 0.3, slow: 0.3 }
    const all = drawn(3, rates)
    const some = drawn(3, { ...rates, methods: ['commit'] })
    expect(some.every((fault, call) => fault === (call % 2 === 0 ? all[call] : null))).toBe(true)
  })

  it('errors are of both kinds when some come from a broken driver, and delays stay within their bound', () => {
    const plan = faultsByRate(createSeededRandom(1), { broken: 0.5, maxDelayMs: 10 })
    const names = new Set(Array.from({ length: 100 }, () => plan.error().name))
    expect(names).toEqual(new Set(['TypeError', 'HoldfastError']))
    const delays = Array.from({ length: 100 }, () => plan.delayMs())
    expect(Math.max(...delays)).toBeLessThanOrEqual(10)
    expect(Math.min(...delays)).toBeGreaterThanOrEqual(0)
  })
})
