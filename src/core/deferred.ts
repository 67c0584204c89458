// A promise together with what settles it. With one function that takes both for all of them, no closure is made for each: that
// and its scope were 130 bytes with every commit and every call of a store.

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
