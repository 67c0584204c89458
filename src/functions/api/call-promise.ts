// The promises that a body is given: none ends the process when nobody awaits it yet, and none throws instead of rejecting.

/**
 * A promise that knows whether anybody has asked what comes of it. Whoever does reads its `constructor` first, by the rules of the
 * language: `await`, `then`, `Promise.all` and an async function that returns it. It names the plain one, so an `await` takes as many
 * microtasks as that of any promise, and whatever follows from it is a plain promise. A `then` of its own would be called by
 * them, too, but only for a promise that names another class, which `await` wraps: that was a fifth of what a step costs in memory.
 */
export class CallPromise<Value> extends Promise<Value> {
  isHeard = false

  /** A body may begin something now and await it later. If it fails in between, that must not end the process. */
  silence(): void {
    const { isHeard } = this
    void this.then(undefined, () => undefined)
    this.isHeard = isHeard
  }
}

// No class can say this of itself: there `constructor` is a method.
Reflect.defineProperty(CallPromise.prototype, 'constructor', {
  get(this: CallPromise<unknown>): PromiseConstructor {
    this.isHeard = true
    return Promise
  },
})

/** A call of the body that has failed, and whose error nobody had asked for by then. */
export interface UnhandledFailure {
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
