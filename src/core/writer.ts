// The writing end of one run's journal while this process holds the run. Entries get their place when they are appended
// and reach the store in batches; what must not happen before they are durable waits here (the barrier).
// When the store refuses a batch, nothing more is written and the owner is told once; but for the last one, which the
// store may refuse because somebody wants something else of the run: then it is taken back without its last entry.

import type { Acknowledged, Claim, Host } from './definition.ts'
import type { Draft } from './entry.ts'
import { bug, isHoldfastError } from './error.ts'
import { growingPauses } from './pause.ts'
import type { Lease, Undo, Wish } from './run.ts'
import type { Continuation, Due, NextStatus } from './transition.ts'

interface Barrier {
  readonly seq: number
  readonly pass: (at: number) => void
}

export interface WriterOwner {
  /** Nothing more can be written: the store refused, or somebody gave up. */
  lost(reason: unknown): void
  /** What somebody wants of the run, as of the last commit; null if nothing. */
  obey(wish: Wish | null): void
}

/** How a run leaves this process: for another status, or to begin anew. */
export interface Exit {
  readonly status: Exclude<NextStatus, 'waiting'> | null
  readonly due: Due | null
  readonly continues: Continuation | null
}

/** What an empty list is before its first member, which gets a list of its own size: most never have a second. */
const none: never[] = []

/** A message that leaves the mailbox together with the entry of that place. */
interface Taken {
  readonly id: string
  readonly seq: number
}

export class Writer {
  /** The place of the last entry appended. */
  seq = 0
  /** How many messages were ever left for the run, as far as the store has told. */
  arrived: number
  private readonly runId: string
  private readonly host: Host
  private readonly owner: WriterOwner
  private lease: Lease
  private inbox: number
  private unsent: Draft[] = none
  /** Messages that are to leave the mailbox, until it is durable that they did. */
  private taken: Taken[] = none
  private sent = 0
  private durable = 0
  /** What was sent and is not durable. */
  private flying: readonly Draft[] = none
  private last: Draft | null = null
  /** Payloads that are still on their way to where large values are kept. */
  private offloading = 0
  private offloads: Promise<unknown> | null = null
  private barriers: Barrier[] = none
  private lost = false
  /** The last commit is about to be sent: what was appended goes with it and not before. */
  private leaving = false

  constructor(host: Host, claim: Claim, owner: WriterOwner) {
    this.host = host
    this.owner = owner
    this.runId = claim.run.id
    this.lease = claim.lease
    this.inbox = this.arrived = claim.run.inbox
    this.seq = this.sent = this.durable = claim.run.seq
  }

  /** Goes on under a new lease; the journal has not moved since. */
  renew(claim: Claim): void {
    this.lease = claim.lease
    this.inbox = this.arrived = claim.run.inbox
  }

  /** Everything appended has been committed. */
  get isDurable(): boolean {
    return this.durable === this.seq
  }

  /** Nothing is on its way to the store. */
  get isIdle(): boolean {
    return this.sent === this.durable && this.offloading === 0
  }

  /**
   * Takes the next place in the journal. A payload past the offload threshold is moved away before it is sent. The
   * message that it tells of, if there is one, leaves the mailbox with it.
   */
  append(draft: Draft, takes: string | null = null): void {
    this.seq += 1
    if (takes !== null) this.take({ id: takes, seq: this.seq })
    const at = this.unsent.length
    if (at === 0) this.unsent = [draft]
    else this.unsent.push(draft)
    // A recorded value is needed at once on replay, so it always stays in the journal.
    if (draft.data !== null && draft.kind !== 'recorded') {
      const place = { runId: this.runId, seq: this.seq, name: draft.name }
      const kept = this.host.payloads.keep(draft.data, place)
      if (kept !== draft.data) this.offloads = Promise.all([this.offloads, this.offload(draft, at, place.seq, kept)])
    }
  }

  private take(taken: Taken): void {
    if (this.taken.length === 0) this.taken = [taken]
    else this.taken.push(taken)
  }

  /** Forgets what was appended and not sent. */
  discard(): void {
    this.unsent = []
    this.seq = this.sent
    this.taken = this.taken.filter(({ seq }) => seq <= this.sent)
    this.barriers = this.barriers.filter(({ seq }) => seq <= this.sent)
  }

  /** Sends what was appended and not yet sent. */
  flush(): void {
    if (this.unsent.length === 0 || this.offloading > 0 || this.lost || this.leaving) return
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
    const barrier: Barrier = { seq: this.seq, pass }
    if (this.barriers.length === 0) this.barriers = [barrier]
    else this.barriers.push(barrier)
  }

  /** Sends everything together with the end of the lease, or of this incarnation of the run. */
  leave(exit: Exit): Promise<Acknowledged> {
    this.leaving = true
    if (this.offloading === 0) return this.sendLast(exit)
    return Promise.resolve(this.offloads).then(() => this.sendLast(exit))
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
      // The lease was kept, because somebody wants something: the run goes on here.
      if (!answer.released) this.leaving = false
      this.acknowledged(answer)
      return answer
    })
  }

  /**
   * The store refused the last batch, and with it whatever had been merged with that. All but the last entry goes again, as
   * a checkpoint, at the same places.
   */
  takeBack(): void {
    this.unsent = this.flying.slice(0, -1)
    this.flying = none
    this.sent = this.durable
    this.seq = this.durable + this.unsent.length
    this.taken = this.taken.filter(({ seq }) => seq <= this.seq)
    this.leaving = false
  }

  /**
   * Sends everything together with parking. False if a message or a wish came in between: look again. `inbox` is how many
   * messages the owner has seen; one that reads none leaves it out.
   */
  async park(due: Due, inbox = this.inbox): Promise<boolean> {
    const answer = await this.send({ status: 'waiting', due, continues: null }, { inbox })
    this.inbox = answer.inbox
    this.acknowledged(answer)
    return answer.released
  }

  private send(
    exit: {
      readonly status: NextStatus | null
      readonly due: Due | null
      readonly continues: Continuation | null
    } | null,
    parkIf: { readonly inbox: number } | null,
  ): Promise<Acknowledged> {
    const { host, runId, sent: seq, lease, unsent: append } = this
    this.unsent = none
    this.sent += append.length
    this.flying = this.flying.length === 0 ? append : [...this.flying, ...append]
    const { status, due, continues } = exit ?? checkpoint
    const undo = undoOf(append)
    const takes = this.taken.length === 0 ? none : this.taken.filter((one) => one.seq > seq).map(({ id }) => id)
    return host.commit({
      id: host.transitionId(),
      runId,
      guard: { seq, lease },
      append,
      status,
      due,
      parkIf,
      undo,
      continues,
      takes,
    })
  }

  private readonly acknowledged = (answer: Acknowledged): void => {
    this.flying = answer.seq === this.sent ? none : this.flying.slice(answer.seq - this.durable)
    this.durable = answer.seq
    this.arrived = Math.max(this.arrived, answer.inbox)
    if (this.taken.length > 0) this.taken = this.taken.filter(({ seq }) => seq > answer.seq)
    // Before any barrier is passed: what somebody wants may keep a step from beginning.
    this.owner.obey(answer.wish)
    while (!this.lost && this.barriers[0] !== undefined && this.barriers[0].seq <= this.durable) {
      this.barriers.shift()?.pass(answer.at)
    }
  }

  private readonly refused = (error: unknown): void => {
    // A checkpoint is never refused for this: it was merged with the last batch, and that is taken back as a whole.
    if (this.leaving && isTakenBack(error)) return
    this.lose(error)
  }

  private async offload(draft: Draft, at: number, seq: number, first: string | Promise<string>): Promise<void> {
    this.offloading += 1
    const pause = growingPauses(this.host.ports)
    const batch = this.unsent
    for (let kept = first; ;) {
      try {
        batch[at] = { ...draft, data: await kept } as Draft
        break
      } catch (error) {
        if (!isHoldfastError(error, 'STORE_UNAVAILABLE')) return this.lose(error)
        await pause()
        if (this.lost) return
        kept = this.host.payloads.keep(draft.data ?? '', { runId: this.runId, seq, name: draft.name })
      }
    }
    this.offloading -= 1
    this.flush()
  }

  /** From here on nothing is written and no barrier is passed. */
  lose(reason: unknown): void {
    if (this.lost) return
    this.lost = true
    this.barriers = []
    this.owner.lost(reason)
  }
}

const checkpoint: Exit = { status: null, due: null, continues: null }

/** Tells whether the store refused a last batch in a way that the run can live with. */
function isTakenBack(error: unknown): boolean {
  return isHoldfastError(error, 'RUN_CANCELLING') || isHoldfastError(error, 'RUN_EXISTS')
}

/** What the run has to undo after these entries; null if they say nothing of that. */
function undoOf(append: readonly Draft[]): Undo | null {
  let undo: Undo | null = null
  for (const draft of append) {
    if (draft.kind === 'failing') return 'due'
    if (draft.kind === 'step-succeeded' && draft.meta.undo === true) undo = 'possible'
  }
  return undo
}
