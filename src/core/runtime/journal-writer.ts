// The writing end of one run's journal while this process holds the run. Entries get their place when they are appended and
// reach the store in batches; effects that must not happen before they are durable wait here (the barrier). When the store
// refuses a batch, nothing more is written and the listener is notified once. The last batch is an exception: the store may
// refuse it because of a control request, and then it is taken back without its last entry.
//
// An entry may also be committed inside a transaction of the user's, with everything that was appended before it:
//
//   free     → held      `hold`: everything is durable, and the transaction begins. From here on entries gather
//   held     → free      `release`: no entry goes into the transaction, and the gathered entries are sent as usual
//   held     → carrying  `carry`: the entry has its place, and the entries gathered up to it go through the transaction
//   carrying → free      `landed`: it was committed. `bounced`: it was rolled back, and another entry takes the place of
//                        that one; the gathered entries are sent as usual
//   any      → lost      the store refused it, or its outcome is unknown

import { Attachments, sizeOfAttached, type Attachment } from './attachments.ts'
import type { Acknowledged, Claim, Host } from '../definition/definition.ts'
import type { Draft } from '../model/entry.ts'
import { bug, isHoldfastError, type ErrorCode } from '../errors/error.ts'
import { Barrier } from './barrier.ts'
import type { Exit } from './exit.ts'
import { keepPatiently } from './fetch.ts'
import { entryPlace, holdsNote } from '../payload/place.ts'
import type { Lease, ControlRequest } from '../model/run.ts'
import {
  mostBytes,
  mostEntries,
  mostTogether,
  sizeOf,
  type NextStatus,
  type Parking,
  type Transition,
  undoOf,
} from '../model/transition.ts'
import { listed } from '../rows/wake-names.ts'
import type { Due } from '../model/due.ts'
import { WrittenKey } from '../payload/written-key.ts'

export interface WriterListener {
  /** Nothing more can be written: the store refused, or the run was given up here. */
  lost(reason: unknown): void
  /** The control request of the run, as of the last commit; null if there is none. */
  applyControl(controlRequest: ControlRequest | null): void
}

/** How a run is left by a batch of any kind. */
interface Sending extends Omit<Exit, 'status'> {
  readonly status: NextStatus | null
}

/** From this many entries on it is not worth waiting for more to go with them. */
const crowd = 100

/** Stands for an empty list until its first member, which gets a list of its own size: most never have a second. */
const none: never[] = []

export class JournalWriter {
  /** The place of the last entry appended. */
  seq = 0
  /** How many messages were ever left for the run, as far as the store has reported. It only grows. */
  arrived: number
  private readonly key: WrittenKey
  private readonly runId: string
  private readonly isFed: boolean
  private readonly host: Host
  private readonly listener: WriterListener
  private lease: Lease
  private unsent: Draft[] = none
  private unsentBytes = 0
  /** The effects of entries beyond the journal, until they are durable. */
  private readonly attachments = new Attachments()
  private sent = 0
  private durable = 0
  /** Entries that were sent and are not durable. */
  private flying: readonly Draft[] = none
  private last: Draft | null = null
  /** Payloads that are still on their way to where large values are kept. */
  private offloading = 0
  private offloads: Promise<unknown> | null = null
  private barriers: Barrier[] = none
  private lost = false
  /** The last commit is about to be sent: the appended entries go with it and not before. */
  private leaving = false
  /** Whose transaction the next entries wait for, and whether they are on their way through it. */
  private holder: object | null = null
  private carrying: { readonly over: Promise<void>; readonly end: () => void } | null = null

  constructor(host: Host, claim: Claim, listener: WriterListener) {
    this.host = host
    this.listener = listener
    this.runId = claim.run.id
    this.isFed = claim.run.feed
    this.lease = claim.lease
    this.arrived = claim.run.inbox
    this.key = new WrittenKey(claim.run.keyId)
    this.seq = this.sent = this.durable = claim.run.seq
  }

  /** Goes on under a new lease; the journal has not moved since. */
  renew(claim: Claim): void {
    this.lease = claim.lease
    this.heard(claim.run.inbox)
  }

  /** This many messages have arrived by now. */
  heard(inbox: number): void {
    if (inbox > this.arrived) this.arrived = inbox
  }

  /** The messages that are to leave the mailbox, as long as that is not durable. */
  get taken(): readonly string[] {
    return this.attachments.taken
  }

  /** Nothing more can be written. */
  get isLost(): boolean {
    return this.lost
  }

  /** Everything appended has been committed. */
  get isDurable(): boolean {
    return this.durable === this.seq
  }

  /** Nothing is on its way to the store. */
  get isIdle(): boolean {
    return this.sent === this.durable && this.offloading === 0
  }

  /** So much was appended that it should be sent, regardless of entries still to come. */
  get isCrowded(): boolean {
    return this.unsent.length >= crowd || this.unsentBytes >= mostBytes
  }

  /**
   * Takes the next place in the journal. A payload past the offload threshold is offloaded before it is sent, unless it is
   * kept already. The attachment takes effect with the entry.
   */
  append(draft: Draft, attachment: Attachment | null = null, isKept = false): void {
    this.seq += 1
    if (attachment !== null) {
      this.attachments.attach(this.seq, attachment)
      this.unsentBytes += sizeOfAttached(attachment)
    }
    if (this.unsent.length === 0) this.unsent = [draft]
    else this.unsent.push(draft)
    this.unsentBytes += sizeOf(draft)
    if (draft.data !== null && !holdsNote(draft.kind)) this.key.note(this.host.payloads.keyOf(draft.data), this.seq)
    if (!isKept) this.keep(draft, this.seq)
  }

  private keep(draft: Draft, seq: number): void {
    const { kind, data } = draft
    if (data === null || staysInline.has(kind) || this.host.payloads.isKeptAsIs(data)) return
    this.offloads = Promise.all([this.offloads, this.offload(draft, seq)])
  }

  /** Forgets entries that were appended and not sent. */
  discard(): void {
    this.unsent = []
    this.unsentBytes = 0
    this.seq = this.sent
    this.attachments.forgetAfter(this.sent)
    this.barriers = this.barriers.filter(({ seq }) => seq <= this.sent)
  }

  /** Sends entries that were appended and not yet sent. */
  flush(): void {
    if (this.unsent.length === 0 || this.offloading > 0 || this.lost || this.leaving || this.holder !== null) return
    this.send(null, null).then(this.acknowledged, this.refused)
  }

  /** Calls `pass` once everything appended so far is durable: at once if it is. */
  barrier(pass: (at: number) => void): void {
    if (this.isDurable) return pass(this.host.now())
    this.whenDurable(pass)
    this.flush()
  }

  /** Calls `pass` with the commit's time once everything appended so far is durable. Sends nothing by itself. */
  whenDurable(pass: (at: number) => void): void {
    const barrier = new Barrier(this.seq, pass)
    if (this.barriers.length === 0) this.barriers = [barrier]
    else this.barriers.push(barrier)
  }

  /** Sends everything together with the end of the lease, or of this incarnation of the run. */
  leave(exit: Exit): Promise<Acknowledged> {
    this.leaving = true
    if (this.offloading === 0 && this.carrying === null) return this.sendLast(exit)
    return this.settled().then(() => this.sendLast(exit))
  }

  /** Settles when every payload is where it is kept, and no transaction carries anything. */
  private async settled(): Promise<void> {
    while (!this.lost && (this.carrying !== null || this.offloading > 0)) {
      await (this.carrying === null ? this.offloads : this.carrying.over)
    }
  }

  /** A transaction is to carry the next entries, or does. */
  get isHeld(): boolean {
    return this.holder !== null
  }

  hold(by: object): void {
    if (this.holder !== null || !this.isDurable) throw bug('A transaction begins while entries are on their way')
    this.holder = by
  }

  /** Nothing of this run goes into that transaction. */
  release(by: object): void {
    if (this.holder === by && this.carrying === null) this.holder = null
  }

  /** Sends everything up to that entry through a transaction, which is not over with the answer. */
  async carry(by: object, seq: number, commit: Host['commit']): Promise<Acknowledged> {
    let end = (): void => undefined
    const over = new Promise<void>((resolve) => (end = resolve))
    this.carrying = { over, end }
    while (this.offloading > 0 && !this.lost) await this.offloads
    if (this.lost || this.holder !== by || seq > this.seq)
      throw new Error('Another worker continued the run before this entry was committed.')
    for (let upTo = this.bound(seq); upTo < seq; upTo = this.bound(seq)) await commit(this.transition(null, null, upTo))
    return commit(this.transition(null, null, seq))
  }

  /** The carried entries are committed. */
  landed(by: object, answer: Acknowledged): void {
    if (this.letGo(by)) this.acknowledged(answer)
  }

  /** The carried entries are not committed: they are sent again, except for the entry at that place, which is replaced. */
  bounced(by: object, seq: number, draft: Draft): void {
    if (!this.letGo(by)) return
    this.unsent = [...this.flying, ...this.unsent]
    this.flying = none
    this.sent = this.durable
    this.unsent[seq - this.sent - 1] = draft
    this.weighUnsent()
    this.keep(draft, seq)
  }

  private letGo(by: object): boolean {
    if (this.holder !== by || this.lost) return false
    this.holder = null
    this.carrying?.end()
    this.carrying = null
    return true
  }

  /** The last entry that was sent with `leave`, as it was sent. */
  get lastSent(): Draft {
    if (this.last === null) throw bug('Nothing was sent as the last of its run')
    return this.last
  }

  private sendLast(exit: Exit): Promise<Acknowledged> {
    if (this.lost) throw bug('A run that was lost cannot leave')
    this.last = this.unsent.at(-1) ?? null
    return this.send(exit, null).then((answer) => {
      // The lease was kept, because there is a control request: the run goes on here.
      if (!answer.released) this.leaving = false
      this.acknowledged(answer)
      return answer
    })
  }

  /**
   * The store refused the last batch, and with it all entries that had been merged with it. All but the last entry are sent
   * again, as a checkpoint, at the same places.
   */
  takeBack(): void {
    this.unsent = this.flying.slice(0, -1)
    this.flying = none
    this.sent = this.durable
    this.seq = this.durable + this.unsent.length
    this.attachments.forgetAfter(this.seq)
    this.weighUnsent()
    this.leaving = false
  }

  /**
   * Sends everything together with parking. False if a message of one of these names, or a control request, came in between:
   * look again. `wakeNames` is null if any message can move the run on. `inbox` is how many messages the frame has seen, or
   * need not see. @default all that have arrived
   */
  async park(due: Due, wakeNames: readonly string[] | null, inbox = this.arrived): Promise<boolean> {
    const answer = await this.send({ status: 'waiting', due, continues: null }, { inbox, wakeNames: listed(wakeNames) })
    this.acknowledged(answer)
    return answer.released
  }

  private send(exit: Sending | null, parkIf: Parking | null): Promise<Acknowledged> {
    for (let upTo = this.bound(this.seq); upTo < this.seq; upTo = this.bound(this.seq)) {
      this.host.commit(this.transition(null, null, upTo)).then(this.acknowledged, this.refused)
    }
    return this.host.commit(this.transition(exit, parkIf, this.seq))
  }

  /** How far one transition may go: to that place, or as many entries and bytes as it may have, and at least one. */
  private bound(seq: number): number {
    if (this.unsent.length <= mostEntries && this.unsentBytes <= mostBytes) return seq
    const attached = this.attachments.sizesAfter(this.sent)
    const sizeAt = (at: number): number => sizeOf(this.unsent[at] as Draft) + (attached.get(this.sent + at + 1) ?? 0)
    return Math.min(seq, this.sent + mostTogether(this.unsent.length, sizeAt))
  }

  private weighUnsent(): void {
    this.unsentBytes = 0
    if (this.unsent.length === 0) return
    for (const draft of this.unsent) this.unsentBytes += sizeOf(draft)
    for (const bytes of this.attachments.sizesAfter(this.sent).values()) this.unsentBytes += bytes
  }

  /** Everything that was not sent, up to that place: from here on it is on its way. */
  private transition(exit: Sending | null, parkIf: Parking | null, upTo: number): Transition {
    const { host, runId, sent: seq, lease, unsent } = this
    const isAll = upTo === this.seq
    const append = isAll ? unsent : unsent.slice(0, upTo - seq)
    this.unsent = isAll ? none : unsent.slice(append.length)
    this.sent = upTo
    this.weighUnsent()
    this.flying = this.flying.length === 0 ? append : [...this.flying, ...append]
    const { status, due, continues, emptyAt, applies = null } = exit ?? checkpoint
    const undo = undoOf(append)
    const { takes, outbound } = this.attachments.between(seq, upTo)
    const id = host.transitionId()
    // One literal: a spread of it was a fifth of the cost of a run.
    return {
      id,
      runId,
      guard: { seq, lease },
      append,
      status,
      due,
      parkIf,
      undo,
      continues,
      takes,
      outbound,
      emptyAt,
      keyId: this.key.changed,
      applies,
      feed: this.isFed,
    }
  }

  private readonly acknowledged = (answer: Acknowledged): void => {
    this.flying = answer.seq === this.sent ? none : this.flying.slice(answer.seq - this.durable)
    this.durable = answer.seq
    this.heard(answer.inbox)
    this.attachments.settle(answer.seq)
    this.key.settle(answer.seq)
    // Before any barrier is passed: a control request may prevent a step from beginning.
    this.listener.applyControl(answer.controlRequest)
    while (!this.lost && this.barriers[0] !== undefined && this.barriers[0].seq <= this.durable) {
      this.barriers.shift()?.pass(answer.at)
    }
  }

  private readonly refused = (error: unknown): void => {
    // A checkpoint is never refused for this: it was merged with the last batch, and that is taken back as a whole.
    if (this.leaving && isHoldfastError(error) && takenBack.has(error.code)) return
    this.lose(error)
  }

  private async offload(draft: Draft, seq: number): Promise<void> {
    const { payloads } = this.host
    const place = entryPlace(payloads.namespace, this.runId, seq, draft)
    this.offloading += 1
    try {
      const data = await keepPatiently(this.host, draft.data ?? '', place, () => !this.lost)
      if (this.lost) return
      // It may be elsewhere in the list by now, or forgotten.
      const at = this.unsent.indexOf(draft)
      if (at !== -1) this.unsent[at] = { ...draft, data } as Draft
    } catch (error) {
      return this.lose(error)
    }
    this.offloading -= 1
    this.flush()
  }

  /** From here on nothing is written and no barrier is passed. */
  lose(reason: unknown): void {
    if (this.lost) return
    this.lost = true
    this.barriers = []
    this.carrying?.end()
    this.listener.lost(reason)
  }
}

const checkpoint: Exit = { status: null, due: null, continues: null, emptyAt: undefined }

/** Recorded values and secrets are needed at once on replay. */
const staysInline: ReadonlySet<Draft['kind']> = new Set(['recorded', 'issued'])

/** A last batch that the store refuses with one of these is taken back, and the run lives on. */
const takenBack: ReadonlySet<ErrorCode> = new Set(['RUN_CANCELLING', 'RUN_TIMEOUT', 'RUN_RESUMED', 'RUN_EXISTS'])
