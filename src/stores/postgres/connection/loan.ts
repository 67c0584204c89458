// The connection as a user's function gets it for the length of one transaction: it looks like the client of `pg`. Once it is
// taken back, every call on it is refused, so that code which goes on after its time can write neither outside of the
// transaction nor into another one.

import { HoldfastError } from '../../../core/errors/error.ts'
import { fatal } from '../../../core/definition/retry-mark.ts'

export interface Loan<Client extends object> {
  readonly lent: Client
  readonly takeBack: () => void
}

/** Whose connection it is decides about these. */
const ours: ReadonlySet<string | symbol> = new Set(['release', 'end', 'connect'])

/** `onFailure` is called with the error of each query that answers with a promise, which counts as handled then. */
export function lendClient<Client extends object>(
  client: Client,
  onFailure: (error: unknown) => void = () => undefined,
): Loan<Client> {
  let isOver = false
  const lent = new Proxy(client, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key, target)
      if (typeof value !== 'function' || key === 'constructor') return value
      return (...given: unknown[]): unknown => {
        // As `pg` does: code that goes on after its time handles a rejection, and no synchronous throw.
        if (isOver && key === 'query') return Promise.reject(isOverError())
        if (isOver) throw isOverError()
        if (ours.has(key)) throw notYours(String(key))
        const answer: unknown = Reflect.apply(value, target, given)
        if (key === 'query' && answer instanceof Promise) answer.catch(onFailure)
        return answer === target ? lent : answer
      }
    },
    set: (target, key, value) => Reflect.set(target, key, value, target),
  })
  return { lent, takeBack: () => (isOver = true) }
}

export function isOverError(): HoldfastError {
  return new HoldfastError(
    'INVALID_OPTION',
    'This transaction is over: await every call on it before the function returns, and within its timeout.',
  )
}

function notYours(method: string): Error {
  return fatal(
    new HoldfastError(
      'INVALID_OPTION',
      `The connection of a transaction belongs to Holdfast: do not call ${method}() on it. Return from the function instead.`,
    ),
  )
}
