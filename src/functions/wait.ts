// A wait as a value: nothing happens until it is awaited, and then the run may be parked for as long as it takes.

/** Something that a run can wait on. It is registered when it is awaited, not when it is made. */
export class Wait<Value> implements PromiseLike<Value> {
  private readonly register: () => Promise<Value>
  private registered: Promise<Value> | undefined

  constructor(register: () => Promise<Value>) {
    this.register = register
  }

  // oxlint-disable-next-line unicorn/no-thenable -- awaiting a wait is what registers it
  then<Fulfilled = Value, Rejected = never>(
    onFulfilled?: ((value: Value) => Fulfilled | PromiseLike<Fulfilled>) | null,
    onRejected?: ((reason: unknown) => Rejected | PromiseLike<Rejected>) | null,
  ): Promise<Fulfilled | Rejected> {
    this.registered ??= this.register()
    return this.registered.then(onFulfilled, onRejected)
  }
}

/** What a sleep gives back: when it was due, and when the run saw that it was. */
export interface TimeReached {
  readonly scheduledAt: Date
  readonly firedAt: Date
}
