// The promises that a body is given: none ends the process when nobody awaits it yet, and none throws instead of rejecting.

/** A body may begin something now and await it later. If it fails in between, that must not end the process. */
export function quietly<Value>(promise: Promise<Value>): Promise<Value> {
  promise.catch(() => undefined)
  return promise
}

/** What returns a promise rejects and never throws. */
export function rejecting<Value>(make: () => Promise<Value>): Promise<Value> {
  try {
    return quietly(make())
  } catch (error) {
    return refused(error)
  }
}

export function refused(error: unknown): Promise<never> {
  return quietly(Promise.reject(error as Error))
}

export function never<Value>(): Promise<Value> {
  return new Promise(() => undefined)
}
