// The promises that a body is given: none ends the process when nobody awaits it yet, and none throws instead of rejecting.

/**
 * A promise that knows whether anybody has asked what comes of it. `await`, `Promise.all` and an async function that returns it
 * call `then` of a promise that is not quite a plain one. Every call has such a one, however dear: an `await` of it takes two more
 * microtasks than that of a plain one, and if some had those and others had not, a replay would go in another order.
 */
export class CallPromise<Value> extends Promise<Value> {
  isHeard = false

  /** What follows from it is a plain promise. */
  static override get [Symbol.species](): PromiseConstructor {
    return Promise
  }

  // oxlint-disable-next-line unicorn/no-thenable -- a promise has one
  override then<Fulfilled = Value, Rejected = never>(
    onFulfilled?: ((value: Value) => Fulfilled | PromiseLike<Fulfilled>) | null,
    onRejected?: ((reason: unknown) => Rejected | PromiseLike<Rejected>) | null,
  ): Promise<Fulfilled | Rejected> {
    this.isHeard = true
    return super.then(onFulfilled, onRejected)
  }

  /** A body may begin something now and await it later. If it fails in between, that must not end the process. */
  silence(): void {
    void super.then(undefined, () => undefined)
  }
}

/** A call of the body that has failed, and whose error nobody had asked for by then. */
export interface Unheard {
  readonly promise: CallPromise<unknown>
  /** How a warning calls it: `step "charge"`. */
  readonly what: string
  readonly place: string | null
  readonly error: unknown
}

/** What returns a promise rejects and never throws. `unheard` is told of an error that nobody has asked for. */
export function rejecting<Value>(
  make: () => Promise<Value>,
  unheard: (promise: CallPromise<unknown>, error: unknown) => void,
): Promise<Value> {
  let made: Promise<Value>
  try {
    made = make()
  } catch (error) {
    made = Promise.reject(error)
  }
  // A step tells of its failure itself.
  if (made instanceof CallPromise) return made
  const given = new CallPromise<Value>((resolve, reject) => {
    made.then(resolve, (error: unknown) => {
      reject(error)
      given.silence()
      if (!given.isHeard) unheard(given, error)
    })
  })
  return given
}

export function never<Value>(): Promise<Value> {
  return new Promise(() => undefined)
}
