// A promise together with what settles it. With one function that takes both for all of them, no closure is made for each: every
// commit and every call of a store needs such a promise.

type Resolve = (value: never) => void
type Reject = (error: unknown) => void

let lastResolve: Resolve = () => undefined
let lastReject: Reject = () => undefined
const hold = (resolve: Resolve, reject: Reject): void => {
  lastResolve = resolve
  lastReject = reject
}

export class Deferred<Value> {
  readonly promise = new Promise<Value>(hold)
  readonly resolve = lastResolve as (value: Value) => void
  readonly reject = lastReject
}
