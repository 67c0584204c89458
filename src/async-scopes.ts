// Follows calls through what they await, with the runtime's own AsyncLocalStorage.
//
// Before Node 24 a process that follows anything pays with every promise that anybody makes: measured on Node 20, a hundred
// thousand small async functions took 230 ms instead of 92. So only the first calls of each name are followed there, whichever
// of a loop or a branch they are, and when none of them is under way, nothing is. That finds what is always wrong the first time, and costs nothing from then on.

import { AsyncLocalStorage } from 'node:async_hooks'
import type { Scopes } from './core/ports.ts'

export interface ScopesOptions {
  /** How many calls of each name are followed. @default all from Node 24 on, and 10 before */
  readonly callsOfName?: number
}

/** Names may be made anew for each run: of so many the calls are counted. */
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

  const follows = (type: string, call: string): boolean => {
    if (callsOfName === Infinity) return true
    const step = nameOf(call)
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
  }
}

/** The name by which the body called it: `charge` for `eu/charge#2`. */
function nameOf(call: string): string {
  const from = call.lastIndexOf('/') + 1
  const till = call.indexOf('#', from)
  return till === -1 ? call.slice(from) : call.slice(from, till)
}

/** What can be awaited is awaited inside the scope: a query begins when somebody does. */
function settling(result: unknown): unknown {
  const isThenable = typeof result === 'object' && result !== null && 'then' in result
  return isThenable && typeof result.then === 'function' ? Promise.resolve(result) : result
}
