// A wait as a value. It begins when it is made: at the end of the turn in which the body made it, a child is started and a
// relative time begins to count, also if the body does not await it yet. A wait that is awaited or passed to a race before
// that begins with it, in one entry. A message is taken only by a wait that is awaited, alone or in a race; then the run may
// be parked for as long as it takes. A race is a wait, too.

import { inspected } from '../../core/text/inspect.ts'
import type { WaitCall } from '../frame/body-call.ts'
import type { WaitCase } from './wait-case.ts'

/** The frame whose body made a wait, as far as the wait sees it. */
export interface WaitFrame {
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
  /** Why the wait could not be made: it rejects with this error when it is awaited. */
  readonly failure?: { readonly error: unknown }
  /** Waits: on a wait that was begun before, or on one that begins now. */
  await(cases: readonly WaitCase[], begun: WaitCall | null): Promise<unknown>
}

/** A condition that a run can wait on. */
export class Wait<Value> implements PromiseLike<Value> {
  private readonly cases: readonly WaitCase[]
  private readonly frame: WaitFrame
  /** It was awaited or handed to a race, or has begun by itself. */
  private isTaken = false
  private begun: WaitCall | null = null
  private awaited: Promise<Value> | undefined

  constructor(cases: readonly WaitCase[], frame: WaitFrame) {
    this.cases = cases
    this.frame = frame
    if (cases.some(beginsWhenMade)) frame.made(this)
    else frame.offered()
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
    const refusal = this.awaited === undefined ? this.frame.refusal() : null
    if (refusal !== null) return Promise.reject<Value>(refusal).then(onFulfilled, onRejected)
    this.awaited ??= this.await()
    return this.awaited.then(onFulfilled, onRejected)
  }

  // Awaiting must not throw: it rejects.
  private async await(): Promise<Value> {
    this.take()
    return this.frame.await(this.cases, this.begun) as Promise<Value>
  }

  private take(): void {
    if (!this.isTaken) this.frame.taken()
    this.isTaken = true
  }

  /** The turn in which it was made is over. Returns the call that has begun; null if it began as part of another wait. */
  static begin(wait: Wait<unknown>): WaitCall | null {
    if (wait.isTaken) return null
    wait.isTaken = true
    wait.begun = wait.frame.begin(wait.cases)
    return wait.begun
  }

  /** The error of the first wait that could not be made; null if each of them was. Awaiting that one, too, is up to the caller. */
  static failureOf(waits: Readonly<Record<string, Wait<unknown>>>): { readonly error: unknown } | null {
    const failed = Object.values(waits).find(({ frame }) => frame.failure !== undefined)
    if (failed === undefined) return null
    failed.then(undefined, () => undefined)
    return failed.frame.failure ?? null
  }

  /** The cases of several waits, each under its tag: the winner's tag says which it was. */
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

  constructor(token: string, cases: readonly WaitCase[], frame: WaitFrame) {
    super(cases, frame)
    this.token = token
  }
}

/** The result of a wait. */
export type Waited<Waiting> = Waiting extends Wait<infer Value> ? Value : never

/** Waits, and nothing else. For a promise, the compiler's message is the given text. */
type OnlyWaits<Waits, Text extends string> = {
  readonly [Tag in keyof Waits]: Waits[Tag] extends Wait<unknown>
    ? Waits[Tag]
    : Waits[Tag] extends PromiseLike<unknown>
      ? Text
      : Wait<unknown>
}

/** The arguments of a race. Its result says under which name the winner stands, so that a list or a single wait is none. */
export type Raceable<Waits> = Waits extends readonly unknown[] | PromiseLike<unknown>
  ? 'ctx.race takes an object with a name for each wait, such as { go: ctx.receive(…), late: ctx.sleep(…) }: a step cannot be raced'
  : OnlyWaits<
      Waits,
      'a step cannot be raced, nor another promise: only waits can, such as ctx.receive(…), ctx.sleep(…) and ctx.child(…)'
    >

/** The arguments of `ctx.all`. */
export type Joinable<Waits> = OnlyWaits<
  Waits,
  'ctx.all takes only waits, such as ctx.receive(…) and ctx.child(…): await steps and other promises with Promise.all([…])'
>

/** The result of a race: the tag of the wait that came true first, and its result. */
export type RaceResult<Waits> = {
  [Tag in keyof Waits & string]: { readonly tag: Tag; readonly value: Waited<Waits[Tag]> }
}[keyof Waits & string]

/** The results of several waits. */
export type AllResult<Waits> = { -readonly [Key in keyof Waits]: Waited<Waits[Key]> }
