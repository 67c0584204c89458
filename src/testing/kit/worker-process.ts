// A worker process inside a test, which can die as by `kill -9`: from then on nothing that it awaits ever settles: no timer,
// no turn, no result of a step and no answer of the store. Nothing is rejected either, because no `finally` runs after a
// kill. The caller that kills it decides whether a request in flight has reached the store.
//
//   booting → working   its session is open, and it has taken over the runs of dead processes
//   any     → dead      killed; the next process is another object, and shares nothing with it but the store

import type { Bodies, Cancel, Clock, Ports, Turns } from '../../core/runtime/ports.ts'
import type { Transition } from '../../core/model/transition.ts'
import type { TransactionRunner } from '../../engine/store/transact.ts'
import type { RunningWorker } from '../../holdfast.ts'
import type { Hint, RescueRequest, Store, StoreTransactions, TransactOptions, TransactionStore } from '../../store.ts'
import type { Attempts, Doer } from './attempts.ts'

/** Whether, and when, a process dies at a commit: before it takes effect, or after that and before it is answered. */
export type Death = 'before' | 'after' | null

/** The surroundings of a process. */
export interface Surroundings {
  readonly store: Store
  readonly clock: Clock
  readonly turns: Turns
  readonly attempts: Attempts
  /** Watches bodies; null if they are not checked. */
  readonly bodies: Bodies | null
  /** A process is about to commit. */
  readonly onCommit: (transitions: readonly Transition[]) => Death
  readonly onDeath: () => void
  /** A write may have changed the timeout of a run. */
  readonly onWrite: () => void
}

export class WorkerProcess implements Doer {
  isAlive = true
  /** Its takeover of dead processes. */
  rescueRequest: RescueRequest | null = null
  private worker: RunningWorker | null = null
  private readonly around: Surroundings
  private readonly timers = new Set<Cancel>()
  private readonly sessions = new Set<string>()
  /** The pending transitions in transactions of the user's own library, by its transaction object. */
  private readonly lent = new Map<unknown, Transition[]>()
  /** Give back places in the queue of transactions. */
  private readonly reserved = new Set<() => void>()
  private unlisten: Cancel = () => undefined
  private settleUp: () => void = () => undefined
  private settleDead: () => void = () => undefined
  /** Settles when it works, or is dead. */
  readonly up = new Promise<void>((resolve) => (this.settleUp = resolve))
  private readonly dead = new Promise<void>((resolve) => (this.settleDead = resolve))

  constructor(around: Surroundings) {
    this.around = around
  }

  /** Opens a Holdfast with ports and a store connection that are cut off when this process dies. */
  async boot(
    open: (store: Store, ports: Omit<Ports, 'random' | 'digest' | 'logger'>) => Promise<RunningWorker>,
  ): Promise<void> {
    try {
      this.worker = await open(this.line(), this.ports())
    } finally {
      this.settleUp()
    }
  }

  /** The user's function that begins a transaction, for as long as this process lives. */
  transactionBy(own: TransactionRunner): TransactionRunner {
    return (work, options) =>
      this.mortal((guarded) =>
        own(async (tx) => {
          const transitions: Transition[] = []
          this.lent.set(tx, transitions)
          try {
            return await guarded(transitions, work(tx))
          } finally {
            this.lent.delete(tx)
          }
        }, options),
      )
  }

  /** Fetches control requests for its runs at once. */
  beat(): void {
    if (this.isAlive) this.worker?.beat()
  }

  /** Ends it, and its sessions. */
  async kill(): Promise<void> {
    if (this.die()) await this.bury()
  }

  private die(): boolean {
    if (!this.isAlive) return false
    this.isAlive = false
    for (const cancel of this.timers) cancel()
    this.timers.clear()
    for (const giveBack of this.reserved) giveBack()
    this.reserved.clear()
    this.unlisten()
    this.around.attempts.died(this)
    this.settleDead()
    return true
  }

  /** Its sessions end at once, as if its lease had expired. */
  private async bury(): Promise<void> {
    for (const session of this.sessions) await this.around.store.beat({ session, leaseMs: 1, end: true })
    this.settleUp()
    this.around.onDeath()
  }

  private ports(): Omit<Ports, 'random' | 'digest' | 'logger'> {
    const { clock, turns, attempts, bodies } = this.around
    return {
      ...(bodies === null ? {} : { bodies }),
      clock: {
        // The store of the world uses the same clock, so there is no drift.
        drift: 0,
        now: () => clock.now(),
        monotonic: () => clock.monotonic(),
        after: (ms, wake) => {
          const cancel: Cancel = clock.after(ms, () => {
            this.timers.delete(cancel)
            wake()
          })
          this.timers.add(cancel)
          return () => {
            this.timers.delete(cancel)
            cancel()
          }
        },
      },
      turns: { next: (call) => turns.next(() => (this.isAlive ? call() : undefined)) },
      effects: attempts.of(this),
    }
  }

  /** The connection to the store. */
  private line(): Store {
    const { store, onWrite } = this.around
    const own: Partial<Store & StoreTransactions> = {
      commit: (transitions) => {
        onWrite()
        return this.commit(transitions, () => store.commit(transitions))
      },
      beat: (request) => {
        this.sessions.add(request.session)
        return this.answered(store.beat(request))
      },
      rescue: (request) => {
        this.rescueRequest = request
        return this.answered(store.rescue(request))
      },
      listen: (onHint) => this.listen(onHint),
      // Closing it would affect other processes, which still need it.
      close: () => Promise.resolve(),
    }
    if (isTransactional(store)) {
      own.transact = (work, options) => this.transact(store, work, options)
      own.inTransaction = (handle) => noting(store.inTransaction(handle), this.lent.get(handle) ?? [])
      if (store.reserve !== undefined) own.reserve = (signal) => this.reserve(store, signal)
    }
    return new Proxy(store, {
      get: (target, name): unknown => {
        const mine: unknown = Reflect.get(own, name)
        if (mine !== undefined) return mine
        const theirs: unknown = Reflect.get(target, name, target)
        if (typeof theirs !== 'function') return theirs
        // All processes share the store, so the limit of one is not set on it.
        if (name === 'limit') return theirs.bind(target) as unknown
        return (...request: unknown[]): unknown =>
          this.answered(Reflect.apply(theirs, target, request) as Promise<unknown>)
      },
    })
  }

  /** An answer, unless the process has died. */
  private answered<Answer>(answer: Promise<Answer>): Promise<Answer> {
    return new Promise((resolve, reject) => {
      answer.then(
        (value) => (this.isAlive ? resolve(value) : undefined),
        (error: unknown) => (this.isAlive ? reject(error) : undefined),
      )
    })
  }

  private async commit<Answer>(transitions: readonly Transition[], send: () => Promise<Answer>): Promise<Answer> {
    if (!this.isAlive) return nothing()
    const death = this.around.onCommit(transitions)
    if (death === 'before') {
      await this.kill()
      return nothing()
    }
    const answer = await send()
    if (death === 'after') await this.kill()
    return this.answered(Promise.resolve(answer))
  }

  private transact<Result>(
    store: Store & StoreTransactions,
    work: (handle: unknown, transactionStore: TransactionStore) => Promise<Result>,
    options: TransactOptions | undefined,
  ): Promise<Result> {
    return this.mortal((guarded) =>
      store.transact((handle, transactionStore) => {
        const transitions: Transition[] = []
        return guarded(transitions, work(handle, noting(transactionStore, transitions)))
      }, options),
    )
  }

  /** A transaction whose process dies is rolled back, unless its COMMIT was sent. */
  private async mortal<Result>(begin: (guarded: Guarded) => PromiseLike<Result>): Promise<Result> {
    let death: Death = null
    const guarded: Guarded = async (transitions, work) => {
      const result = await Promise.race([work, this.dead])
      if (this.isAlive) death = this.around.onCommit(transitions)
      if (death === 'before') this.die()
      if (!this.isAlive) throw new Error('The process died, and its transaction with it')
      return result as Awaited<typeof work>
    }
    const done = (async () => begin(guarded))()
    // The store accepts another call only when the transaction is over.
    await done.catch(() => undefined)
    if (death === 'before') await this.bury()
    if (death === 'after') await this.kill()
    return this.answered(done)
  }

  private async reserve(store: StoreTransactions, signal: AbortSignal): Promise<() => void> {
    const giveBack = (await store.reserve?.(signal)) ?? (() => undefined)
    if (!this.isAlive) {
      giveBack()
      return nothing()
    }
    this.reserved.add(giveBack)
    return () => {
      if (this.reserved.delete(giveBack)) giveBack()
    }
  }

  private async listen(onHint: (hint: Hint) => void): Promise<() => void> {
    this.unlisten = await this.around.store.listen((hint) => (this.isAlive ? onHint(hint) : undefined))
    return this.unlisten
  }
}

/** Performs the work of a transaction, and decides whether the process dies before its COMMIT. */
type Guarded = <Result>(transitions: readonly Transition[], work: Promise<Result>) => Promise<Result>

/** The same, which also records the transition to be committed. */
function noting(transactionStore: TransactionStore, transitions: Transition[]): TransactionStore {
  return {
    start: (runs) => transactionStore.start(runs),
    commit: (batch) => {
      transitions.push(...batch)
      return transactionStore.commit(batch)
    },
    deliver: (messages) => transactionStore.deliver(messages),
    control: (requests) => transactionStore.control(requests),
    load: (requests, mostBytes) => transactionStore.load(requests, mostBytes),
    recognise: () => transactionStore.recognise?.(),
    mark: async () => transactionStore.mark?.(),
    assertMarked: async (isolation) => transactionStore.assertMarked?.(isolation),
  }
}

function isTransactional(store: Store): store is Store & StoreTransactions {
  return 'inTransaction' in store && 'transact' in store
}

function nothing(): Promise<never> {
  return new Promise(() => undefined)
}
