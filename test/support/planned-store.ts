// The read-committed store under watch: every call must execute the statements that its method plans, in that order. A call
// that had to begin anew, because others were in its way, must do so the last time.

import { AsyncLocalStorage } from 'node:async_hooks'
import {
  createReadCommittedStore,
  type ReadCommittedStore,
  type ReadCommittedStoreOptions,
} from '../../src/stores/memory/read-committed/store.ts'
import { unplanned, type PlannedMethod } from '../../src/stores/statement-plan.ts'

/** One for all stores: each of them would make every promise slower. */
const calls = new AsyncLocalStorage<string[]>()

/** `onCall` is told of every call that was answered, with its statements. */
export function createPlannedStore(
  options: ReadCommittedStoreOptions,
  onCall: (method: PlannedMethod, executed: readonly string[]) => void = () => undefined,
): ReadCommittedStore {
  const store = createReadCommittedStore({
    ...options,
    schedule(statement) {
      const executed = calls.getStore()
      // Between two rows of one statement its name comes again.
      if (executed?.at(-1) !== statement) executed?.push(statement)
      return options.schedule(statement)
    },
  })
  const watched = new Map<string, (...given: unknown[]) => Promise<unknown>>()
  for (const [name, method] of Object.entries(store) as [string, unknown][]) {
    if (typeof method !== 'function' || name === 'waits') continue
    watched.set(name, async (...given) => {
      const executed: string[] = []
      const answer: unknown = await calls.run(executed, () => Reflect.apply(method, store, given) as unknown)
      const told = wrong(name as PlannedMethod, executed)
      if (told !== null) throw new Error(`${name} did not keep to its plan: ${told}. It did ${executed.join(', ')}`)
      onCall(name as PlannedMethod, executed)
      return answer
    })
  }
  return Object.assign({}, store, Object.fromEntries(watched))
}

function wrong(method: PlannedMethod, executed: readonly string[]): string | null {
  const told = unplanned(method, executed)
  if (told === null) return null
  const isRetried = executed.some((_, from) => from > 0 && unplanned(method, executed.slice(from)) === null)
  return isRetried ? null : told
}
