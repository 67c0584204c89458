// The store as this process uses it: every call is answered in time, or rejected with STORE_UNAVAILABLE, also if the store, its
// driver or the network hangs. A call that was given up may take effect all the same, and each of them is made for that:
//
//   start, commit, deliver, control   carry ids, and are sent again under them
//   claim                           leases runs without this process knowing: the next heartbeats report them as unknown leases,
//                                   and they are given back
//   beat                            counts only once it is answered, so this process never considers its lease alive for longer
//                                   than other workers do
//   rescue, doChores, release       do nothing a second time
//   commandProjection               is fenced by a token and a position: a holder without an answer reads the row
//   listen                          is taken back when its answer comes late
//
// A store in this process answers without a turn of the event loop, so a loop of awaited calls would keep timers from firing, and
// heartbeats with them. So now and then an answer to a client comes with the next turn.
//
// Left alone are transactions of users, which last as long as their work does; `migrate` and `doctor`, which read or write
// everything; and `close`.

import { Deferred } from '../../core/runtime/deferred.ts'
import { formatMs } from '../../core/definition/duration.ts'
import { HoldfastError, isHoldfastError, isOfOneRow } from '../../core/errors/error.ts'
import type { Logger, Ports } from '../../core/runtime/ports.ts'
import { CallTimeouts, type TimedCall } from './call-timeouts.ts'
import type { BatchOptions, Store, StoreAdmin, StoreProjections, StoreSecrets } from '../../store.ts'

type BoundedMethod =
  | Exclude<keyof Store, 'capabilities' | 'migrate' | 'close'>
  | Exclude<keyof StoreAdmin, 'doctor'>
  | keyof StoreProjections
  | keyof StoreSecrets

const boundedMethods: Readonly<Record<BoundedMethod, true>> = {
  start: true,
  claim: true,
  load: true,
  commit: true,
  deliver: true,
  control: true,
  beat: true,
  rescue: true,
  doChores: true,
  release: true,
  get: true,
  changes: true,
  listen: true,
  find: true,
  count: true,
  deadLetters: true,
  settleDeadLetter: true,
  otherKeys: true,
  rewritePayloads: true,
  tokenKey: true,
  projections: true,
  commandProjection: true,
  feedEnd: true,
}

/** The methods that only workers call. Their errors reach only the log. */
const workersMethods: ReadonlySet<PropertyKey> = new Set(['claim', 'commit', 'beat', 'rescue', 'doChores', 'release'])

/** The methods that take a batch, with options that may bound its time. */
const batchMethods: ReadonlySet<PropertyKey> = new Set(['start', 'commit', 'deliver'])

type Call = (...given: readonly unknown[]) => Promise<unknown>

/** For so long the answers that clients get may follow from each other without a turn of the event loop. */
const turnMs = 10

/** The same store, of which no call takes longer than `limitMs` says at that time. */
export function boundedStore(
  store: Store,
  {
    clock,
    logger,
    turns,
    watch = new CallTimeouts(clock),
  }: Pick<Ports, 'clock' | 'logger' | 'turns'> & { readonly watch?: CallTimeouts },
  limitMs: () => number,
): Store {
  const refusals = new Refusals(logger)
  let turnedAt = clock.monotonic()
  /** The event loop is to turn before an answer of that call is handed on: that costs clients one turn in 10 ms at most. */
  const mustTurn = (): boolean => {
    const now = clock.monotonic()
    if (now - turnedAt < turnMs) return false
    turnedAt = now
    return true
  }
  const methods = store as unknown as Readonly<Record<BoundedMethod, Call>>
  const bounded = (name: BoundedMethod): Call => {
    const isBatch = batchMethods.has(name)
    // Journals are loaded for workers.
    const isWorkers = workersMethods.has(name) || name === 'load'
    const resolveNext = (call: BoundedCall, value: unknown): void => turns.next(() => call.resolve(value))
    return (...given) => {
      const ms = isBatch ? Math.min(limitMs(), batchLimitMs(given)) : limitMs()
      const call = new BoundedCall(name, ms)
      watch.begin(call, ms)
      const answer = (value: unknown): void => {
        if (call.isOver) return takeBack(name, value)
        watch.answered(call)
        refusals.answered(name)
        if (!isWorkers && mustTurn()) resolveNext(call, value)
        else call.resolve(value)
      }
      const refuse = (error: unknown): void => {
        watch.answered(call)
        refusals.heard(name, error)
        call.reject(error)
      }
      try {
        // Looked up with every call: a method of the store that was replaced is used by all calls from then on.
        methods[name](...given).then(answer, refuse)
      } catch (error) {
        refuse(error)
      }
      return call.promise
    }
  }

  const others = new Proxy({} as Store, {
    get: (_nothing, key) => {
      const value: unknown = Reflect.get(store, key, store)
      return typeof value === 'function' ? (value.bind(store) as unknown) : value
    },
    has: (_nothing, key) => key in store,
    set: (_nothing, key, value) => Reflect.set(store, key, value, store),
  })
  // Methods that are called with every step are found without the proxy.
  const facade = Object.create(others) as Store
  for (const name of Object.keys(boundedMethods) as BoundedMethod[]) {
    if (typeof methods[name] === 'function') Object.defineProperty(facade, name, { value: bounded(name) })
  }
  return facade
}

class BoundedCall extends Deferred<unknown> implements TimedCall {
  overAt = 0
  before: TimedCall | null = null
  behind: TimedCall | null = null
  isOver = false
  private readonly name: string
  private readonly ms: number

  constructor(name: string, ms: number) {
    super()
    this.name = name
    this.ms = ms
  }

  expire(): void {
    this.isOver = true
    this.reject(unanswered(this.name, this.ms))
  }
}

function batchLimitMs([, options]: readonly unknown[]): number {
  return (options as BatchOptions | undefined)?.timeoutMs ?? Number.POSITIVE_INFINITY
}

/** An answer that comes too late has no caller, but a listener would be called for ever. */
function takeBack(name: string, value: unknown): void {
  if (name === 'listen' && typeof value === 'function') (value as () => void)()
}

/** Whether a call got no answer at all: neither from the store nor from the connection. */
export function isUnanswered(error: unknown): boolean {
  return isHoldfastError(error, 'STORE_UNAVAILABLE') && error.details['call'] !== undefined
}

function unanswered(name: string, ms: number): HoldfastError {
  return new HoldfastError(
    'STORE_UNAVAILABLE',
    `The store has not answered ${name}() for ${formatMs(ms)}. The request may or may not have taken effect.`,
    { details: { call: name, waitedMs: ms } },
  )
}

/** Says once what an operator must repair, and once that it is repaired. Until then workers ask again and again. */
class Refusals {
  private readonly logger: Logger
  /** The messages that were logged, and the method that each was about. */
  private readonly said = new Map<string, { readonly of: string; readonly isRow: boolean }>()

  constructor(logger: Logger) {
    this.logger = logger
  }

  heard(name: string, error: unknown): void {
    if (!workersMethods.has(name) || !isHoldfastError(error, 'STORE_REFUSED') || this.said.has(error.message)) return
    this.said.set(error.message, { of: name, isRow: isOfOneRow(error) })
    this.logger.error(
      `The store refuses work until an operator acts: ${error.message} This worker keeps its work and asks again until it may.`,
      { error, call: name },
    )
  }

  answered(name: string): void {
    if (this.said.size === 0) return
    for (const [message, { of, isRow }] of this.said) {
      // That others are taken says nothing of a row that is refused.
      if (of !== name || isRow) continue
      this.said.delete(message)
      this.logger.info('The store takes work again.', { call: name })
    }
  }
}

/** For the work of a run, which is kept and sent again also while an operator has to repair the store. */
export function kept(error: unknown): unknown {
  if (!isHoldfastError(error, 'STORE_REFUSED')) return error
  return new HoldfastError('STORE_UNAVAILABLE', error.message, { cause: error, details: error.details })
}
