// Settles the calls of the body, one at a time: recorded outcomes first and in journal order, then live ones in the order
// in which their entries were appended. Whoever drives it lets all microtasks run out between two settlements. The first
// execution and every replay settle by this one rule, which is why the body sees the same order each time.
//
// The calls form a list, and only a replay looks them up by name: most runs never replay, and a table for each would be
// a large part of what a run costs.

import type { Host } from '../core/definition.ts'
import { isHoldfastError } from '../core/error.ts'
import { growingPauses } from '../core/pause.ts'
import type { Call, CallOutcome } from './call.ts'
import { callKind, type History, type Outcome } from './history.ts'

export interface SettlerOwner {
  readonly host: Host
  readonly runId: string
  readonly history: History
  readonly isLive: boolean
  /** A call was settled. */
  stir(): void
  /** The body is about to get this error from a failed step. */
  rememberFailure(error: unknown): void
  /** A recorded outcome cannot be read. */
  unreadable(error: unknown): void
}

export class Settler {
  /** How many calls of the body have not settled. */
  size = 0
  private readonly owner: SettlerOwner
  private first: Call | null = null
  private last: Call | null = null
  /** The calls by kind and name, for as long as the journal has outcomes for them. */
  private readonly byName: Map<string, Call> | null
  /** Calls whose live outcome the body has not seen yet. */
  private ripe: Call[] = []
  /** A recorded outcome is on its way from where large values are kept. */
  private fetching = false

  constructor(owner: SettlerOwner) {
    this.owner = owner
    this.byName = owner.history.next() === undefined ? null : new Map()
  }

  /** Nothing is there to settle now. */
  get isIdle(): boolean {
    return this.ripe.length === 0 && !this.fetching && this.owner.history.next() === undefined
  }

  *all(): Iterable<Call> {
    for (let call = this.first; call !== null; call = call.next) yield call
  }

  enter(call: Call): void {
    call.previous = this.last
    if (this.last === null) this.first = call
    else this.last.next = call
    this.last = call
    this.size += 1
    this.byName?.set(keyOf(call.kind, call.name), call)
  }

  /** Takes the outcome of a call, whose entry has just been appended. */
  ripen(call: Call, outcome: CallOutcome): void {
    call.outcome = outcome
    if (this.ripe.length === 0) this.ripe = [call]
    else this.ripe.push(call)
  }

  /** Settles the next call whose turn has come. False if there is none. */
  settleNext(): boolean {
    if (this.fetching) return true
    const recorded = this.owner.history.next()
    if (recorded !== undefined) return this.settleRecorded(recorded)
    const call = this.ripe.shift()
    if (call === undefined || call.outcome === null) return false
    this.settle(call, call.outcome)
    return true
  }

  /** The first recorded outcome that the body has not asked for. */
  unasked(): Outcome | undefined {
    return this.owner.history.firstWithout((kind, name) => this.byName?.has(keyOf(kind, name)) ?? false)
  }

  /** Hands on a payload of the journal. One that lies elsewhere is waited for, however long that takes. */
  fetch(kept: string, use: (text: string) => void): void {
    const text = this.owner.host.payloads.fetch(kept)
    if (typeof text === 'string') return use(text)
    this.fetching = true
    void this.patiently(text, kept).then(
      (fetched) => {
        this.fetching = false
        if (this.owner.isLive) use(fetched)
      },
      (error: unknown) => this.owner.unreadable(error),
    )
  }

  private settleRecorded(recorded: Outcome): boolean {
    const call = this.byName?.get(keyOf(callKind(recorded), recorded.name))
    if (call === undefined) return false
    this.owner.history.advance()
    if (recorded.kind === 'woken') this.settle(call, { failed: false, value: recorded.meta })
    else this.fetch(recorded.data, (text) => this.replay(call, recorded, text))
    return true
  }

  private replay(call: Call, recorded: Exclude<Outcome, { kind: 'woken' }>, text: string): void {
    const { owner } = this
    const { seq, name, kind } = recorded
    let value: unknown
    try {
      value = owner.host.payloads.decode(text, { runId: owner.runId, seq, name })
    } catch (error) {
      return owner.unreadable(error)
    }
    this.settle(call, { failed: kind === 'step-failed', value })
  }

  private settle(call: Call, outcome: CallOutcome): void {
    this.remove(call)
    if (outcome.failed) this.owner.rememberFailure(outcome.value)
    call.settle(outcome)
    this.owner.stir()
  }

  private remove(call: Call): void {
    if (call.previous === null) this.first = call.next
    else call.previous.next = call.next
    if (call.next === null) this.last = call.previous
    else call.next.previous = call.previous
    this.size -= 1
    this.byName?.delete(keyOf(call.kind, call.name))
  }

  private async patiently(first: Promise<string>, kept: string): Promise<string> {
    const { host } = this.owner
    const pause = growingPauses(host.ports)
    for (let text: string | Promise<string> = first; ; text = host.payloads.fetch(kept)) {
      try {
        return await text
      } catch (error) {
        if (!isHoldfastError(error, 'STORE_UNAVAILABLE') || !this.owner.isLive) throw error
        await pause()
      }
    }
  }
}

function keyOf(kind: Call['kind'], name: string): string {
  return `${kind} ${name}`
}
