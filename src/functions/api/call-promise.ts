// The promises that a body gets: none ends the process if it rejects before the body awaits it, and none throws instead of
// rejecting.

/**
 * A promise that knows whether its outcome was asked for. By the rules of the language, `await`, `then`, `Promise.all` and an
 * async function that returns it all read its `constructor` first. That getter names the plain Promise, so an `await` takes
 * as many microtasks as with any promise, and every promise derived from it is a plain one. Overriding `then` would also see
 * these calls, but only with a `constructor` that names another class, and `await` wraps such a promise in another: that was
 * a fifth of the memory of a step.
 */
export class CallPromise<Value> extends Promise<Value> {
  isHeard = false

  /** A body may make a call now and await it later. If the call fails in between, that must not end the process. */
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

/** A call of the body that has failed before the body asked for its outcome. */
export interface UnhandledFailure {
  readonly promise: CallPromise<unknown>
  /** How a warning calls it: `step "charge"`. */
  readonly what: string
  readonly place: string | null
  readonly error: unknown
}

/** The promise rejects; the call never throws. `unheard` is called with an error whose promise the body has not awaited. */
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
  // A step reports its failure itself.
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
