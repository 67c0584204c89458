// A store that fails as networks and drivers do: before a call took effect, after it did, late, or without an answer. Code
// that passes its tests on this store relies on nothing but answers.
//
// A fault never changes the effect of a call, only whether and when it happens and what the caller gets. Arguments and
// answers are copied, so that caller and store share no object, as over a network.

import { HoldfastError } from '../core/errors/error.ts'
import { randomFraction, type Clock, type Random } from '../core/runtime/ports.ts'
import type { Store, StoreAdmin, StoreTransactions } from '../store.ts'

/**
 * `before`: an error, and nothing happened. `after`: it took effect, and the caller gets an error. `slow`: it takes effect
 * at once and is answered late. `late`: it takes effect late and is answered then. `lost-reply`: it took effect and is never
 * answered. `lost-request`: nothing happened, and it is never answered.
 */
export type FaultKind = (typeof faultKinds)[number]

export const faultKinds = ['before', 'after', 'slow', 'late', 'lost-reply', 'lost-request'] as const

/**
 * The calls that can have a fault: every call but `close`, which must always be possible, and `inTransaction`, which only
 * uses a connection of the caller's. A transaction that fails `after` is one whose COMMIT was not answered.
 */
export type FaultyMethod = Exclude<
  keyof (Store & StoreAdmin & StoreTransactions),
  'capabilities' | 'close' | 'inTransaction'
>

/** Decides the fault of each call. */
export interface FaultPlan {
  /** Called once before each call; null for no fault. */
  next(method: FaultyMethod): FaultKind | null
  /** The error of a failing call. */
  error(): Error
  /** How late a slow answer is. */
  delayMs(): number
  /** Whether the store can never accept an item of a batch: every batch with such an item is refused as a whole. */
  rejects?(item: unknown): boolean
}

type Call = (...request: unknown[]) => Promise<unknown>

const batched: ReadonlySet<string> = new Set(['start', 'commit', 'deliver', 'control'])

/**
 * The same store, with faults between it and its caller.
 *
 * @example
 * const clock = createVirtualClock()
 * const plan = faultsByRate(createSeededRandom(1), { before: 0.01, after: 0.01, 'lost-reply': 0.001 })
 * const unreliable = (store: Store) => withFaults(store, plan, { clock })
 */
export function withFaults<Target extends Store>(
  store: Target,
  plan: FaultPlan,
  { clock }: { readonly clock: Pick<Clock, 'after'> },
  onFault: (method: FaultyMethod, kind: FaultKind) => void = () => undefined,
): Target {
  const later = (): Promise<void> => new Promise((resolve) => void clock.after(plan.delayMs(), resolve))

  async function call(method: FaultyMethod, perform: () => Promise<unknown>): Promise<unknown> {
    const kind = plan.next(method)
    if (kind === null) return perform()
    onFault(method, kind)
    switch (kind) {
      case 'before':
        throw plan.error()
      case 'after':
        await perform()
        throw plan.error()
      case 'slow': {
        // An error is as slow as any other answer.
        const answer = perform()
        await Promise.all([answer.catch(() => undefined), later()])
        return answer
      }
      case 'late':
        await later()
        return perform()
      case 'lost-reply':
        await perform()
        return never()
      case 'lost-request':
        return never()
    }
  }

  return new Proxy(store, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key)
      if (typeof value !== 'function') return value
      const bound = value.bind(target) as Call
      // Neither these nor a limit are calls over a wire.
      if (key === 'close' || key === 'inTransaction' || key === 'limit') return bound
      const method = key as FaultyMethod
      // A connection cannot be copied, and a transaction hands out nothing else.
      if (method === 'transact') return (...request: unknown[]) => call(method, () => bound(...request))
      return (...request: unknown[]): Promise<unknown> => {
        const sent = request.map(copied)
        return call(method, async () => {
          if (batched.has(method)) refusePoison(plan, sent[0] as readonly unknown[])
          return copied(await bound(...sent))
        })
      }
    },
  })
}

function refusePoison(plan: FaultPlan, items: readonly unknown[]): void {
  if (!items.some((item) => plan.rejects?.(item) === true)) return
  throw new HoldfastError('ENTRY_REJECTED', 'The store cannot take one of these items: it was made to refuse it.')
}

/** A listener cannot be copied, but its hints are. */
function copied(value: unknown): unknown {
  if (typeof value !== 'function') return structuredClone(value)
  const listener = value as (...heard: unknown[]) => unknown
  return (...heard: unknown[]): unknown => listener(...heard.map((one) => structuredClone(one)))
}

function never(): Promise<never> {
  return new Promise(() => undefined)
}

/** The error of a store that cannot be reached. */
export function unavailable(): HoldfastError {
  return new HoldfastError('STORE_UNAVAILABLE', 'The store cannot be reached: a fault was injected.')
}

/** The error of a faulty driver: it has no code and no family. */
export function brokenDriver(): TypeError {
  return new TypeError("Cannot read properties of undefined (reading 'rows')")
}

/** The rate of each kind of fault, from 0 to 1; together at most 1. */
export interface FaultRates extends Readonly<Partial<Record<FaultKind, number>>> {
  /** The share of errors that are a TypeError instead of STORE_UNAVAILABLE. @default 0 */
  readonly broken?: number
  /** The longest delay. @default 5,000 */
  readonly maxDelayMs?: number
  /** Only these methods have faults. @default all */
  readonly methods?: readonly FaultyMethod[]
}

/** Random faults: the same seed and the same calls give the same faults. */
export function faultsByRate(random: Random, rates: FaultRates): FaultPlan {
  const { broken = 0, maxDelayMs = 5_000, methods } = rates
  return {
    next(method) {
      // Drawn for every call, so that excluding a method does not change the faults of the others.
      let rest = randomFraction(random)
      if (methods !== undefined && !methods.includes(method)) return null
      for (const kind of faultKinds) {
        rest -= rates[kind] ?? 0
        if (rest < 0) return kind
      }
      return null
    },
    error: () => (randomFraction(random) < broken ? brokenDriver() : unavailable()),
    delayMs: () => Math.ceil(randomFraction(random) * maxDelayMs),
  }
}

export interface FaultAtCallOptions {
  /** @default STORE_UNAVAILABLE */
  readonly error?: () => Error
  /** @default 1,000 */
  readonly delayMs?: number
}

/** One fault, at exactly the n-th call, counted from 1. */
export function faultAtCall(
  n: number,
  kind: FaultKind,
  { error = unavailable, delayMs = 1_000 }: FaultAtCallOptions = {},
): FaultPlan & { readonly isReached: boolean; readonly calls: number } {
  let calls = 0
  return {
    next: () => ((calls += 1) === n ? kind : null),
    error,
    delayMs: () => delayMs,
    get isReached() {
      return calls >= n
    },
    get calls() {
      return calls
    },
  }
}
