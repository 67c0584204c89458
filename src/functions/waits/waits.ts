// The waits of a body, from the moment at which they are made: which of them have begun, which are still being prepared, and
// which were never awaited. A child or a relative time begins at the end of the turn in which it was made, unless something else
// has begun it before. From then on it is among the idle calls (idle-calls.ts) until time or a message ends it (wake.ts).

import type { FoundCall } from '../../core/model/entry.ts'
import type { WaitCall } from '../frame/body-call.ts'
import type { FrameState } from '../frame/frame-state.ts'
import type { Settler } from '../replay/settler.ts'
import { IdleCalls, type IdleCall } from './idle-calls.ts'
import type { Mailbox } from './mailbox.ts'
import { Wait } from './wait.ts'

/** From so many waits on, those that the body awaits by now are left out. */
const least = 16

/** Stands for an empty list until its first member: most runs make no wait. */
const none: never[] = []
const noIds: ReadonlySet<string> = new Set()
const nothingIdle = new IdleCalls()

export class Waits {
  readonly state: FrameState
  readonly settler: Settler
  readonly mailbox: Mailbox
  private idleCalls = nothingIdle
  /**
   * How many children are being prepared: an input is checked, or put elsewhere. Until they are registered, nothing but the
   * memory of this frame knows of them, so the run neither parks, ends nor begins anew.
   */
  preparing = 0
  /** The waits of this turn. */
  private made: Wait<unknown>[] = none
  /** Waits that have begun without being awaited. */
  private begun: WaitCall[] = none
  /** How many there were when those that the body awaits were last left out. */
  private pruned = least
  /** Calls that were prepared while nothing could be written. */
  private ready: (() => void)[] | null = null
  /** Called when no child is being prepared any more. */
  private afterPreparing: (() => void) | null = null
  /** Waits that the body has made and not awaited, of those that begin when they are. */
  private offers: Map<string, FoundCall> | null = null
  /** The children that the run must outlast, and that have not ended. */
  private children: Set<string> | null = null

  constructor(state: FrameState, settler: Settler, mailbox: Mailbox) {
    this.state = state
    this.settler = settler
    this.mailbox = mailbox
    const { outlastedChildren } = state.history
    if (outlastedChildren.size > 0) this.children = new Set(outlastedChildren)
  }

  /** The calls that only time or a message can move on. */
  get idle(): IdleCalls {
    return this.idleCalls
  }

  /** Only time or a message can move that call on: a wait whose conditions are known, or a step between two attempts. */
  addIdle(call: IdleCall): void {
    if (this.idleCalls === nothingIdle) this.idleCalls = new IdleCalls()
    this.idleCalls.add(call)
  }

  /** Takes note of a wait that the body has made: it begins when the turn is over, whether it is awaited or not. */
  add(wait: Wait<unknown>): void {
    // Code that goes on beside a body that has ended begins nothing.
    if (this.state.hasBodyEnded) return this.state.warnOfLateCall()
    if (this.made.length === 0) this.made = [wait]
    else this.made.push(wait)
    this.state.scheduleTurn()
  }

  /** The body has made waits that have not begun: the frame takes a turn when they have. */
  get isMaking(): boolean {
    return this.preparing > 0 || this.made.length > 0
  }

  /** The turn is over: the waits that the body has made in it begin, and the calls that were prepared before. */
  endTurn(): void {
    this.beginMade()
    const { ready } = this
    if (ready === null || !this.state.isWriting) return
    this.ready = null
    for (const begin of ready) this.prepared(begin)
  }

  /** The waits begin that the body has made and nothing has begun yet. */
  beginMade(): void {
    if (this.made.length === 0) return
    const { made } = this
    this.made = none
    for (const wait of made) {
      const call = Wait.begin(wait)
      if (call === null) continue
      if (this.begun.length === 0) this.begun = [call]
      else this.begun.push(call)
    }
    if (this.begun.length >= 2 * this.pruned) this.pruned = Math.max(least, this.unawaited.length)
  }

  /** A child is about to be prepared. */
  prepare(): void {
    this.preparing += 1
  }

  /** A child is prepared: calls what registers or refuses it, now or when the run goes on. */
  prepared(begin: () => void): void {
    // A pause that is on its way may be taken back.
    if (!this.state.isWriting) return void (this.ready ??= []).push(begin)
    this.preparing -= 1
    begin()
    this.state.scheduleTurn()
    const next = this.afterPreparing
    if (this.preparing > 0 || next === null) return
    this.afterPreparing = null
    next()
  }

  /** Calls back when no child is being prepared any more, and all that the body has made has begun: at once if that is so. */
  whenBegun(next: () => void): void {
    if (this.preparing === 0) return next()
    this.afterPreparing = next
  }

  /** Takes a wait that the body awaits, whose conditions may not be known yet. */
  enter(call: WaitCall): void {
    call.isEntered = true
    this.settler.enter(call)
    if (call.conditions.length > 0 && !this.state.history.has('wait', call.name)) this.open(call)
  }

  /** A wait has just been registered. Its relative times count from the commit of that. */
  registered(call: WaitCall): void {
    const { state } = this
    state.scheduleTurn()
    state.writer.whenDurable((at) => {
      call.registeredAt = at
      this.idleCalls.registered()
      state.scheduleTurn()
    })
  }

  /** The body awaits it, and its conditions are known. */
  open(call: WaitCall): void {
    this.addIdle(call)
    this.state.scheduleTurn()
  }

  /** Takes note of a wait that the body has made and not awaited yet. */
  offered(call: FoundCall): void {
    this.offers ??= new Map()
    this.offers.set(call.name, call)
  }

  /** The body has awaited the wait of that name. */
  taken(name: string): void {
    this.offers?.delete(name)
    // A frame may rest for a long time.
    if (this.offers?.size === 0) this.offers = null
  }

  /** Waits that have begun, and that the body has not awaited so far. */
  get unawaited(): readonly WaitCall[] {
    if (this.begun.length > 0) this.begun = this.begun.filter(({ isAwaited }) => !isAwaited)
    return this.begun
  }

  /** Waits that have not begun, because the body has not awaited them. */
  get unbegun(): readonly FoundCall[] {
    return this.offers === null ? none : [...this.offers.values()]
  }

  /** The run must outlast that child. */
  outlast(runId: string): void {
    this.children ??= new Set()
    this.children.add(runId)
  }

  /** A child has ended. */
  ended(runId: string): void {
    this.children?.delete(runId)
  }

  /** The children that the run must outlast, and that have not ended. */
  get outlasted(): ReadonlySet<string> {
    return this.children ?? noIds
  }
}
