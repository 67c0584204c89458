// A wait as a value: nothing happens until it is awaited, alone or in a race, and then the run may be parked for as long as it
// takes. A race is a wait, too.

import type { Way } from './way.ts'

/** Something that a run can wait on. It is registered when it is awaited, not when it is made. */
export class Wait<Value> implements PromiseLike<Value> {
  private readonly ways: readonly Way[]
  private readonly register: (ways: readonly Way[]) => Promise<unknown>
  private registered: Promise<Value> | undefined

  constructor(ways: readonly Way[], register: (ways: readonly Way[]) => Promise<unknown>) {
    this.ways = ways
    this.register = register
  }

  // oxlint-disable-next-line unicorn/no-thenable -- awaiting a wait is what registers it
  then<Fulfilled = Value, Rejected = never>(
    onFulfilled?: ((value: Value) => Fulfilled | PromiseLike<Fulfilled>) | null,
    onRejected?: ((reason: unknown) => Rejected | PromiseLike<Rejected>) | null,
  ): Promise<Fulfilled | Rejected> {
    this.registered ??= this.begin()
    return this.registered.then(onFulfilled, onRejected)
  }

  // Awaiting must not throw: it rejects.
  private async begin(): Promise<Value> {
    return this.register(this.ways) as Promise<Value>
  }

  /** The ways of several waits, each under its tag: what is won says which it was. */
  static tagged(waits: Readonly<Record<string, Wait<unknown>>>): readonly Way[] {
    return Object.entries(waits).flatMap(([tag, { ways }]) =>
      ways.map(({ tag: inner, ask, read }) => ({
        tag: ways.length === 1 ? tag : `${tag}/${inner}`,
        ask,
        read: (meta, value): unknown => {
          const won = read(meta, value)
          return won instanceof Promise ? won.then((later) => ({ tag, value: later as unknown })) : { tag, value: won }
        },
      })),
    )
  }
}

/** A wait that somebody outside completes. */
export class TokenWait<Value> extends Wait<Value> {
  /** What lets somebody complete it, once: `holdfast.complete(token, value)`. It is the same on every replay. */
  readonly token: string

  constructor(token: string, ways: readonly Way[], register: (ways: readonly Way[]) => Promise<unknown>) {
    super(ways, register)
    this.token = token
  }
}

/** What a wait gives back. */
export type Waited<Waiting> = Waiting extends Wait<infer Value> ? Value : never

/** What a race gives back: the tag of the wait that came true first, and what that gave. */
export type Raced<Waits> = {
  [Tag in keyof Waits & string]: { readonly tag: Tag; readonly value: Waited<Waits[Tag]> }
}[keyof Waits & string]

/** What all of several waits give back. */
export type Gathered<Waits> = { -readonly [Key in keyof Waits]: Waited<Waits[Key]> }
