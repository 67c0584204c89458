// A wait as a value. It begins when it is made: at the end of the turn in which the body made it, a child is started and a
// relative time begins to count, also if nobody awaits it yet. What is awaited or handed to a race before that begins with it,
// in one entry. A message is taken only by a wait that is awaited, alone or in a race; then the run may be parked for as long
// as it takes. A race is a wait, too.

import { inspected } from '../../core/text/inspect.ts'
import type { WaitCall } from '../frame/body-call.ts'
import type { WaitCase } from './wait-case.ts'

/** What a wait asks of the run that made it. */
export interface WaitDeps {
  /** Why the wait cannot be awaited where this is called, inside a step; null if it can. The body still may. */
  refusal(): Error | null
  /** Takes note of a wait that begins when it is made: it is asked to `begin` when the turn ends. */
  made(wait: Wait<unknown>): void
  /** Takes note of one that begins when it is awaited, so that it is known if it never is. */
  offered(): void
  /** It was awaited, or handed to a race. */
  taken(): void
  /** Starts what is to be started, and lets time count. */
  begin(cases: readonly WaitCase[]): WaitCall
  /** Waits: on what was begun before, or on what begins now. */
  await(cases: readonly WaitCase[], begun: WaitCall | null): Promise<unknown>
}

/** Something that a run can wait on. */
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

  /** The turn is over in which it was made. Gives back what has begun; null if it began with something else. */
  static begin(wait: Wait<unknown>): WaitCall | null {
    if (wait.isTaken) return null
    wait.isTaken = true
    wait.begun = wait.deps.begin(wait.cases)
    return wait.begun
  }

  /** The ways of several waits, each under its tag: what is won says which it was. */
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

/** What must not wait until somebody awaits it. */
function beginsWhenMade({ spec: { kind } }: WaitCase): boolean {
  return kind === 'child' || kind === 'delay'
}

/** A wait that somebody outside completes. */
export class TokenWait<Value> extends Wait<Value> {
  /** What lets somebody complete it, once: `holdfast.complete(token, value)`. It is the same on every replay. */
  readonly token: string

  constructor(token: string, cases: readonly WaitCase[], deps: WaitDeps) {
    super(cases, deps)
    this.token = token
  }
}

/** What a wait gives back. */
export type Waited<Waiting> = Waiting extends Wait<infer Value> ? Value : never

/** What a race takes: waits. For a promise, the compiler's message is the text that stands here. */
export type Raceable<Waits> = {
  readonly [Tag in keyof Waits]: Waits[Tag] extends Wait<unknown>
    ? Waits[Tag]
    : Waits[Tag] extends PromiseLike<unknown>
      ? 'a step cannot be raced, nor another promise: only waits can, such as ctx.receive(…), ctx.sleep(…) and ctx.child(…)'
      : Wait<unknown>
}

/** What a race gives back: the tag of the wait that came true first, and what that gave. */
export type RaceResult<Waits> = {
  [Tag in keyof Waits & string]: { readonly tag: Tag; readonly value: Waited<Waits[Tag]> }
}[keyof Waits & string]

/** What all of several waits give back. */
export type AllResult<Waits> = { -readonly [Key in keyof Waits]: Waited<Waits[Key]> }
