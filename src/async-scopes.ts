// Follows calls across `await`, with the runtime's own AsyncLocalStorage.
//
// Before Node 24 a process that follows a call pays with every promise of the process: measured on Node 20, a hundred
// thousand small async functions took 230 ms instead of 92. So only the first calls of each name are followed there, in any
// loop or branch, and when none of them is under way, nothing is. That finds an error that is always made at its first
// occurrence; the remaining cost is 5 to 7 % of a step in memory, because the runtime stops inlining promises. For all other
// calls the async stack trace is examined, when a call comes that may be wrong.

import { AsyncLocalStorage } from 'node:async_hooks'
import type { Scopes } from './core/runtime/ports.ts'

export interface ScopesOptions {
  /** How many calls of each name are followed. @default all from Node 24 on, and 10 before */
  readonly callsOfName?: number
}

/** The calls of at most this many names are counted: names may be made anew for each run. */
const mostNames = 1_000

const isCheap = Number.parseInt(process.versions.node, 10) >= 24

// One for the process, however many engines it has: with every promise each storage that is in use is looked at, and one whose
// step never ends stays in use.
const storage = new AsyncLocalStorage<object>()
let underWay = 0

export function createScopes({ callsOfName = isCheap ? Infinity : 10 }: ScopesOptions = {}): Scopes {
  /** How many calls of each step there were, by type and step: no text is made of the two, because most are not followed. */
  const calls = new Map<string, Map<string, number>>()
  let names = 0

  const follows = (type: string, step: string): boolean => {
    if (callsOfName === Infinity) return true
    const ofType = calls.get(type)
    const count = ofType?.get(step) ?? 0
    if (count >= callsOfName || (count === 0 && names >= mostNames)) return false
    if (count === 0) names += 1
    if (ofType === undefined) calls.set(type, new Map([[step, 1]]))
    else ofType.set(step, count + 1)
    return true
  }
  const isOver = (): void => {
    underWay -= 1
    if (underWay === 0 && callsOfName !== Infinity) storage.disable()
  }

  return {
    follows,
    run(scope, work) {
      underWay += 1
      try {
        const result = storage.run(scope, () => settling(work()))
        if (result instanceof Promise) result.then(isOver, isOver)
        else isOver()
        return result
      } catch (error) {
        isOver()
        throw error
      }
    },
    current: () => storage.getStore(),
    snapshot: () => AsyncLocalStorage.snapshot(),
    ...(callsOfName === Infinity ? {} : { isAwaitedBy }),
  }
}

/** At most this many calls and awaits are looked through. */
const deepestTrace = 200

/**
 * The runtime knows which functions await an async function, and lists them in the stack of an error. That costs nothing
 * until it is read.
 */
function isAwaitedBy(name: string): boolean {
  const { stackTraceLimit } = Error
  const prepare = Object.getOwnPropertyDescriptor(Error, 'prepareStackTrace')
  const trace: { stack?: unknown } = {}
  try {
    Error.stackTraceLimit = deepestTrace
    // A custom formatter of stack traces must not see this one.
    Reflect.deleteProperty(Error, 'prepareStackTrace')
    Error.captureStackTrace(trace, isAwaitedBy)
    // A function that is being executed is not one that awaits.
    const isAwaiting = (line: string): boolean => line.includes(' async ') && line.includes(`.${name} (`)
    return String(trace.stack).split('\n').some(isAwaiting)
  } finally {
    Error.stackTraceLimit = stackTraceLimit
    if (prepare !== undefined) Object.defineProperty(Error, 'prepareStackTrace', prepare)
  }
}

/** A thenable is awaited inside the scope: a query of some libraries begins only with its `then`. */
function settling(result: unknown): unknown {
  const isThenable = typeof result === 'object' && result !== null && 'then' in result
  return isThenable && typeof result.then === 'function' ? Promise.resolve(result) : result
}
