// The parts that client and worker of one Holdfast share: the store, the batchers in front of it, and the knowledge of this
// process.

import { isDecider } from '../core/definition/decider-model.ts'
import type { Acknowledged, Definition, Host, Transact } from '../core/definition/definition.ts'
import { bug, HoldfastError } from '../core/errors/error.ts'
import { createRunIds, type RunIds } from '../core/model/run-id.ts'
import { defaultLimits, type Limits } from '../core/definition/limits.ts'
import { utf8Weight } from '../core/text/bytes.ts'
import type { Payloads } from '../core/payload/payload.ts'
import { withTimeout } from '../core/runtime/backoff.ts'
import type { Ports } from '../core/runtime/ports.ts'
import type { Transition } from '../core/model/transition.ts'
import type { BatchOptions, Delivered, RunStart, StartBusy, Started, Store } from '../store.ts'
import { Batcher } from './batch/batcher.ts'
import { boundedStore } from './store/bounded-store.ts'
import { CallTimeouts } from './store/call-timeouts.ts'
import { createCommitter, weightOf, type Committer } from './batch/committer.ts'
import { RunMoves } from './run-moves.ts'
import { RunEnds } from './run-ends.ts'
import type { LocalWorker } from './local-worker.ts'
import { MailboxReader } from './batch/mailbox-reader.ts'
import { MessageSender, type OutgoingMessage } from './batch/message-sender.ts'
import { done, NotDone, CallerTimeouts, type Called, type Caller } from './batch/caller-timeouts.ts'
import { Instances } from './deciders/instances.ts'
import { Projected } from './projections/projected.ts'
import { Registry } from './registry.ts'
import { endHintsOf, limitsOf, secretsOf } from './store/optional-parts.ts'
import { StoreClock } from './store/store-clock.ts'
import { createTransact, createTransactions, type RunTransaction, type TransactionRunner } from './store/transact.ts'
import { UnclaimedWarning } from './unclaimed-warning.ts'
import { quotedText } from '../core/text/printable.ts'

export interface EngineOptions {
  readonly store: Store
  readonly ports: Ports
  readonly payloads: Payloads
  readonly definitions: Iterable<Definition>
  /** How the user's own library begins a transaction. @default the store does */
  readonly transaction?: TransactionRunner | undefined
  /** How many of those may be open at once. @default as many as the store has places for, or 10 */
  readonly mostTransactions?: number | undefined
  /** How often `ctx.until` checks its condition, unless the call has its own interval. @default 1 h */
  readonly untilIntervalMs?: number
  /** How long to wait at most before polling without a hint. @default the poller's own interval */
  readonly pollMs?: number | undefined
  /** The key from which the secrets of completion tokens are derived. @default the key that the store keeps for that */
  readonly tokenKey?: string | undefined
  /** How much callers may ask for at once. @default those of `createHoldfast` */
  readonly limits?: Limits
}

/** How long accepted items may take to reach the store once a Holdfast is being closed. */
const closingMs = 5_000

/** How long it may take if a worker has waited for that before; and how long the store may take to close. */
const lastlyMs = 1_000

/** How long a store may take that does not say so itself. */
const usualStorageMs = 15_000

/** A store that keeps its own bound says more about what went wrong than we could: it has this much more time to do so. */
const graceMs = 1_500

/** However short a lease is, a call of the store has this much time. */
const leastCallMs = 1_000

/** How long a worker pauses before it repeats a heartbeat. */
const beatAgainMs = 1_000

export class Engine {
  /** Every call of it is answered or rejected in time. */
  readonly store: Store
  readonly ports: Ports
  readonly payloads: Payloads
  readonly registry: Registry
  readonly runEnds: RunEnds
  readonly runMoves = new RunMoves()
  readonly clock: StoreClock
  readonly runIds: RunIds
  /** This process, as the store knows it: fresh at every start. */
  session: string
  localWorker: LocalWorker | null = null
  /** Called when a run may have become claimable. */
  onReady: () => void = () => undefined
  /** Called when the time of a run without a holder is over at this time of the store, or may be over already. */
  onDeadline: (at: number) => void = () => undefined
  /** Called when there may be a chore. */
  onChore: () => void = () => undefined
  /** What a client does for runs that start and send to others, and have inputs decided: `Client` sets it. */
  outgoing: Pick<Host, 'prepare' | 'receiver' | 'limits'> & Required<Pick<Host, 'execute'>>
  /** Transactions of the application; null where the store has none. */
  readonly transactions: RunTransaction | null
  /** How far the projections of this process are. */
  readonly projected = new Projected()
  /** Lets a step take place in a transaction; null where the store has none. */
  readonly transact: Transact | null
  readonly untilIntervalMs: number
  readonly pollMs: number | undefined
  /** The key from which the secrets of completion tokens are derived; null where there is none, and until it was read. */
  tokenKey: string | null
  readonly limits: Limits
  readonly unclaimedWarning: UnclaimedWarning
  /** The instances of deciders that this process decides for. */
  readonly instances: Instances
  /** The types of which it was said that a key may lack its field. */
  readonly unknownKeys = new Set<string>()
  /** The same, without a bound: only its capabilities are read here. */
  private readonly given: Store
  private readonly watch: CallTimeouts
  private readonly committer: Committer
  private readonly starter: Batcher<Caller<RunStart>, Started | StartBusy | NotDone, Started>
  private readonly callerTimeouts: CallerTimeouts<RunStart>
  private readonly mailboxReader: MailboxReader
  private readonly messageSender: MessageSender
  private transitions = 0
  /** The prefix of the ids of all transitions of this session. */
  private transitionPrefix: string
  private leaseMs: number | null = null
  private unlimit: () => void = () => undefined
  private closed = false
  private unlisten: () => void = () => undefined

  constructor(options: EngineOptions) {
    const { ports, payloads, definitions, transaction, mostTransactions, untilIntervalMs = 3_600_000, pollMs } = options
    this.watch = new CallTimeouts(ports.clock)
    const store = boundedStore(options.store, { ...ports, watch: this.watch }, () => this.callMs)
    this.given = options.store
    this.store = store
    this.ports = ports
    this.payloads = payloads
    this.registry = new Registry(definitions)
    this.runEnds = new RunEnds(store, ports, {
      everyMs: pollMs,
      endHints: endHintsOf(options.store),
      isMoving: (runId) => this.isMoving(runId),
    })
    this.clock = new StoreClock(ports.clock)
    this.unclaimedWarning = new UnclaimedWarning(store, ports, () => this.clock.now())
    this.mailboxReader = new MailboxReader(store, ports)
    this.instances = new Instances(this)
    this.runIds = createRunIds(ports)
    this.session = this.runIds.next(0)
    this.transitionPrefix = `${this.session}.`
    this.untilIntervalMs = untilIntervalMs
    this.pollMs = pollMs
    this.tokenKey = options.tokenKey ?? null
    this.limits = options.limits ?? defaultLimits
    const missing = (): never => {
      throw bug('No client is registered that prepares what runs start and send')
    }
    this.outgoing = { prepare: missing, receiver: missing, execute: missing, limits: this.limits }
    const onTime = (at: number): void => this.clock.observe(at)
    const limitMs = (): number => this.storageMs
    const isAnswering = (): Promise<boolean> => this.isAnswering()
    const isFilling = (): boolean => this.localWorker?.isFilling() === true
    this.committer = createCommitter(store, ports, { onTime, limitMs, isAnswering, isFilling })
    this.transactions = createTransactions({ store, own: transaction, mostOwn: mostTransactions, ports })
    this.transact = createTransact(this.transactions, onTime)
    this.callerTimeouts = new CallerTimeouts({ clock: ports.clock, limitMs, called: calledStart })
    this.starter = new Batcher(ports, {
      flush: (callers, how) => this.callerTimeouts.flush(callers, (runs) => this.insert(runs, how), how),
      isAnswering,
      limitMs,
      sizeOf: ({ given: { first, metadata, messages, decided = null } }) => {
        const bytes = 200 + utf8Weight(first.data) + utf8Weight(metadata) + (decided === null ? 0 : weightOf(decided))
        return messages === undefined ? bytes : messages.reduce((sum, { data }) => sum + utf8Weight(data), bytes)
      },
      isBusy: (answer) => !(answer instanceof NotDone) && answer.taken === 'busy',
      nameOf: ({ given: { id, type } }) => `the start of run ${id} of ${quotedText(type)}`,
      // An item that is busy is sent again, and has no result.
      resultOf: (_caller, started) => done(started) as Started,
    })
    this.messageSender = new MessageSender(store, ports, {
      limitMs,
      isAnswering,
      noteDelivered: (messages, answers) => this.noteDelivered(messages, answers),
    })
  }

  async open({ migrate }: { readonly migrate: boolean } = { migrate: true }): Promise<void> {
    // Without a migration, missing tables are found now, and not with the first run.
    await (migrate ? this.store.migrate() : this.store.get([this.session]))
    // Inside a transaction of the user's nothing else may be able to write.
    if (this.registry.all().some(isDecider)) await this.learnTime().catch(() => undefined)
    this.unlisten = await this.store.listen((hint) => {
      if (hint.kind === 'ready') {
        // A hint of a workflow that is not performed here is no reason to look.
        if (hint.type === '' || this.registry.hasType(hint.type)) this.onReady()
        // It comes after a time in which nothing was heard, or too much.
        if (hint.type === '') {
          this.onDeadline(Number.NEGATIVE_INFINITY)
          this.runEnds.hintsLost()
        }
      } else if (hint.kind === 'deadline') this.onDeadline(hint.at)
      else if (hint.kind === 'chore') this.onChore()
      else if (hint.kind === 'message') this.localWorker?.messageArrived(hint.runId)
      else if (hint.kind === 'control') this.localWorker?.controlRequested(hint.runId)
      else if (!this.isMoving(hint.runId)) {
        this.localWorker?.ended(hint.runId)
        this.runEnds.hinted(hint.runId)
      }
    })
  }

  /** Needed to perform or replay runs. Rejects with STORE_REFUSED if this process may not read it. */
  async readTokenKey(): Promise<string | null> {
    this.tokenKey ??= (await secretsOf(this.store)?.tokenKey()) ?? null
    return this.tokenKey
  }

  /** Begins a new session after the old one was found dead. */
  renewSession(): void {
    this.session = this.runIds.next(0)
    this.transitionPrefix = `${this.session}.`
  }

  /** Whether a worker of this process holds the run. */
  isMoving(runId: string): boolean {
    return this.localWorker?.isMoving(runId) ?? false
  }

  /** An id that no other transition has: the session is unique, and so is the count within it. */
  readonly transitionId = (): string => {
    this.transitions += 1
    return this.transitionPrefix + this.transitions.toString(36)
  }

  /** Over how many shards the store spreads its runs. */
  get shards(): number {
    return this.given.capabilities.shards ?? 1
  }

  /** How long callers wait for the store: its storage timeout, or the remaining lease if that is less. */
  get storageMs(): number {
    return this.bounded(this.given.capabilities.storageMs ?? usualStorageMs)
  }

  /** When a call of the store is given up here. */
  private get callMs(): number {
    return this.bounded((this.given.capabilities.storageMs ?? usualStorageMs) + graceMs)
  }

  private bounded(ms: number): number {
    return this.leaseMs === null ? ms : Math.min(ms, Math.max(leastCallMs, this.leaseMs / 2 - beatAgainMs))
  }

  /**
   * A worker holds leases of this length; null if it does no longer. A heartbeat is due after a third of that: if it has no
   * answer by the time that is meant here, there is enough left for a second one.
   */
  leaseFor(leaseMs: number | null): void {
    this.leaseMs = leaseMs
    this.unlimit()
    const limits = leaseMs === null ? null : limitsOf(this.store)
    this.unlimit = limits?.limit(this.storageMs) ?? (() => undefined)
  }

  /** Whether the store answers anything at all now: then a call that it leaves unanswered is itself the cause. */
  private async isAnswering(): Promise<boolean> {
    try {
      await this.store.get([this.session])
      return true
    } catch {
      return false
    }
  }

  /** Inserts a run; waits when too many are on their way already. */
  start(run: RunStart, abortSignal?: AbortSignal): Promise<Started> {
    return this.callerTimeouts.submit(this.starter, run, itself, abortSignal)
  }

  private async insert(runs: readonly RunStart[], options: BatchOptions): Promise<readonly (Started | StartBusy)[]> {
    const started = await this.store.start(runs, options)
    const created = started.find((answer) => answer.created)?.run
    if (created) this.clock.observe(created.createdAt)
    return started
  }

  /** Leaves a message for a run, or sends one to a topic. */
  send(message: OutgoingMessage, abortSignal?: AbortSignal): Promise<Delivered> {
    return this.messageSender.send(message, abortSignal)
  }

  /** Commits a transition of a run that this process holds. */
  readonly commit = (transition: Transition): Promise<Acknowledged> =>
    this.runMoves.follow(transition.runId, this.committer.submit(bounded(transition, this.limits)))

  /** The messages in the mailbox of a run, under these names or under any. One load answers all requests of a turn. */
  readonly mailbox: Host['mailbox'] = (runId, names) => this.mailboxReader.read(runId, names)

  /** Sends everything that was accepted. Settles at the latest after that time: an unavailable store may never take it. */
  async drain(withinMs: number): Promise<void> {
    const drained = Promise.all([this.starter.drain(), this.messageSender.drain(), this.committer.drain()])
    await withTimeout(this.ports.clock, withinMs, drained)
  }

  get knowsTime(): boolean {
    return this.clock.now() !== Number.NEGATIVE_INFINITY
  }

  /** Makes sure that the time of the store is known: a process that has only read anything does not know it. */
  async learnTime(): Promise<void> {
    if (this.knowsTime) return
    // A session that is over at once: of all that answers with the time, this changes least.
    const session = this.runIds.next(0)
    const { now } = await this.store.beat({ session, leaseMs: 1_000, seeksUnknownLeases: false, end: true })
    this.clock.observe(now)
  }

  get isClosed(): boolean {
    return this.closed
  }

  /** Throws CLOSED once it is. */
  assertOpen(): void {
    if (this.closed) throw new HoldfastError('CLOSED', 'This Holdfast is closed. Create a new one to go on.')
  }

  /**
   * Takes no more items, and sends the accepted ones, but not for ever: then their callers are rejected. Closes a store that
   * is ours.
   */
  async close({ hasStoppedWorker = false, ownsStore = false } = {}): Promise<void> {
    this.closed = true
    await this.drain(hasStoppedWorker ? lastlyMs : closingMs)
    this.runEnds.close()
    this.unclaimedWarning.close()
    this.unlisten()
    this.starter.close()
    this.messageSender.close()
    this.committer.close()
    this.watch.stop()
    if (!ownsStore) return
    const { clock, logger } = this.ports
    await withTimeout(clock, lastlyMs, this.store.close(), () => {
      logger.warn('The store did not close in time; its connections end with this process.')
    })
  }

  /** Sent messages may wake runs, and those that move here need not wait for a hint. */
  private noteDelivered(messages: readonly OutgoingMessage[], answers: readonly Delivered[]): void {
    let isReady = false
    messages.forEach((one, at) => {
      const outcome = answers[at]?.outcome
      isReady ||= outcome === 'delivered'
      if (outcome === 'queued' && !('topic' in one)) this.localWorker?.messageArrived(one.runId)
    })
    if (isReady) this.onReady()
  }
}

/** Says of every topic that the run would wait on how many may. */
function bounded(transition: Transition, { subscribers }: Limits): Transition {
  const { outbound = null } = transition
  if (outbound === null || !outbound.watches.some(({ kind }) => kind === 'topic')) return transition
  const watches = outbound.watches.map((watched) =>
    watched.kind === 'topic' ? { ...watched, mostSubscribers: subscribers } : watched,
  )
  return { ...transition, outbound: { ...outbound, watches } }
}

function itself<Item>(item: Item): Item {
  return item
}

/** How a start is called in errors. One that came with a signal is repeated by the id of that. */
function calledStart({ id, messages }: RunStart): Called {
  const [draft] = messages ?? []
  if (draft === undefined) {
    const again = `Start it again with { id: '${id}' } and the same input: that is one run, whether or not this start took effect.`
    return { what: `The start of run ${id}`, again, details: { runId: id } }
  }
  const again = `Send it again with { id: '${draft.id}' }: a run takes that once.`
  return { what: `Signal ${draft.id}, which may start a run,`, again, details: { signalId: draft.id } }
}
