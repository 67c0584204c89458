// The first input of an instance: the run is inserted with all that follows from it, in one transaction. If its first inputs are
// rejected, nothing is inserted.
//
// The id of the instance is the idempotency key of its run: unique among all of its type that are not deleted, finished ones
// too. Its business key is unique among the live ones.

import type { Answer, Decided, DeciderDefinition } from '../../core/definition/decider-model.ts'
import { HoldfastError } from '../../core/errors/error.ts'
import type { RunStart } from '../../core/rules/run-start.ts'
import type { Run } from '../../core/model/run.ts'
import { shardOf } from '../../core/model/run-id.ts'
import type { Transition } from '../../core/model/transition.ts'
import { shardForNew } from '../../core/rules/shard-routing.ts'
import { decidedTransition, type WrittenRun } from '../../core/deciding/decided-transition.ts'
import { quotedText } from '../../core/text/printable.ts'
import { shown } from '../../core/text/suggest.ts'
import { CachedInstance, instanceOf } from './cached-instance.ts'
import { hostOf, type DecidingEngine } from './deciding-engine.ts'
import { EffectLeases } from './effect-leases.ts'
import type { Call, DecidingActor } from './deciding-actor.ts'

/**
 * Answers how many of the calls have their answers now; that another run has the id, which is known here then; or that none of
 * these inputs begins an instance.
 */
export async function beginInstance(
  actor: DecidingActor,
  calls: readonly Call[],
): Promise<number | 'again' | 'rejected'> {
  const { fresh, decided } = decideFresh(actor, calls)
  if (decided.append.length === 0) return 'rejected'
  const unusable = unusableKey(actor, calls[creatorOf(decided.answers)])
  if (unusable !== null) return refuseCreator(calls, decided.answers, unusable.error)
  const outcome = await insert(actor, fresh, decided, calls)
  if (outcome === 'again') return outcome
  if (outcome !== null) return refuseCreator(calls, decided.answers, keyTaken(outcome))
  actor.cached = fresh
  await actor.answer(fresh, calls, decided.answers)
  return decided.answers.length
}

/** There is no such instance, and none of these inputs begins one. */
export async function rejectFirst(actor: DecidingActor, calls: readonly Call[]): Promise<number> {
  const { fresh, decided } = decideFresh(actor, calls)
  await actor.answer(fresh, calls, decided.answers)
  return decided.answers.length
}

function decideFresh({ engine, definition, id }: DecidingActor, calls: readonly Call[]) {
  const fresh = freshInstance(engine, definition, id)
  const offers = calls.map(({ input, command }) => ({ kind: 'call', input, command }) as const)
  return { fresh, decided: fresh.instance.decide(offers, { now: engine.clock.now() }) }
}

/** An instance that does not exist yet. */
export function freshInstance(engine: DecidingEngine, definition: DeciderDefinition, id: string): CachedInstance {
  const { runIds, shards, ports } = engine
  const runId = runIds.next(shardForNew({ key: null, idempotencyKey: id }, shards, ports.random))
  const { type, version, feed } = definition
  const shard = shards === 1 ? 0 : shardOf(runId) % shards
  return new CachedInstance(engine, definition, {
    id: runId,
    shard,
    type,
    version,
    priority: 0,
    feed,
    keyId: null,
    instanceId: id,
  })
}

/** Null if the run was inserted; the run that has its key, if one does. */
async function insert(
  actor: DecidingActor,
  fresh: CachedInstance,
  decided: Decided,
  calls: readonly Call[],
): Promise<Run | 'again' | null> {
  const { engine } = actor
  const leases = new EffectLeases(engine)
  const { input } = calls[creatorOf(decided.answers)] as Call
  try {
    const made = await decidedStart(engine, { fresh, decided, input })
    const given = { ...made, decided: leases.reserve(made.decided) }
    const started = await engine.start(given)
    if (!started.created) {
      if (started.taken === 'key') return started.run
      actor.cached = await instanceOf(engine, started.run)
      return 'again'
    }
    fresh.run = { ...fresh.run, keyId: given.keyId ?? null }
    fresh.instance.committed(started.run.createdAt)
    actor.noteCommitted(fresh, given.decided)
    leases.begin(started.leased, started.run.createdAt)
    return null
  } finally {
    leases.giveBack()
  }
}

export interface DecidedStart {
  readonly fresh: CachedInstance
  readonly decided: Decided
  /** The input that it begins with. */
  readonly input: unknown
}

/** The insert of an instance with what follows from its first inputs. */
export async function decidedStart(
  engine: DecidingEngine,
  { fresh, decided, input }: DecidedStart,
): Promise<RunStart & { readonly decided: Transition }> {
  const [first, ...rest] = decided.append
  if (first?.kind !== 'started') throw new HoldfastError('BUG', 'An instance does not begin with its first input.')
  const { definition } = fresh
  const { payloads } = engine
  const keyId = payloads.keyOf(first.data)
  const run: WrittenRun = { ...fresh.run, keyId }
  const kept = payloads.keep(first.data, payloads.place(run.id, 1, 'started', null))
  const host = hostOf(engine)
  const isWanted = (): boolean => !engine.isClosed
  const follows = { ...decided, append: rest }
  return {
    id: run.id,
    shard: run.shard,
    type: run.type,
    version: run.version,
    key: keyOf(engine, definition, input),
    keyScope: 'workflow',
    idempotencyKey: run.instanceId,
    parentId: null,
    tags: definition.tags,
    metadata: null,
    feed: run.feed,
    keyId,
    priority: 0,
    due: null,
    timeoutMs: null,
    expiresInMs: null,
    lease: null,
    leaseMs: null,
    transition: engine.transitionId(),
    first: { ...first, data: typeof kept === 'string' ? kept : await kept },
    decided: await decidedTransition({ host, run, seq: 1, lease: null, decided: follows, parkIf: null, isWanted }),
  }
}

/** The input that the instance begins with: rejected ones before it leave nothing. */
export function creatorOf(answers: readonly Answer[]): number {
  return answers.findIndex(({ outcome }) => outcome === 'accepted')
}

function keyOf({ shards }: DecidingEngine, definition: DeciderDefinition, input: unknown): string | null {
  const key = definition.model.uniqueKeyOf(input)
  if (key === null || shards === 1) return key
  throw new HoldfastError(
    'INVALID_OPTION',
    `Decider ${quotedText(definition.type)} has a uniqueKey, and this store spreads runs over ${shards} shards, by the ids of ` +
      'instances: there no second key can be unique. Make it the id.',
  )
}

/** The error of an input whose instance would have the key of another one. */
export function keyTaken(rival: Run): HoldfastError {
  return new HoldfastError(
    'RUN_EXISTS',
    `The live instance ${shown(rival.idempotencyKey)} of decider ${quotedText(rival.type)} has the unique key ${shown(rival.key)}. ` +
      'The key is free when that instance is over.',
    { details: { runId: rival.id, type: rival.type, id: rival.idempotencyKey, key: rival.key, status: rival.status } },
  )
}

/** Why an instance cannot have the key of its first input; null if it can, or has none. */
function unusableKey(
  { engine, definition }: DecidingActor,
  call: Call | undefined,
): { readonly error: unknown } | null {
  try {
    keyOf(engine, definition, call?.input)
    return null
  } catch (error) {
    return { error }
  }
}

/** The caller of the input that no instance can begin with has its error, and the others are decided anew. */
function refuseCreator(calls: readonly Call[], answers: readonly Answer[], error: unknown): number {
  const at = creatorOf(answers)
  // Those before it were rejected on the state of an instance that does not exist, and that is still so.
  for (const [index, call] of calls.slice(0, at + 1).entries()) {
    const answer = answers[index] as Answer
    if (index === at) call.reject(error)
    else if (answer.outcome === 'rejected') call.resolve(answer)
    else if (answer.outcome === 'failed') call.reject(answer.error)
  }
  return at + 1
}
