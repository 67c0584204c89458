// The committing half of a store that a test answers by hand. Its journals are real: transitions are fenced, a repeated one
// is a no-op, a batch with a poisonous entry is refused as a whole. It checks what every flush must keep to: no run twice
// in a batch, or in two flushes at a time, and never a third flush of those that do not go apart.

import type { Draft } from '../../src/core/model/entry.ts'
import { HoldfastError } from '../../src/core/errors/error.ts'
import type { Lease } from '../../src/core/model/run.ts'
import type { Transition } from '../../src/core/model/transition.ts'
import type { BatchOptions, Committed, Store } from '../../src/store.ts'

export const lease: Lease = { session: 'here', token: 1 }

interface Journal {
  readonly entries: { readonly name: string | null; readonly transition: string | null }[]
  /** The session that holds the run. */
  lease: Lease | null
  inbox: number
}

/** One call of commit that waits for its answer. */
export class Flush {
  readonly transitions: readonly Transition[]
  readonly options: BatchOptions
  private readonly store: ScriptedStore
  private readonly resolve: (answers: readonly Committed[]) => void
  private readonly reject: (error: unknown) => void

  constructor(
    store: ScriptedStore,
    transitions: readonly Transition[],
    options: BatchOptions,
    resolve: (answers: readonly Committed[]) => void,
    reject: (error: unknown) => void,
  ) {
    this.store = store
    this.transitions = transitions
    this.options = options
    this.resolve = resolve
    this.reject = reject
  }

  get runIds(): readonly string[] {
    return this.transitions.map(({ runId }) => runId)
  }

  get names(): readonly (readonly (string | null)[])[] {
    return this.transitions.map(({ append }) => append.map(({ name }) => name))
  }

  /** Commits, or refuses the batch if there is poison in it. */
  answer(): void {
    this.store.landed(this)
    try {
      this.resolve(this.store.apply(this.transitions))
    } catch (error) {
      this.reject(error)
    }
  }

  /** Answers with what a store must never say. */
  answerWith(answers: readonly Committed[]): void {
    this.store.landed(this)
    this.resolve(answers)
  }

  fail(error: unknown): void {
    this.store.landed(this)
    this.reject(error)
  }

  /** Commits, and then loses the answer. */
  lose(): void {
    this.store.landed(this)
    try {
      this.store.apply(this.transitions)
      this.reject(unavailable())
    } catch (error) {
      this.reject(error)
    }
  }
}

export class ScriptedStore implements Pick<Store, 'commit'> {
  /** Every flush, in the order in which they came. */
  readonly flushes: Flush[] = []
  readonly violations: string[] = []
  /** Called for every flush; without it flushes wait until the test answers them. */
  onFlush: ((flush: Flush) => void) | null = null
  private readonly journals = new Map<string, Journal>()
  private readonly flying = new Set<Flush>()

  /** Makes runs that are held under `lease`. */
  constructor(runIds: readonly string[]) {
    for (const runId of runIds) this.journals.set(runId, { entries: [], lease, inbox: 0 })
  }

  commit(transitions: readonly Transition[], options: BatchOptions = {}): Promise<readonly Committed[]> {
    return new Promise((resolve, reject) => {
      const flush = new Flush(this, transitions, options, resolve, reject)
      const busy = [...this.flying].flatMap(({ runIds }) => runIds)
      if (new Set([...busy, ...flush.runIds]).size < busy.length + transitions.length) this.violations.push('run twice')
      const common = [...this.flying, flush].filter((one) => one.options.mayWait !== true)
      if (common.length > 2) this.violations.push('a third flush')
      this.flushes.push(flush)
      this.flying.add(flush)
      this.onFlush?.(flush)
    })
  }

  /** The flushes that wait for their answer. */
  get waiting(): readonly Flush[] {
    return [...this.flying]
  }

  names(runId: string): readonly (string | null)[] {
    return this.journal(runId).entries.map(({ name }) => name)
  }

  /** Another session takes the run over. */
  steal(runId: string): void {
    this.journal(runId).lease = { session: 'elsewhere', token: 2 }
  }

  deliver(runId: string): void {
    this.journal(runId).inbox += 1
  }

  landed(flush: Flush): void {
    this.flying.delete(flush)
  }

  apply(transitions: readonly Transition[]): readonly Committed[] {
    if (transitions.some(({ append }) => append.some(isPoison))) throw rejected()
    return transitions.map((transition) => this.applyOne(transition))
  }

  private applyOne({ id, runId, guard, append, status, parkIf }: Transition): Committed {
    const journal = this.journals.get(runId)
    if (journal === undefined) return { outcome: 'refused', reason: 'not-found' }
    const { entries, inbox } = journal
    const held = journal.lease?.token === guard.lease?.token && journal.lease?.session === guard.lease?.session
    const seq = guard.seq + append.length
    if (entries.length !== guard.seq) {
      if (entries[guard.seq]?.transition !== id) return { outcome: 'refused', reason: 'stale' }
      return { outcome: 'committed', seq, at: seq, inbox, released: status !== null && !held, controlRequest: null }
    }
    if (!held) return { outcome: 'refused', reason: 'lease-lost' }
    append.forEach(({ name }, index) => entries.push({ name, transition: index === 0 ? id : null }))
    const released = status !== null && (parkIf === null || parkIf.inbox === inbox)
    if (released) journal.lease = null
    return { outcome: 'committed', seq, at: seq, inbox, released, controlRequest: null }
  }

  private journal(runId: string): Journal {
    const journal = this.journals.get(runId)
    if (journal === undefined) throw new Error(`The test made no run ${runId}`)
    return journal
  }
}

/** Writes transitions of one run, each following the one before. */
export class Scribe {
  seq = 0
  private readonly runId: string
  private written = 0

  constructor(runId: string) {
    this.runId = runId
  }

  write(names: readonly string[], changes: Partial<Transition> = {}): Transition {
    const guard = { seq: this.seq, lease }
    this.seq += names.length
    this.written += 1
    const { runId } = this
    const id = `${runId}.${this.written}`
    return {
      id,
      runId,
      guard,
      append: names.map((name) => entry(name)),
      status: null,
      due: null,
      parkIf: null,
      undo: null,
      continues: null,
      takes: [],
      ...changes,
    }
  }
}

export function entry(name: string, data = '1'): Draft {
  return { kind: 'recorded', name, meta: null, data }
}

/** An entry with this in its name is one that the store cannot take. */
function isPoison({ name }: Draft): boolean {
  return name?.includes('poison') === true
}

export function unavailable(): HoldfastError {
  return new HoldfastError('STORE_UNAVAILABLE', 'The store does not answer.')
}

function rejected(): HoldfastError {
  return new HoldfastError('ENTRY_REJECTED', 'The store cannot take an entry.')
}
