// Starts runs and reads them. It runs no user code but the check of an input and the choice of a version.

import { checkSignalName } from '../core/definition/declared-topic.ts'
import type { Definition, NewChild } from '../core/definition/definition.ts'
import { dueAt } from '../core/model/due.ts'
import type { Entry } from '../core/model/entry.ts'
import { HoldfastError } from '../core/errors/error.ts'
import type { MessageDraft } from '../core/model/message.ts'
import type { Place } from '../core/payload/place.ts'
import { refusalOf } from '../core/payload/refusal.ts'
import { isRunId, shardOf } from '../core/model/run-id.ts'
import { shardForNew, type Routed } from '../core/rules/shard-routing.ts'
import { holds, type Lease, type Run } from '../core/model/run.ts'
import { shown } from '../core/text/suggest.ts'
import type { Engine } from '../engine/engine.ts'
import { entryRequest, lastEntryRequests } from '../engine/store/journal-pages.ts'
import type { NewRun, Started, TransactionStore } from '../store.ts'
import { abortable } from './abort-option.ts'
import { FirstEntries } from './start/first-entries.ts'
import { RunHandle } from './run-handle.ts'
import { idOf, runNotFound, type RunReference } from './run-reference.ts'
import { readData, showsLast, viewOf, type RunView } from './read/run-view.ts'
import {
  checkChildOptions,
  checkId,
  checkStartOptions,
  checkWorkflow,
  describeRun,
  startedMeta,
  type StartedChildOptions,
  type Described,
  type StartOptions,
} from './start/start-options.ts'
import { quotedText } from '../core/text/printable.ts'

/** The choice of versions for a run that is started by the name of its workflow. */
export interface VersionChoice {
  readonly type: string
  /** The versions that are registered here, the newest last. */
  readonly versions: readonly number[]
  readonly input: unknown
  readonly key: string | undefined
  readonly tags: readonly string[]
}

/** Chooses the version of a new run; undefined for the newest. */
export type VersionFor = (choice: VersionChoice) => number | undefined

/** A run that this process has in its memory. */
export interface ActiveRun {
  readonly id: string
  /** `running`: it is being performed here. `parked`: it waits, and will go on without replay if it is claimed here. */
  readonly state: 'running' | 'parked'
}

/** A start that has been checked and encoded. */
export interface PreparedStart {
  readonly definition: Definition
  readonly described: Described
  readonly id: string
  readonly meta: ReturnType<typeof startedMeta>
  readonly options: StartOptions | undefined
  /** The input as the run will see it. */
  readonly value: unknown
  /** The same, as its first entry keeps it. */
  readonly data: string
  /** The key that it was written with. */
  readonly keyId: string | null
}

export class Client {
  private readonly engine: Engine
  private readonly versionFor: VersionFor | undefined
  private readonly firstEntries: FirstEntries

  /** @internal */
  constructor(engine: Engine, versionFor: VersionFor | undefined) {
    this.engine = engine
    this.firstEntries = new FirstEntries(engine.store, engine.ports)
    this.versionFor = versionFor
  }

  start(workflow: Definition | string, input: unknown, options?: StartOptions): Promise<RunHandle<unknown>> {
    try {
      return this.launch(this.prepare(workflow, input, options))
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /** Checks a start and encodes its input; at once, unless the workflow's schema or an offload needs time. */
  prepare(
    workflow: Definition | string,
    input: unknown,
    options: StartOptions | undefined,
    parent: Pick<NewChild, 'parentId' | 'atOnce'> | null = null,
  ): PreparedStart | Promise<PreparedStart> {
    const { engine } = this
    engine.assertOpen()
    if (typeof workflow !== 'string') checkWorkflow(workflow)
    if (options !== undefined) checkStartOptions(options, typeof workflow === 'string' ? workflow : workflow.type)
    const definition = this.choose(workflow, input, options)
    const value = definition.validate(input)
    const parentId = parent?.parentId ?? null
    if (value instanceof Promise && parent?.atOnce === true) throw takesTime(definition, value)
    // Without a closure, which every start would pay for.
    if (value instanceof Promise) return this.prepareLater(definition, value, options, parentId)
    return this.prepareChecked(definition, value, options, parentId)
  }

  private async prepareLater(
    definition: Definition,
    checked: Promise<unknown>,
    options: StartOptions | undefined,
    parentId: string | null,
  ): Promise<PreparedStart> {
    return this.prepareChecked(definition, await checked, options, parentId)
  }

  private prepareChecked(
    definition: Definition,
    value: unknown,
    options: StartOptions | undefined,
    parentId: string | null,
  ): PreparedStart | Promise<PreparedStart> {
    const { payloads, limits } = this.engine
    const described = describeRun(options, definition, value, limits)
    const id = options?.id === undefined ? this.newId(described, parentId) : this.givenId(options.id, described)
    const meta = options === undefined ? null : startedMeta(options)
    const place = payloads.place(id, 1, 'started', null)
    const text = this.inputText(value, place, definition)
    const keyId = payloads.keyOf(text)
    const data = payloads.keep(text, place)
    if (typeof data === 'string') return { definition, described, id, meta, options, value, data, keyId }
    return data.then((kept) => ({ definition, described, id, meta, options, value, data: kept, keyId }))
  }

  private inputText(value: unknown, place: Place, { type }: Definition): string {
    try {
      return this.engine.payloads.encode(value, place)
    } catch (error) {
      throw refusalOf(error, `The input of ${quotedText(type)}`)
    }
  }

  /** Inserts a run that is prepared, and begins it here if there is room. It is on its way to the store when this returns. */
  async launch(start: PreparedStart | Promise<PreparedStart>): Promise<RunHandle<unknown>> {
    const prepared = start instanceof Promise ? await start : start
    const { engine } = this
    const { id, described, data } = prepared
    const { localWorker } = engine
    const lease = described.due === null ? (localWorker?.reserve() ?? null) : null
    let isReserved = lease !== null
    try {
      const run = this.newRun(prepared, lease)
      const { transition } = run
      const started = await engine.start(run, prepared.options?.abortSignal)
      // A session that was found dead meanwhile gets no lease: then the run waits to be claimed.
      if (lease !== null && started.created && holds(started.run, lease)) {
        const at = started.run.createdAt
        const { meta } = prepared
        const entry: Entry = { kind: 'started', name: null, meta, data, seq: 1, at, transition }
        isReserved = false
        localWorker?.begin(started.run, lease, [entry])
        return new RunHandle(engine, id, true, described.key)
      }
      if (!started.created) {
        const { abortSignal } = prepared.options ?? {}
        return await abortable('start()', abortSignal, () =>
          this.existing(this.firstEntries.read, started, run, prepared),
        )
      }
      engine.onReady()
      this.warnIfUnclaimed(run)
      return new RunHandle(engine, id, true, described.key)
    } finally {
      if (isReserved) localWorker?.cancel()
    }
  }

  /** Starts a run inside a transaction. It is never begun at once: it may yet never have existed. */
  async startInTransaction(
    transactionStore: TransactionStore,
    workflow: Definition | string,
    input: unknown,
    options?: StartOptions,
  ): Promise<RunHandle<unknown>> {
    const prepared = await this.prepare(workflow, input, options)
    const run = this.newRun(prepared, null)
    const [started] = (await transactionStore.start([run])) as [Started]
    if (!started.created) {
      // Only this transaction sees the run that it has started.
      const read = async (runId: string): Promise<Entry | undefined> =>
        (await transactionStore.load([entryRequest(runId, 1)]))[0]?.entries[0]
      return this.existing(read, started, run, prepared)
    }
    this.warnIfUnclaimed(run)
    return new RunHandle(this.engine, prepared.id, true, prepared.described.key)
  }

  /** Logs a warning if this process has no worker, and no other claims the run when it is due. */
  private warnIfUnclaimed({ type, id, due }: NewRun): void {
    const { localWorker, unclaimedWarning, ports } = this.engine
    if (localWorker !== null) return
    // By the time of this machine: that of the store may not be known yet.
    const now = ports.clock.now()
    unclaimedWarning.expect(type, id, Math.max(0, (dueAt(due, now) ?? now) - now))
  }

  /** Starts a run with a message in its mailbox. If a run has its key or id already, says which, and nothing has happened. */
  async startWithMessages(
    { workflow, input, options }: { workflow: Definition | string; input?: unknown; options: StartOptions },
    messageFor: (runId: string) => Promise<MessageDraft>,
  ): Promise<Started> {
    const prepared = await this.prepare(workflow, input, options)
    const messages = [await messageFor(prepared.id)]
    // Not leased: its holder has to read the mailbox first, which an eager start does not.
    const run = { ...this.newRun(prepared, null), messages }
    const started = await this.engine.start(run, options.abortSignal)
    if (started.created) this.warnIfUnclaimed(run)
    return started
  }

  /** A child, ready to be inserted with a commit of its parent. Without a key it lives in the shard of its parent. */
  readonly prepareChild = (child: NewChild): NewRun | Promise<NewRun> => {
    const { parentId, workflow, input, options } = child
    const given = options as StartedChildOptions
    checkChildOptions(given, typeof workflow === 'string' ? workflow : workflow.type)
    const prepared = this.prepare(workflow, input, { ...given, parent: parentId }, child)
    return prepared instanceof Promise
      ? prepared.then((later) => this.newRun(later, null))
      : this.newRun(prepared, null)
  }

  /** A new id names the shard in which the keys of the run are unique. */
  private newId(described: Routed, parentId: string | null): string {
    const { runIds, ports } = this.engine
    const isAnywhere = described.key === null && described.idempotencyKey === null
    if (parentId !== null && isAnywhere) return runIds.next(shardOf(parentId) % this.shards)
    return runIds.next(shardForNew(described, this.shards, ports.random))
  }

  private givenId(id: string, described: Routed): string {
    const { key } = described
    if (key === null || this.shards === 1) return checkId(id)
    // A start whose answer is missing is repeated by the id that was made for it.
    if (isRunId(id) && shardOf(id) % this.shards === shardForNew(described, this.shards, this.engine.ports.random))
      return id
    throw new HoldfastError(
      'INVALID_OPTION',
      'A run that has a key lives in the shard of that key, and its id says so: in a store of several shards leave out the id.',
    )
  }

  private get shards(): number {
    return this.engine.shards
  }

  private newRun({ id, definition, described, meta, data, keyId }: PreparedStart, lease: Lease | null): NewRun {
    const { key, keyScope, idempotencyKey, parentId, tags, metadata, priority, due, timeoutMs, expiresInMs } = described
    // Field by field: spreading took a tenth of the time of a whole run.
    return {
      id,
      shard: this.shards === 1 ? 0 : shardOf(id) % this.shards,
      type: definition.type,
      version: definition.version,
      key,
      keyScope,
      idempotencyKey,
      parentId,
      tags,
      metadata,
      feed: definition.feed,
      keyId,
      priority,
      due,
      timeoutMs,
      expiresInMs,
      lease,
      leaseMs: definition.leaseMs,
      transition: this.engine.transitionId(),
      first: { kind: 'started', name: null, meta, data },
    }
  }

  async get(reference: RunReference): Promise<RunView> {
    const id = idOf(reference)
    this.engine.assertOpen()
    const { store, payloads } = this.engine
    const [run] = await store.get([id])
    if (run === undefined) throw runNotFound(id)
    const [last] = showsLast(run) ? await store.load(lastEntryRequests([run])) : []
    return viewOf(run, last?.entries[0], payloads)
  }

  /** The last value that a run has exposed under that name; undefined if it has exposed none. */
  async query(reference: RunReference, name: string): Promise<unknown> {
    const runId = idOf(reference)
    checkSignalName(name, 'The exposed value')
    this.engine.assertOpen()
    const { store, payloads } = this.engine
    const latest = { kind: 'exposed', name } as const
    const [page] = await store.load([{ ...entryRequest(runId, 1), latest }])
    const entry = page?.entries[0]
    if (entry !== undefined) return readData(runId, entry, payloads)
    if ((await store.get([runId]))[0] === undefined) throw runNotFound(runId)
    return undefined
  }

  /** The state of a run in the memory of this process, without asking the store. */
  active(reference: RunReference): ActiveRun | null {
    const id = idOf(reference)
    const { localWorker } = this.engine
    if (localWorker?.isMoving(id) === true) return { id, state: 'running' }
    return localWorker?.isParked(id) === true ? { id, state: 'parked' } : null
  }

  /** A handle on a run that exists, or may. */
  handle(reference: RunReference): RunHandle<unknown> {
    return new RunHandle(this.engine, idOf(reference), false, null)
  }

  /** A definition has its version; for a name the options choose it, then versionFor, then the newest. */
  private choose(workflow: Definition | string, input: unknown, options: StartOptions | undefined): Definition {
    const { registry } = this.engine
    if (typeof workflow !== 'string' && options?.version === undefined) return registry.own(workflow)
    const type = typeof workflow === 'string' ? workflow : workflow.type
    if (options?.version !== undefined) return registry.get(type, options.version)
    const versions = registry.versions(type)
    const chosen = this.versionFor?.({ type, versions, input, key: options?.key, tags: options?.tags ?? [] })
    return registry.get(type, chosen ?? (versions.at(-1) as number))
  }

  /** Another run has the id or a key of a start: gives a handle on that run, or throws. */
  private async existing(
    read: FirstEntries['read'],
    { taken, run }: Started,
    given: NewRun,
    { value, options }: Pick<PreparedStart, 'value' | 'options'>,
  ): Promise<RunHandle<unknown>> {
    if (taken === 'key' && options?.onConflict !== 'return') {
      throw new HoldfastError(
        'RUN_EXISTS',
        `Run ${run.id} of ${quotedText(run.type)} has the key ${shown(given.key)} and is ${run.status}. Wait for its end, cancel it, ` +
          `or ask for it with onConflict: 'return'.`,
        { details: { runId: run.id, type: run.type, key: given.key, status: run.status } },
      )
    }
    if (taken === 'id' && run.type !== given.type) {
      throw new HoldfastError(
        'RUN_EXISTS',
        `Run ${run.id} exists and is of type ${quotedText(run.type)}, not ${quotedText(given.type)}. Choose another id.`,
        { details: { runId: run.id, type: run.type } },
      )
    }
    // A caller that asks for the live run of a key takes any input.
    if (taken !== 'key') await this.assertSameInput(await read(run.id), run, value, taken ?? 'id')
    return new RunHandle(this.engine, run.id, false, run.key)
  }

  /** A repeated start has the same input. Another input under the same id or key is a mistake: throws INPUT_CONFLICT. */
  private async assertSameInput(entry: Entry | undefined, run: Run, input: unknown, taken: string): Promise<void> {
    const { payloads } = this.engine
    const place = payloads.place(run.id, 1, 'started', null)
    if (entry !== undefined && entry.data !== null && payloads.isSame(await payloads.fetch(entry.data), input, place))
      return
    throw new HoldfastError(
      'INPUT_CONFLICT',
      `Run ${run.id} was started with the same ${taken} and another input. It goes on unharmed; use another ${taken} for ` +
        'another input.',
      { details: { runId: run.id, taken } },
    )
  }
}

function takesTime({ type }: Definition, value: Promise<unknown>): HoldfastError {
  value.catch(() => undefined)
  return new HoldfastError(
    'INVALID_OPTION',
    `The schema of ${quotedText(type)} takes time, and a decision is made at once: let an effect start the run.`,
    { details: { type } },
  )
}
