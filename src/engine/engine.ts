// What client and worker of one Holdfast share: the store, the way to it, and what this process knows.

import type { Acknowledged, Definition, Host, Transact } from '../core/definition.ts'
import type { Entry } from '../core/entry.ts'
import { bug, HoldfastError } from '../core/error.ts'
import { createRunIds, type RunIds } from '../core/id.ts'
import type { Payloads } from '../core/payload.ts'
import type { Cancel, Ports } from '../core/ports.ts'
import type { Lease, Run } from '../core/run.ts'
import type { Transition } from '../core/transition.ts'
import type { Delivered, NewRun, Started, Store } from '../store.ts'
import { Batcher } from './batcher.ts'
import { createCommitter, type Committer } from './committer.ts'
import { Endings } from './endings.ts'
import { MailReader } from './mail-reader.ts'
import { Mailer, type Mail } from './mail.ts'
import { Registry } from './registry.ts'
import { StoreClock } from './store-clock.ts'
import { createTransact, type OwnTransaction } from './transacting.ts'

export interface EngineOptions {
  readonly store: Store
  readonly ports: Ports
  readonly payloads: Payloads
  readonly definitions: Iterable<Definition>
  /** How the user's own library begins a transaction. @default the store does */
  readonly transaction?: OwnTransaction | undefined
  /** How often `ctx.until` looks whether something is so, unless it says so itself. @default 1 h */
  readonly pauseCheckMs?: number
  /** How long to wait at most before looking for what nobody told of. @default whoever looks knows */
  readonly pollMs?: number | undefined
}

/** Where a starting run may find a worker in the same process: then its insert already carries the lease. */
export interface Desk {
  /** Takes a free slot; null if there is none, or if others have waited longer. */
  reserve(): Lease | null
  /** Begins a run that was inserted with that lease. */
  begin(run: Run, lease: Lease, entries: readonly Entry[]): void
  /** Gives the slot back. */
  cancel(): void
  /** Somebody has steered a run: if it is moving here, it learns of that at once. */
  steered(run: Run): void
  /** A message came for a run: if it is moving here, it learns of that at once. May be called for any run. */
  mailed(runId: string): void
  /** Tells whether a run is moving here: then its end is known as soon as it is committed. */
  isMoving(runId: string): boolean
  /** Tells whether the frame of a run that waits is kept here. */
  isParked(runId: string): boolean
}

/** How long what was accepted may take to reach the store once a Holdfast is being closed. */
const closingMs = 30_000

export class Engine {
  readonly store: Store
  readonly ports: Ports
  readonly payloads: Payloads
  readonly registry: Registry
  readonly endings: Endings
  readonly clock: StoreClock
  readonly runIds: RunIds
  /** This process, as the store knows it: fresh at every start. */
  session: string
  desk: Desk | null = null
  /** Called when something may have become claimable. */
  onReady: () => void = () => undefined
  /** Makes of what a run wants to start a run that can be inserted. Whoever starts runs knows how. */
  prepare: Host['prepare'] = () => {
    throw bug('Nobody here prepares children')
  }
  /** Lets a step take place in a transaction; null where the store has none. */
  readonly transact: Transact | null
  readonly pauseCheckMs: number
  readonly pollMs: number | undefined
  private readonly committer: Committer
  private readonly starter: Batcher<NewRun, Started, Started>
  private readonly mailReader: MailReader
  private readonly mailer: Mailer
  private transitions = 0
  private closed = false
  private unlisten: () => void = () => undefined

  constructor(options: EngineOptions) {
    const { store, ports, payloads, definitions, transaction, pauseCheckMs = 3_600_000, pollMs } = options
    this.store = store
    this.ports = ports
    this.payloads = payloads
    this.registry = new Registry(definitions)
    this.endings = new Endings(store, ports, pollMs)
    this.clock = new StoreClock(ports.clock)
    this.mailReader = new MailReader(store, ports)
    this.runIds = createRunIds(ports)
    this.session = this.runIds.next(0)
    this.pauseCheckMs = pauseCheckMs
    this.pollMs = pollMs
    const onTime = (at: number): void => this.clock.observe(at)
    this.committer = createCommitter(store, ports, { onTime })
    this.transact = createTransact({ store, own: transaction, ports, onTime })
    this.starter = new Batcher(ports, {
      flush: async (runs) => {
        const started = await store.start(runs)
        const created = started.find((answer) => answer.created)
        if (created !== undefined) this.clock.observe(created.run.createdAt)
        return started
      },
      sizeOf: (run) => 200 + (run.first.data?.length ?? 0),
      resultOf: (_run, started) => started,
    })
    this.mailer = new Mailer(store, ports, (mail, answers) => this.told(mail, answers))
  }

  async open({ migrate }: { readonly migrate: boolean } = { migrate: true }): Promise<void> {
    // Who does not migrate finds out now, and not with the first run, that there are no tables.
    await (migrate ? this.store.migrate() : this.store.get([this.session]))
    this.unlisten = await this.store.listen((hint) => {
      if (hint.kind === 'ready') this.onReady()
      else if (hint.kind === 'mail') this.desk?.mailed(hint.runId)
      else if (!this.isMoving(hint.runId)) this.endings.hinted(hint.runId)
    })
  }

  /** Begins a new session after the old one was found dead. */
  renewSession(): void {
    this.session = this.runIds.next(0)
  }

  /** Tells whether a worker of this process holds the run. */
  isMoving(runId: string): boolean {
    return this.desk?.isMoving(runId) ?? false
  }

  /** An id that no other transition has: the session is unique, and so is the count within it. */
  readonly transitionId = (): string => {
    this.transitions += 1
    return `${this.session}.${this.transitions.toString(36)}`
  }

  /** Inserts a run; waits when too many are on their way already. */
  start(run: NewRun): Promise<Started> {
    return this.starter.isFull ? this.starter.room().then(() => this.starter.submit(run)) : this.starter.submit(run)
  }

  /** Leaves a message for a run, or sends one to a topic. */
  send(mail: Mail): Promise<Delivered> {
    return this.mailer.send(mail)
  }

  /** Commits a transition of a run that this process holds. */
  readonly commit = (transition: Transition): Promise<Acknowledged> => this.committer.submit(transition)

  /** What lies in the mailbox of a run, under these names or under any. Whoever asks in the same turn is answered by one load. */
  readonly mailbox: Host['mailbox'] = (runId, names) => this.mailReader.read(runId, names)

  /** Sends everything that was accepted. Settles at the latest after that time: an unavailable store may never take it. */
  async drain(withinMs: number): Promise<void> {
    let cancel: Cancel = () => undefined
    const timeout = new Promise<void>((resolve) => (cancel = this.ports.clock.after(withinMs, resolve)))
    await Promise.race([Promise.all([this.starter.drain(), this.mailer.drain(), this.committer.drain()]), timeout])
    cancel()
  }

  /** Throws CLOSED once it is. */
  assertOpen(): void {
    if (this.closed) throw new HoldfastError('CLOSED', 'This Holdfast is closed. Create a new one to go on.')
  }

  async close(): Promise<void> {
    this.closed = true
    await this.drain(closingMs)
    this.endings.close()
    this.unlisten()
    this.starter.close()
    this.mailer.close()
    this.committer.close()
  }

  /** What was sent may wake runs, and those that move here need not wait for a hint. */
  private told(mail: readonly Mail[], answers: readonly Delivered[]): void {
    let isReady = false
    mail.forEach((one, at) => {
      const outcome = answers[at]?.outcome
      isReady ||= outcome === 'delivered'
      if (outcome === 'queued' && !('topic' in one)) this.desk?.mailed(one.runId)
    })
    if (isReady) this.onReady()
  }
}
