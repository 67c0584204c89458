// The writing end of one run's journal while this process holds the run. Entries get their place when they are appended
// and reach the store in batches; what must not happen before they are durable waits here (the barrier).
// When the store refuses a batch, nothing more is written and the owner is told once.

import type { Acknowledged, Claim, Host } from '../core/definition.ts'
import type { Draft } from '../core/entry.ts'
import { bug, isHoldfastError } from '../core/error.ts'
import { growingPauses } from '../core/pause.ts'
import type { Lease } from '../core/run.ts'
import type { Due, NextStatus } from '../core/transition.ts'

interface Barrier {
  readonly seq: number
  readonly pass: (at: number) => void
}

export interface WriterOwner {
  /** Nothing more can be written: the store refused, or somebody gave up. */
  lost(reason: unknown): void
}

/** What an empty list is before its first member, which gets a list of its own size: most never have a second. */
const none: never[] = []

export class Writer {
  /** The place of the last entry appended. */
  seq = 0
  private readonly runId: string
  private readonly host: Host
  private readonly owner: WriterOwner
  private lease: Lease
  private inbox: number
  private unsent: Draft[] = none
  private sent = 0
  private durable = 0
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
    this.inbox = claim.run.inbox
    this.seq = this.sent = this.durable = claim.run.seq
  }

  /** Goes on under a new lease; the journal has not moved since. */
  renew(claim: Claim): void {
    this.lease = claim.lease
    this.inbox = claim.run.inbox
  }

  /** Everything appended has been committed. */
  get isDurable(): boolean {
    return this.durable === this.seq
  }

  /** Nothing is on its way to the store. */
  get isIdle(): boolean {
    return this.sent === this.durable && this.offloading === 0
  }

  /** Takes the next place in the journal. A payload past the offload threshold is moved away before it is sent. */
  append(draft: Draft): void {
    this.seq += 1
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

  /** Forgets what was appended and not sent. */
  discard(): void {
    this.unsent = []
    this.seq = this.sent
    this.barriers = this.barriers.filter(({ seq }) => seq <= this.sent)
  }

  /** Sends what was appended and not yet sent. */
  flush(): void {
    if (this.unsent.length === 0 || this.offloading > 0 || this.lost || this.leaving) return
    this.send(null, null, null).then(this.acknowledged, this.refused)
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

  /** Sends everything together with the end of the lease, and gives back the payload of the last entry as it was sent. */
  leave(status: Exclude<NextStatus, 'waiting'>, due: Due | null): Promise<string> {
    this.leaving = true
    if (this.offloading === 0) return this.sendLast(status, due)
    return Promise.resolve(this.offloads).then(() => this.sendLast(status, due))
  }

  private sendLast(status: NextStatus, due: Due | null): Promise<string> {
    if (this.lost) throw bug('A run that was lost cannot leave')
    const last = this.unsent.at(-1)?.data ?? ''
    return this.send(status, due, null).then((answer) => {
      this.acknowledged(answer)
      return last
    })
  }

  /** Sends everything together with parking. False if a message came in between: look again. */
  async park(due: Due): Promise<boolean> {
    const answer = await this.send('waiting', due, { inbox: this.inbox })
    this.acknowledged(answer)
    this.inbox = answer.inbox
    return answer.released
  }

  private send(
    status: NextStatus | null,
    due: Due | null,
    parkIf: { readonly inbox: number } | null,
  ): Promise<Acknowledged> {
    const { host, runId, sent: seq, lease, unsent: append } = this
    this.unsent = none
    this.sent += append.length
    return host.commit({ id: host.transitionId(), runId, guard: { seq, lease }, append, status, due, parkIf })
  }

  private readonly acknowledged = (answer: Acknowledged): void => {
    this.durable = answer.seq
    while (!this.lost && this.barriers[0] !== undefined && this.barriers[0].seq <= this.durable) {
      this.barriers.shift()?.pass(answer.at)
    }
  }

  private readonly refused = (error: unknown): void => this.lose(error)

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
