// Performs the run of one instance in a process that may have no worker: claims that run and no other, under a session of its
// own, decides what waits for it, and leaves it. So a call that names an instance depends on no worker.
//
// If this process dies meanwhile, the session ends with its lease, and a worker takes the run over like that of any other holder.

import type { DeciderDefinition } from '../../core/definition/decider-model.ts'
import type { Claim, Departure, Host } from '../../core/definition/definition.ts'
import { isHoldfastError } from '../../core/errors/error.ts'
import type { Run } from '../../core/model/run.ts'
import { loadEntries } from '../store/journal-pages.ts'
import type { DecidingEngine } from './deciding-engine.ts'
import { commitWithLeases } from './effect-leases.ts'

/** Much longer than a drain takes. */
const leaseMs = 30_000

export interface Performed {
  /** False if another process has it, or if it is not due. */
  readonly isClaimed: boolean
  /** The time of the store. */
  readonly now: number
}

export async function performHere(engine: DecidingEngine, definition: DeciderDefinition, run: Run): Promise<Performed> {
  const { store, payloads } = engine
  const session = engine.runIds.next(0)
  await store.beat({ session, leaseMs, seeksUnknownLeases: false })
  try {
    const { keys } = payloads
    const selectors = [{ type: run.type, version: run.version }]
    const request = { session, selectors, limit: 1, runId: run.id, ...(keys === null ? {} : { keys }) }
    const { runs, now } = await store.claim(request)
    const [claimed] = runs
    if (claimed === undefined) return { isClaimed: false, now }
    await perform(engine, definition, claimed)
    return { isClaimed: true, now }
  } finally {
    // If the store does not take it, the session is over when its lease is.
    await store.beat({ session, leaseMs, seeksUnknownLeases: false, end: true }).catch(() => undefined)
    engine.onReady()
  }
}

async function perform(engine: DecidingEngine, definition: DeciderDefinition, run: Run): Promise<void> {
  const lease = { session: run.session ?? '', token: run.token }
  const giveBack = async (): Promise<void> => void (await engine.store.release([{ ...lease, runId: run.id }]))
  let departure: Departure
  try {
    const entries = await loadEntries(engine.store, run.id, run.base - 1)
    departure = await departed(definition, hostOf(engine), { run, lease, entries, messages: null })
  } catch (error) {
    await giveBack().catch(() => undefined)
    throw error
  }
  if (departure.kind === 'ended') {
    const { status, seq, data, reason } = departure
    return engine.runEnds.ended({ runId: run.id, status, seq, data, reason })
  }
  if (departure.kind !== 'lost') return
  await giveBack().catch(() => undefined)
  // Another process has it now, and decides.
  if (!isHoldfastError(departure.reason) || departure.reason.family !== 'conflict') throw departure.reason
}

function departed(definition: DeciderDefinition, host: Host, claim: Claim): Promise<Departure> {
  return new Promise((resolve) => definition.open(host, claim).start({ departed: resolve }))
}

/** An instance performs nothing, so this host has no services, and no attempt beats here. */
function hostOf(engine: DecidingEngine): Host {
  return {
    ...engine.outgoing,
    ports: engine.ports,
    payloads: engine.payloads,
    services: {},
    inlineRetryMs: 0,
    abortGraceMs: 0,
    heartbeat: () => undefined,
    now: () => engine.clock.now(),
    untilIntervalMs: 0,
    mailbox: engine.mailbox,
    journal: async (runId, upTo) => (await loadEntries(engine.store, runId)).slice(0, upTo),
    transitionId: engine.transitionId,
    commit: (transition) => commitWithLeases(engine, transition),
    transact: null,
  }
}
