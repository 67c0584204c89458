// A wait as a value. It begins when it is made: at the end of the turn in which the body made it, a child is started and a
// relative time begins to count, also if the body does not await it yet. A wait that is awaited or passed to a race before
// that begins with it, in one entry. A message is taken only by a wait that is awaited, alone or in a race; then the run may
// be parked for as long as it takes. A race is a wait, too.

import { inspected } from '../../core/text/inspect.ts'
import type { WaitCall } from '../frame/body-call.ts'
import type { WaitCase } from './wait-case.ts'

/** The calls of a wait to the run that made it. */
export interface WaitDeps {
  /** Why the wait cannot be awaited where this is called, inside a step; null if it can. The body still may. */
  refusal(): Error | null
  /** Takes note of a wait that begins when it is made: it is asked to `begin` when the turn ends. */
  made(wait: Wait<unknown>): void
  /** Takes note of one that begins when it is awaited, so that it is known if it never is. */
  offered(): void
  /** It was awaited, or handed to a race. */
  taken(): void
  /** Starts its children, and lets its time count. */
  begin(cases: readonly WaitCase[]): WaitCall
  /** Waits: on a wait that was begun before, or on one that begins now. */
  await(cases: readonly WaitCase[], begun: WaitCall | null): Promise<unknown>
}

/** A condition that a run can wait on. */
export class Wait<Value> implements PromiseLike<Value> {
  private readonly cases: readonly WaitCase[]
  private readonly deps: WaitDeps
  /** It was awaited or handed to a race, or has begun by itself. */
  private isTaken = false
  private begun: WaitCall | null = null
  private awaited: Promise<Value> | undefined

  constructor(cases: readonly WaitCase[], deps: WaitDeps) {
    this.cases = cases
    this.deps = deps
    if (cases.some(beginsWhenMade)) deps.made(this)
    else deps.offered()
  }

  toJSON(): object {
    return { waitsFor: this.cases.map(({ spec: { kind } }) => kind) }
  }

  [inspected](): object {
    return this.toJSON()
  }

  // oxlint-disable-next-line unicorn/no-thenable -- awaiting a wait is what makes the run wait
  then<Fulfilled = Value, Rejected = never>(
    onFulfilled?: ((value: Value) => Fulfilled | PromiseLike<Fulfilled>) | null,
    onRejected?: ((reason: unknown) => Rejected | PromiseLike<Rejected>) | null,
  ): Promise<Fulfilled | Rejected> {
    const refusal = this.awaited === undefined ? this.deps.refusal() : null
    if (refusal !== null) return Promise.reject<Value>(refusal).then(onFulfilled, onRejected)
    this.awaited ??= this.await()
    return this.awaited.then(onFulfilled, onRejected)
  }

  // Awaiting must not throw: it rejects.
  private async await(): Promise<Value> {
    this.take()
    return this.deps.await(this.cases, this.begun) as Promise<Value>
  }

  private take(): void {
    if (!this.isTaken) this.deps.taken()
    this.isTaken = true
  }

  /** The turn in which it was made is over. Returns the call that has begun; null if it began as part of another wait. */
  static begin(wait: Wait<unknown>): WaitCall | null {
    if (wait.isTaken) return null
    wait.isTaken = true
    wait.begun = wait.deps.begin(wait.cases)
    return wait.begun
  }

  /** The cases of several waits, each under its tag: the winner's tag tells which it was. */
  static tagged(waits: Readonly<Record<string, Wait<unknown>>>): readonly WaitCase[] {
    return Object.entries(waits).flatMap(([tag, wait]) => {
      const { cases } = wait
      wait.take()
      if (wait.begun !== null) wait.begun.isAwaited = true
      return cases.map(({ tag: inner, spec, read }) => ({
        tag: cases.length === 1 ? tag : `${tag}/${inner}`,
        spec,
        read: (meta, value): unknown => {
          const won = read(meta, value)
          return won instanceof Promise ? won.then((later) => ({ tag, value: later as unknown })) : { tag, value: won }
        },
      }))
    })
  }
}

/** Whether a wait begins before it is awaited. */
function beginsWhenMade({ spec: { kind } }: WaitCase): boolean {
  return kind === 'child' || kind === 'delay'
}

/** A wait that an external system completes. */
export class TokenWait<Value> extends Wait<Value> {
  /** Lets its bearer complete the wait, once: `holdfast.complete(token, value)`. It is the same on every replay. */
  readonly token: string

  constructor(token: string, cases: readonly WaitCase[], deps: WaitDeps) {
    super(cases, deps)
    this.token = token
  }
}

/** The result of a wait. */
export type Waited<Waiting> = Waiting extends Wait<infer Value> ? Value : never

/** The arguments of a race: waits. For a promise, the compiler's message is the text below. */
export type Raceable<Waits> = {
  readonly [Tag in keyof Waits]: Waits[Tag] extends Wait<unknown>
    ? Waits[Tag]
    : Waits[Tag] extends PromiseLike<unknown>
      ? 'a step cannot be raced, nor another promise: only waits can, such as ctx.receive(…), ctx.sleep(…) and ctx.child(…)'
      : Wait<unknown>
}

/** The result of a race: the tag of the wait that came true first, and its result. */
export type RaceResult<Waits> = {
  [Tag in keyof Waits & string]: { readonly tag: Tag; readonly value: Waited<Waits[Tag]> }
}[keyof Waits & string]

/** The results of several waits. */
export type AllResult<Waits> = { -readonly [Key in keyof Waits]: Waited<Waits[Key]> }
