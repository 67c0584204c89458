// A store that is watched: after every call all runs are read, and everything that must be true of them, and of the step
// that the call made, is checked. Calls are let through one at a time, so that nothing happens between a call and the look.

import type { Lease } from '../../src/core/model/run.ts'
import type { Transition } from '../../src/core/model/transition.ts'
import type { BeatRequest, ClaimRequest, NewRun, Store, StoreAdmin } from '../../src/store.ts'
import {
  checkAll,
  checkFeed,
  checkStep,
  type Cause,
  type RunState,
  type Violation,
} from '../../src/testing/invariants/index.ts'

export interface WaitTarget {
  readonly store: Store & StoreAdmin
  /** What was found so far. */
  readonly violations: readonly (Violation & { readonly method: string })[]
  /** The runs as they were after the last call. */
  readonly states: () => readonly RunState[]
}

export async function statesOf(store: Store & StoreAdmin): Promise<readonly RunState[]> {
  const found = await Promise.all([true, false].map((deleted) => store.find({ deleted }, { limit: 10_000 })))
  const runs = found.flat()
  const loaded = await store.load(runs.map(({ id }) => ({ runId: id, after: 0, limit: 100_000 })))
  return runs.map((run, index) => ({
    run,
    entries: loaded[index]?.entries ?? [],
    messages: loaded[index]?.messages ?? [],
  }))
}

const watched = new Set(['start', 'claim', 'commit', 'deliver', 'control', 'beat', 'rescue', 'release'])

export function watch(store: Store & StoreAdmin, now: () => number): WaitTarget {
  const violations: (Violation & { method: string })[] = []
  const aliveUntil = new Map<string, number>()
  let before = new Map<string, RunState>()
  let turn: Promise<unknown> = Promise.resolve()

  const look = async (method: keyof Store, request: unknown): Promise<void> => {
    const time = now()
    const states = await statesOf(store)
    for (const state of states) {
      const cause: Cause = {
        method,
        now: time,
        isAlive: (id) => (aliveUntil.get(id) ?? 0) > time,
        ...who(request, state),
      }
      violations.push(...checkStep(before.get(state.run.id) ?? null, state, cause).map((one) => ({ ...one, method })))
    }
    violations.push(...checkAll(states, time).map((one) => ({ ...one, method })))
    violations.push(...checkFeed(await store.changes(0, 1_000_000), states).map((one) => ({ ...one, method })))
    before = new Map(states.map((state) => [state.run.id, state]))
  }

  const call = async (method: keyof Store, request: unknown): Promise<unknown> => {
    const answer: unknown = await (store[method] as (given: unknown) => Promise<unknown>).call(store, request)
    if (method === 'beat') {
      const { session, leaseMs, end = false } = request as BeatRequest
      const { alive } = answer as { readonly alive: boolean }
      aliveUntil.set(session, alive && !end ? now() + leaseMs : 0)
    }
    await look(method, request)
    return answer
  }

  return {
    violations,
    states: () => [...before.values()],
    store: new Proxy(store, {
      get(target, key) {
        const value: unknown = Reflect.get(target, key)
        if (typeof value !== 'function') return value
        if (!watched.has(key as string)) return value.bind(target) as unknown
        return (request: unknown): Promise<unknown> => {
          const next = turn.then(() => call(key as keyof Store, request))
          turn = next.catch(() => undefined)
          return next
        }
      },
    }),
  }
}

type Asked = Partial<Pick<Transition, 'guard'> & Pick<NewRun, 'lease'> & Lease & { id: string; runId: string }>

/** Who called, as far as this run goes. */
function who(request: unknown, { run }: RunState): Pick<Cause, 'session' | 'token'> {
  if (!Array.isArray(request)) return { session: (request as Partial<ClaimRequest>).session ?? null }
  const one = (request as readonly Asked[]).find(({ id, runId }) => (runId ?? id) === run.id)
  const { session, token } = one?.guard?.lease ?? one?.lease ?? one ?? {}
  return { session: session ?? null, ...(token === undefined ? {} : { token }) }
}
