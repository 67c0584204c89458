// Has an input decided inside a transaction of the user's: it takes effect if and only if that commits. The instance is read in
// the transaction, and its row is locked by the commit, so an input of another process that comes in between is seen.

import { isDecider, type Answer, type Decided, type Executed } from '../../core/definition/decider-model.ts'
import type { Definition } from '../../core/definition/definition.ts'
import { bug, HoldfastError } from '../../core/errors/error.ts'
import type { Run } from '../../core/model/run.ts'
import { assertNotPure } from '../../core/runtime/pure-call.ts'
import { decidedTransition } from '../../core/deciding/decided-transition.ts'
import { fetchedEntries } from '../../core/deciding/read-entries.ts'
import { quotedText } from '../../core/text/printable.ts'
import { creatorOf, decidedStart, freshInstance, keyTaken } from '../../engine/deciders/begin-instance.ts'
import { CachedInstance, findInstanceRun, notDecider } from '../../engine/deciders/cached-instance.ts'
import { hostOf } from '../../engine/deciders/deciding-engine.ts'
import { expectWorker } from '../../engine/deciders/expect-worker.ts'
import type { Engine } from '../../engine/engine.ts'
import { loadEntries } from '../../engine/store/journal-pages.ts'
import type { Started, TransactionStore } from '../../store.ts'
import { checkedInput, withOwnState, type CheckedInput } from './execute.ts'
import type { ExecuteOptions } from './executor.ts'

/** How often others may be first: each of them has committed something. */
const mostTries = 20

interface GivenInput {
  readonly decider: Definition | string
  readonly input: unknown
  readonly options: ExecuteOptions
}

/**
 * The instances that began in a transaction, which nobody outside of it can see, by the handle of the transaction. A handle may be
 * used again: an instance that was rolled back has no journal.
 */
const begun = new WeakMap<object, Map<string, Run>>()

/** @internal */
export async function executeInTransaction(
  engine: Engine,
  { store, tx }: { readonly store: TransactionStore; readonly tx: unknown },
  { decider, input, options }: GivenInput,
): Promise<Executed> {
  assertNotPure('holdfast.using(tx).execute()')
  const checked = await checkedInput(engine, { decider, input, options, call: 'execute()' })
  await engine.learnTime()
  return inTurn(tx, () => executeChecked(engine, { store, tx }, checked))
}

/** The last call of each transaction. */
const last = new WeakMap<object, Promise<unknown>>()

/** Calls that are not awaited follow each other: two that read one instance at the same time would write the same entries. */
function inTurn<Result>(tx: unknown, call: () => Promise<Result>): Promise<Result> {
  if (typeof tx !== 'object' || tx === null) return call()
  const turn = (last.get(tx) ?? Promise.resolve()).then(call)
  last.set(
    tx,
    turn.catch(() => undefined),
  )
  return turn
}

async function executeChecked(
  engine: Engine,
  { store, tx }: { readonly store: TransactionStore; readonly tx: unknown },
  checked: CheckedInput,
): Promise<Executed> {
  const { type } = checked.definition
  const own = begunIn(tx)
  const name = `${type}\n${checked.id}`
  let run = own.get(name) ?? (await findInstanceRun(engine, type, checked.id))
  for (let tries = 0; tries < mostTries; tries += 1) {
    const done = run === null ? await begin(engine, store, checked) : await decide(engine, store, { checked, run })
    if (done === 'again') {
      own.delete(name)
      run = await findInstanceRun(engine, type, checked.id)
      continue
    }
    if ('run' in done) own.set(name, (run = done.run))
    if (done.answer !== undefined) return done.answer
  }
  throw busy(checked)
}

function begunIn(tx: unknown): Map<string, Run> {
  if (typeof tx !== 'object' || tx === null) return new Map()
  const known = begun.get(tx) ?? new Map<string, Run>()
  begun.set(tx, known)
  return known
}

type Done = 'again' | { readonly answer: Executed } | { readonly run: Run; readonly answer?: Executed }

async function begin(engine: Engine, store: TransactionStore, checked: CheckedInput): Promise<Done> {
  const { definition, id, input, command } = checked
  const fresh = freshInstance(engine, definition, id)
  const decided = fresh.instance.decide([{ kind: 'call', input, command }], { now: engine.clock.now() })
  if (decided.append.length === 0) return { answer: await answered(engine, store, fresh, decided) }
  if (creatorOf(decided.answers) !== 0) throw bug('An instance begins with an input that was not accepted')
  const start = await decidedStart(engine, { fresh, decided, input })
  const [started] = (await store.start([start])) as [Started]
  if (started.created) expectWorker(engine, fresh.run, start.decided)
  if (started.created) return { run: started.run, answer: await answered(engine, store, fresh, decided) }
  if (started.taken === 'key') throw keyTaken(started.run)
  // It was begun in this transaction, or by another process.
  return { run: started.run }
}

async function decide(
  engine: Engine,
  store: TransactionStore,
  { checked, run }: { readonly checked: CheckedInput; readonly run: Run },
): Promise<Done> {
  const { input, command } = checked
  const cached = await read(engine, store, run)
  const { instance } = cached
  const { seq } = instance
  if (seq === 0) return 'again'
  const decided = instance.decide([{ kind: 'call', input, command }], { now: engine.clock.now() })
  if (decided.append.length === 0) return { answer: await answered(engine, store, cached, decided) }
  const isWanted = (): boolean => !engine.isClosed
  const written = { run: cached.run, seq, decided, lease: null, parkIf: null, isWanted }
  const transition = await decidedTransition({ host: hostOf(engine), ...written })
  const [committed] = await store.commit([transition])
  if (committed?.outcome === 'committed') expectWorker(engine, cached.run, transition)
  if (committed?.outcome === 'committed') return { answer: await answered(engine, store, cached, decided) }
  if (committed?.reason === 'held') throw busy(checked)
  return 'again'
}

async function read(engine: Engine, store: TransactionStore, run: Run): Promise<CachedInstance> {
  const definition = engine.registry.get(run.type, run.version)
  if (!isDecider(definition)) throw notDecider(run.type)
  const cached = new CachedInstance(engine, definition, { ...run, instanceId: run.idempotencyKey ?? run.id })
  if ((await cached.fold(await loadEntries(store, run.id, run.base - 1))) === 'folded') return cached
  const whole = new CachedInstance(engine, definition, cached.run)
  await whole.fold(await loadEntries(store, run.id))
  return whole
}

async function answered(
  engine: Engine,
  store: TransactionStore,
  { instance, run }: CachedInstance,
  { answers: [given] }: Decided,
): Promise<Executed> {
  let answer: Answer | undefined = given
  if (answer?.outcome === 'duplicate') {
    const entries = await loadEntries(store, run.id, answer.of.seq - 1)
    answer = answer.first ?? instance.recall(answer.of, await fetchedEntries(engine, entries, () => true))
  }
  switch (answer?.outcome) {
    case 'accepted':
      return withOwnState(answer)
    case 'rejected':
    case 'already-completed':
      return answer
    case 'failed':
      throw answer.error
    default:
      throw bug('An input in a transaction was not decided')
  }
}

function busy({ definition, id }: CheckedInput): HoldfastError {
  return new HoldfastError(
    'WRONG_STATUS',
    `Instance ${quotedText(id)} of decider ${quotedText(definition.type)} is being moved by a worker, or is paused: roll your ` +
      'transaction back and try again, or call holdfast.execute() outside of it.',
    { details: { type: definition.type, id } },
  )
}
