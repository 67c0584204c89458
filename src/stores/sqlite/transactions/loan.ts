// Lends a connection to a user's function for the length of one transaction. It looks like the library's own object; once it
// is taken back, every object that was made from it refuses to work, so that code which goes on after its time can write
// neither outside of the transaction nor into another one.

import { fatal } from '../../../core/definition/retry-mark.ts'
import { HoldfastError } from '../../../core/errors/error.ts'

export interface Loan<Thing extends object> {
  readonly lent: Thing
  readonly takeBack: () => void
}

/** The lent objects, and their originals. */
const origins = new WeakMap<object, object>()

/**
 * The methods that return an object which works on the connection later: a statement, its rows one by one, a function in a
 * savepoint.
 */
const lends = new Set<string | symbol>(['prepare', 'iterate', 'transaction'])

/** The connection is the store's, and every other run of the process needs it. */
const ours = new Set<string | symbol>(['close', 'open', Symbol.for('nodejs.dispose'), Symbol.dispose ?? 'dispose'])

/** The connection itself, whether it was lent or not. */
export function originOf(handle: object): object {
  return origins.get(handle) ?? handle
}

export function lend<Thing extends object>(thing: Thing): Loan<Thing> {
  let isOver = false
  const assertLent = (): void => {
    if (!isOver) return
    throw new HoldfastError(
      'INVALID_OPTION',
      'This transaction is over: it was committed, or rolled back because its time was over, and takes no ' +
        'more calls. Await every call on it before the function returns.',
    )
  }
  const wrap = <Wrapped extends object>(origin: Wrapped): Wrapped => {
    const wrapped: Wrapped = new Proxy(origin, {
      get(target, key) {
        assertLent()
        // Native methods and private fields want their own object, not the proxy.
        const value: unknown = Reflect.get(target, key, target)
        if (typeof value !== 'function' || key === 'constructor') return value
        return (...given: unknown[]): unknown => {
          assertLent()
          if (origin === (thing as object) && ours.has(key)) throw notYours(key)
          const answer: unknown = Reflect.apply(value, target, given)
          if (answer === target) return wrapped
          return lends.has(key) && isObject(answer) ? wrap(answer) : answer
        }
      },
      set: (target, key, value) => Reflect.set(target, key, value, target),
      apply(target, self, given) {
        assertLent()
        return Reflect.apply(target as (...given: unknown[]) => unknown, self, given)
      },
    })
    origins.set(wrapped, origin)
    return wrapped
  }
  return { lent: wrap(thing), takeBack: () => (isOver = true) }
}

function notYours(method: string | symbol): Error {
  const message =
    `The connection of a transaction belongs to Holdfast: do not call ${String(method)}() on it. Return from the function ` +
    'instead.'
  return fatal(new HoldfastError('INVALID_OPTION', message))
}

function isObject(value: unknown): value is object {
  return (typeof value === 'object' && value !== null) || typeof value === 'function'
}
