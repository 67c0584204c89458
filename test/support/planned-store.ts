// A store under watch: every call must execute the statements that its method plans, in that order. A call that had to begin
// anew, because others were in its way, must do so the last time.

import { AsyncLocalStorage } from 'node:async_hooks'
import {
  createReadCommittedStore,
  type ReadCommittedStore,
  type ReadCommittedStoreOptions,
} from '../read-committed/store.ts'
import { statementPlan, unplanned, type PlannedMethod } from '../read-committed/statement-plan.ts'

/** One for all stores: each of them would make every promise slower. */
const calls = new AsyncLocalStorage<string[]>()

/** Called with every call that was answered, with its statements. */
export type OnCall = (method: PlannedMethod, executed: readonly string[]) => void

/** The read-committed store, watched. */
export function createPlannedStore(
  options: ReadCommittedStoreOptions,
  onCall: OnCall = () => undefined,
): ReadCommittedStore {
  const store = createReadCommittedStore({
    ...options,
    schedule(statement) {
      noteStatement(statement)
      return options.schedule(statement)
    },
  })
  return keptToPlan(store, onCall)
}

/** A statement is executed, by whichever call is under way. */
export function noteStatement(statement: string): void {
  const executed = calls.getStore()
  // Between two rows of one statement, or two statements that make one of the plan, its name comes again.
  if (executed?.at(-1) !== statement) executed?.push(statement)
}

/** The same store; a call that does not keep to its plan is rejected. It must note its statements. */
export function keptToPlan<Subject extends object>(store: Subject, onCall: OnCall = () => undefined): Subject {
  return new Proxy(store, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name)
      if (typeof member !== 'function' || !isPlanned(name)) return member
      return async (...given: unknown[]) => {
        const executed: string[] = []
        const answer: unknown = await calls.run(executed, () => Reflect.apply(member, target, given) as unknown)
        const deviation = wrong(name, executed)
        // Where others have locked all that a call is about, there is nothing to write or commit.
        if (deviation !== null && !isBusy(answer))
          throw new Error(`${name} did not keep to its plan: ${deviation}. It did ${executed.join(', ')}`)
        onCall(name, executed)
        return answer
      }
    },
  })
}

function isBusy(answer: unknown): boolean {
  const answers: readonly unknown[] = Array.isArray(answer) ? answer : []
  return answers.some((one) => Object.values(one as object).includes('busy'))
}

function isPlanned(name: string | symbol): name is PlannedMethod {
  return Object.hasOwn(statementPlan, name)
}

function wrong(method: PlannedMethod, executed: readonly string[]): string | null {
  const deviation = unplanned(method, executed)
  if (deviation === null) return null
  const isRetried = executed.some((_, from) => from > 0 && unplanned(method, executed.slice(from)) === null)
  return isRetried ? null : deviation
}
