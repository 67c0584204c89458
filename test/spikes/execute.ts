// `execute()`: hands an input to a decider and answers once it was decided and committed, by the worker that holds the run. The id
// makes a repetition harmless: the first outcome is answered again.

import { HoldfastError } from '../../src/core/errors/error.ts'
import type { Entry } from '../../src/core/model/entry.ts'
import { messagePlaceOf } from '../../src/core/payload/place.ts'
import { createBackoff } from '../../src/core/runtime/backoff.ts'
import type { Payloads } from '../../src/core/payload/payload.ts'
import type { Ports } from '../../src/core/runtime/ports.ts'
import { isTerminal } from '../../src/core/model/run.ts'
import type { Store } from '../../src/store.ts'
import type { Typed } from './decider.ts'

export interface Access {
  readonly store: Store
  readonly payloads: Payloads
  readonly ports: Pick<Ports, 'clock' | 'random'>
}

export interface Executed {
  readonly outcome: 'accepted' | 'rejected' | 'already-completed'
  /** Why it was rejected. */
  readonly reason: string | null
  readonly events: readonly unknown[]
}

type AnyInput = Typed & Readonly<Record<string, unknown>>

const entriesAtOnce = 500

/** Leaves an input for a run, and waits for nothing. False if the run has ended. */
export async function enqueue(access: Access, runId: string, input: AnyInput, id: string): Promise<boolean> {
  return leave(access, { runId, id, name: 'input' }, input)
}

/** Leaves a message for a run. False if the run has ended. */
export async function leave(
  { store, payloads }: Access,
  { runId, id, name }: { readonly runId: string; readonly id: string; readonly name: string },
  value: unknown,
): Promise<boolean> {
  const place = messagePlaceOf(payloads.namespace, { kind: 'signal', runId, name, id })
  const data = await payloads.keep(payloads.encode(value, place), place)
  const [answer] = await store.deliver([{ id, runId, kind: 'signal', name, data, policy: null }])
  if (answer === undefined || answer.outcome === 'target-not-found') {
    throw new HoldfastError('RUN_NOT_FOUND', `There is no run ${runId}.`, { details: { runId } })
  }
  return answer.outcome !== 'target-terminated'
}

export async function execute(access: Access, runId: string, input: AnyInput, id: string): Promise<Executed> {
  const { store, payloads, ports } = access
  const completed: Executed = { outcome: 'already-completed', reason: null, events: [] }
  if (!(await enqueue(access, runId, input, id))) return completed
  const pause = createBackoff(ports)
  for (let after = 0; ;) {
    // The row first: what it had ended with stands in what is read afterwards.
    const [run] = await store.get([runId])
    for (;;) {
      const [loaded] = await store.load([{ runId, after, limit: entriesAtOnce }])
      const entries = loaded?.entries ?? []
      const found = entries.findIndex((entry) => isInput(entry, id))
      // What follows from it may stand on the next page: that begins with it.
      if (found > 0 && entries.length === entriesAtOnce) after += found
      else if (found !== -1) return await answer(payloads, runId, entries.slice(found))
      else after += entries.length
      if (entries.length < entriesAtOnce) break
    }
    if (run !== undefined && isTerminal(run.status)) return completed
    await pause()
  }
}

function isInput({ kind, meta }: Entry, id: string): boolean {
  return kind === 'input' && meta.from.kind === 'message' && meta.from.id === id
}

async function answer(payloads: Payloads, runId: string, [first, ...rest]: readonly Entry[]): Promise<Executed> {
  if (first?.kind !== 'input') throw new Error('An answer begins with its input')
  const end = rest.findIndex(({ kind }) => kind !== 'event' && kind !== 'input-rejected')
  const values: unknown[] = []
  for (const { seq, kind, name, data } of end === -1 ? rest : rest.slice(0, end)) {
    values.push(payloads.decode(await payloads.fetch(data ?? ''), payloads.place(runId, seq, kind, name)))
  }
  const { outcome } = first.meta
  if (outcome === 'failed' || outcome === 'duplicate') throw new Error('The spike records no such outcome')
  if (outcome === 'rejected') return { outcome, reason: values[0] as string, events: [] }
  return { outcome, reason: null, events: values }
}
