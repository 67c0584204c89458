// What the property tests do to stores: operations that are drawn at random from what the oracle holds, and then bent: wrong
// tokens, old journals, repetitions, unknown ids, keys that are taken, ended sessions. Runs start and watch one another, and
// topics. The same seed draws the same operations.

import type { Draft } from '../../src/core/model/entry.ts'
import type { MessageDraft } from '../../src/core/model/message.ts'
import type { WaitTarget } from '../../src/core/model/wait-target.ts'
import { keyScopes } from '../../src/core/model/key.ts'
import type { Random } from '../../src/core/runtime/ports.ts'
import { runStatuses, type Run, type UndoState } from '../../src/core/model/run.ts'
import type { Control } from '../../src/core/rules/control.ts'
import type { NextStatus, Outbound, Transition } from '../../src/core/model/transition.ts'
import type { NewBroadcast, NewMessage, NewRun, RunFilter, ControlCommand, Store, StoreAdmin } from '../../src/store.ts'
import { createSeededRandom } from '../../src/testing/index.ts'
import { drawnSend, policies, topics } from './drawn-sends.ts'
import type { createContractBench } from '../../src/testing/contract/index.ts'

export type AnyStore = Store & StoreAdmin
type Operation = (store: AnyStore) => Promise<unknown>

const sessions = ['a', 'b', 'c']
const types = [
  { type: 'x', version: 1, leaseMs: 40 },
  { type: 'x', version: 2, leaseMs: null },
  { type: 'y', version: 1 },
]
const failures = { crashed: '"crashed"', 'timed-out': '"timed out"', expired: '"expired"' }
const endings: readonly NextStatus[] = [
  'succeeded',
  'failed',
  'cancelled',
  'cancelling',
  'paused',
  'pending',
  'waiting',
]
const keys = ['k1', 'k2', 'k3']
const tags = ['red', 'green', 'blue']
const payloadKeys = ['old', 'new'] as const
const undos: readonly (UndoState | null)[] = [null, null, null, null, 'possible', 'possible', 'due', 'none']

export class OperationGenerator {
  private readonly random: Random
  private readonly sends: Random
  private readonly newRun: (changes: Partial<NewRun>) => NewRun
  private readonly unique: (what: string) => string
  private readonly sentRuns: NewRun[] = []
  private readonly sentTransitions: Transition[] = []
  private readonly askedChildren = new Set<string>()
  private readonly sentMessages: NewMessage[] = []
  private readonly sentBroadcasts: NewBroadcast[] = []
  private readonly sentRequests: ControlCommand[] = []
  /** Sessions end; new ones take their place. */
  private generation = 0

  constructor(seed: number, bench: ReturnType<typeof createContractBench>) {
    this.random = createSeededRandom(seed)
    this.sends = createSeededRandom(seed + 1_000_000)
    this.newRun = bench.newRun
    this.unique = bench.unique
  }

  next(rows: readonly Run[]): Operation {
    const operations = [
      () => this.start(rows),
      () => this.start(rows),
      () => this.claim(),
      () => this.claim(),
      () => this.commit(rows),
      () => this.commit(rows),
      () => this.commit(rows),
      () => this.deliver(rows),
      () => this.deliver(rows),
      () => this.read(rows),
      () => this.deadLetters(),
      () => this.beat(rows),
      () => this.control(rows),
      () => this.control(rows),
      () => this.find(rows),
      () => this.rekey(rows),
      () => this.rescue(),
      () => this.release(rows),
    ]
    return this.pick(operations)()
  }

  below(limit: number): number {
    return this.random.uint32() % limit
  }

  private chance(oneIn: number): boolean {
    return this.below(oneIn) === 0
  }

  private pick<Item>(items: readonly Item[]): Item {
    return items[this.below(items.length)] as Item
  }

  private session(): string {
    if (this.chance(25)) this.generation += 1
    return `${this.pick(sessions)}${this.generation - (this.chance(10) ? 1 : 0)}`
  }

  private maybe(ms: number, oneIn: number): number | null {
    return this.chance(oneIn) ? this.below(ms) : null
  }

  private start(rows: readonly Run[]): Operation {
    const made = Array.from({ length: 1 + this.below(4) }, () => {
      if (this.sentRuns.length > 0 && this.chance(8)) {
        const sent = this.pick(this.sentRuns)
        return this.chance(4) ? { ...sent, transition: this.unique('start') } : sent
      }
      const lease = this.chance(3) ? { session: this.session(), token: 1 } : null
      const run = this.fresh(rows.length > 0 && this.chance(4) ? this.pick(rows).id : null, { lease })
      this.sentRuns.push(run)
      return run
    })
    return (store) => store.start(made)
  }

  private fresh(parentId: string | null, changes: Partial<NewRun> = {}): NewRun {
    const { type, version } = this.pick(types)
    const run = this.newRun({
      type,
      version,
      parentId,
      priority: this.below(3),
      due: this.chance(3) ? { at: null, afterMs: this.below(60) } : null,
      timeoutMs: this.maybe(300, 4),
      expiresInMs: this.maybe(100, 4),
      leaseMs: this.maybe(80, 2),
      key: this.chance(3) ? this.pick(keys) : null,
      keyScope: this.chance(2) ? 'workflow' : this.pick(keyScopes),
      idempotencyKey: this.chance(8) ? this.unique('once') : this.chance(8) ? this.pick(keys) : null,
      tags: tags.filter(() => this.chance(4)),
      metadata: this.chance(5) ? `{"n":${this.below(9)}}` : null,
      feed: this.chance(2),
      keyId: this.chance(3) ? this.pick(payloadKeys) : null,
      ...changes,
    })
    return this.chance(6) ? { ...run, messages: [this.message(run.id)] } : run
  }

  private message(runId: string): MessageDraft {
    const name = this.chance(2) ? 'go' : this.pick(topics).name
    return { id: this.unique('m'), runId, kind: 'signal', name, data: '1', policy: this.pick(policies) }
  }

  private claim(): Operation {
    const request = { session: this.session(), selectors: types.slice(this.below(3)), limit: this.below(5) }
    const named = this.chance(3) ? { keys: payloadKeys.filter(() => this.chance(2)) } : {}
    const apart = this.chance(6)
    return (store) => store.claim(apart ? { ...request, ...named, isolated: apart } : { ...request, ...named })
  }

  private commit(rows: readonly Run[]): Operation {
    const batch = new Map<string, Transition>()
    const held = rows.filter((run) => run.session !== null)
    for (let count = 1 + this.below(4); count > 0 && rows.length > 0; count -= 1) {
      const again = this.sentTransitions.length > 0 && this.chance(6)
      const transition = again
        ? this.pick(this.sentTransitions)
        : this.transition(this.pick(held.length > 0 && !this.chance(4) ? held : rows), rows)
      batch.set(transition.runId, transition)
    }
    this.sentTransitions.push(...batch.values())
    return (store) => store.commit([...batch.values()])
  }

  private transition(run: Run, rows: readonly Run[]): Transition {
    const continues = this.chance(12)
      ? this.pick(types.map(({ type, version }) => ({ type, version, feed: this.chance(2) })))
      : null
    const status = this.chance(2) || (continues !== null && this.chance(2)) ? null : this.pick(endings)
    const draft = { kind: 'logged', name: 'n', meta: null, data: `"${this.below(100)}"` } as const
    const length = status === 'waiting' ? this.below(3) : 1 + this.below(3)
    const append = Array.from({ length }, (): Draft =>
      this.sends.uint32() % 8 === 0 ? drawnSend(this.sends, rows) : draft,
    )
    if (continues !== null) append.push({ kind: 'continued', name: null, meta: continues, data: '1' })
    return {
      id: this.unique('t'),
      runId: this.chance(30) ? this.unique('nobody') : run.id,
      guard: {
        seq: run.seq - (this.chance(8) ? 1 : 0),
        lease: { session: run.session ?? this.session(), token: run.token - (this.chance(8) ? 1 : 0) },
      },
      append,
      status,
      due: this.chance(2) ? { at: null, afterMs: this.below(60) } : null,
      parkIf: status === 'waiting' ? { inbox: run.inbox - (this.chance(5) ? 1 : 0), ...this.wakeNames() } : null,
      ...(status === 'paused' && this.chance(2) ? { applies: 'pause' as const } : {}),
      undo: this.pick(undos),
      // Its holder mostly knows.
      feed: run.feed !== this.chance(8),
      ...(this.chance(6) ? { keyId: this.pick(payloadKeys) } : {}),
      continues,
      takes: this.sentMessages.filter(({ runId }) => runId === run.id && this.chance(3)).map(({ id }) => id),
      outbound: append.length > 0 && this.chance(3) ? this.outbound(run, rows) : null,
      // A mailbox was empty when nothing had come yet; whether something has come since is for the store to see.
      ...(this.chance(2) ? { emptyAt: 0 } : {}),
    }
  }

  private wakeNames(): { readonly wakeNames?: readonly string[] | null } {
    const names = ['go', ...topics.map(({ name }) => name)]
    return this.chance(3) ? {} : { wakeNames: this.chance(4) ? null : names.filter(() => this.chance(2)) }
  }

  private outbound(run: Run, rows: readonly Run[]): Outbound {
    const watched = (): WaitTarget => {
      const bound = this.chance(3) ? { mostSubscribers: 1 + this.below(3) } : {}
      if (this.chance(2)) return { kind: 'topic', ...this.pick(topics), ...bound }
      return { kind: 'run', runId: this.chance(10) ? this.unique('nobody') : this.pick(rows).id }
    }
    const some = <Item>(make: () => Item): Item[] => Array.from({ length: this.below(3) }, make)
    return {
      watches: some(watched),
      unwatches: this.chance(3) ? some(watched) : [],
      starts: some(() => ({
        run: this.fresh(run.id, this.chance(8) ? this.takenId(run, rows) : {}),
        awaited: this.chance(2),
        onParentEnd: this.pick(['cancel', 'abandon'] as const),
      })),
    }
  }

  /** The id of another run, for a child. No run asks for the same one twice: its refusal is a message with an id of its own. */
  private takenId(parent: Run, rows: readonly Run[]): { readonly id?: string } {
    const { id } = this.pick(rows)
    const known = this.askedChildren.size
    return this.askedChildren.add(`${parent.id} ${id}`).size > known ? { id } : {}
  }

  private control(rows: readonly Run[]): Operation {
    const requests = Array.from({ length: 1 + this.below(3) }, (): ControlCommand => {
      if (this.sentRequests.length > 0 && this.chance(6)) return this.pick(this.sentRequests)
      const run = rows.length === 0 || this.chance(30) ? null : this.pick(rows)
      const request = { id: this.unique('q'), runId: run?.id ?? this.unique('nobody'), ...this.wanted(run) }
      this.sentRequests.push(request)
      return request
    })
    return (store) => store.control(requests)
  }

  private wanted(run: Run | null): Control {
    const note = this.chance(2) ? 'because' : null
    const seq = this.chance(2) || run === null ? null : run.seq - (this.chance(4) ? 1 : 0)
    const amend = [{ kind: 'amended', name: null, meta: { seq: 1, dropped: true }, data: null } as const]
    const revival = { note, seq, amend: seq === null ? [] : amend }
    const all: readonly Control[] = [
      { kind: 'cancel', mode: 'cooperative', reason: note },
      { kind: 'cancel', mode: 'now', reason: note },
      { kind: 'pause', reason: this.pick(['operator', 'maintenance'] as const), note },
      { kind: 'resume', ...revival },
      { kind: 'retry', ...revival },
      { kind: 'remove', reason: note },
      { kind: 'acquit', seq: seq ?? run?.seq ?? 1 },
    ]
    if (run?.status === 'failed' && this.chance(2)) {
      return this.chance(4) ? { kind: 'remove', reason: note } : { kind: 'retry', ...revival }
    }
    if (run?.status === 'paused' && this.chance(2)) return { kind: 'resume', ...revival }
    return this.pick(all)
  }

  private find(rows: readonly Run[]): Operation {
    const ids = rows.map(({ id }) => id)
    const chosen = (oneIn: number): string[] => ids.filter(() => this.chance(oneIn))
    const times = rows.map(({ createdAt }) => createdAt)
    const all: Required<RunFilter> = {
      ids: chosen(2),
      types: this.pick([['x'], ['y'], ['x', 'y'], []]),
      typePrefix: this.pick(['x', '', 'X', 'xy']),
      statuses: runStatuses.filter(() => this.chance(2)),
      key: this.pick(keys),
      idempotencyKey: this.pick(keys),
      tag: this.pick(tags),
      version: 1 + this.below(2),
      parentId: ids.length > 0 ? this.pick(ids) : 'nobody',
      createdFrom: times.length > 0 ? this.pick(times) : 0,
      createdBefore: times.length > 0 ? this.pick(times) : 0,
      deleted: this.chance(2),
    }
    const filter: RunFilter = Object.fromEntries(Object.entries(all).filter(() => this.chance(5)))
    const limit = this.below(8)
    const after = ids.length > 0 && this.chance(2) ? { after: this.pick(ids) } : {}
    return async (store) => [await store.find(filter, { limit, ...after }), await store.count(filter, limit)]
  }

  private deliver(rows: readonly Run[]): Operation {
    const messages = Array.from({ length: 1 + this.below(3) }, (): NewMessage | NewBroadcast => {
      if (this.chance(3)) return this.broadcast()
      if (this.sentMessages.length > 0 && this.chance(5)) return this.pick(this.sentMessages)
      const plain = this.message(rows.length === 0 ? this.unique('nobody') : this.pick(rows).id)
      const message = this.chance(3) ? { ...plain, mostUnread: 1 + this.below(4) } : plain
      this.sentMessages.push(message)
      return message
    })
    return (store) => store.deliver(messages)
  }

  private broadcast(): NewBroadcast {
    if (this.sentBroadcasts.length > 0 && this.chance(6)) return this.pick(this.sentBroadcasts)
    const options = { topic: this.pick(topics), policy: this.pick(policies), expiresInMs: this.maybe(80, 3) }
    const bound = this.chance(3) ? { mostKept: 1 + this.below(4) } : {}
    const broadcast = { id: this.unique('b'), data: '1', ...options, ...bound }
    this.sentBroadcasts.push(broadcast)
    return broadcast
  }

  private read(rows: readonly Run[]): Operation {
    const names = ['go', ...topics.map(({ name }) => name), ...rows.map(({ id }) => id)].filter(() => this.chance(2))
    const messages = this.chance(3) ? { messagesAfter: this.below(4) } : { messages: { names, limit: this.below(4) } }
    const latest = { kind: 'logged', name: 'n' } as const
    const requests = rows
      .filter(() => this.chance(4))
      .map(({ id }) => ({ runId: id, after: 0, limit: 2, ...messages, ...(this.chance(2) ? { latest } : {}) }))
    const mostBytes = this.maybe(20, 2) ?? undefined
    return (store) => store.load(requests, mostBytes)
  }

  private rekey(rows: readonly Run[]): Operation {
    if (rows.length === 0) return (store) => store.otherKeys([], 1)
    const run = this.pick(rows)
    const request = {
      runId: this.chance(10) ? this.unique('nobody') : run.id,
      seq: run.seq - (this.chance(5) ? 1 : 0),
      keyId: this.pick(payloadKeys),
      entries: [1, run.seq, run.seq + 1].map((seq) => ({ seq, data: `"again ${this.below(100)}"` })),
      messages: this.sentMessages.filter(() => this.chance(3)).map(({ id }) => ({ id, data: `${this.below(100)}` })),
    }
    const keys = payloadKeys.filter(() => this.chance(2))
    return async (store) => [await store.rewritePayloads(request), await store.otherKeys(keys, 1_000)]
  }

  private deadLetters(): Operation {
    const filter = this.chance(3) ? { name: 'go' } : {}
    const limit = 1 + this.below(4)
    const fate = this.pick(['discarded', 'retried'] as const)
    return async (store) => {
      const page = await store.deadLetters(filter, { limit })
      const last = page.at(-1)
      if (last === undefined) return []
      const next = await store.deadLetters(filter, { limit, after: `${last.runId} ${last.id}` })
      const answers = [await store.settleDeadLetter(last, fate), await store.settleDeadLetter(last, fate)]
      return [page, next, answers]
    }
  }

  private beat(rows: readonly Run[]): Operation {
    const session = this.session()
    const held = rows.filter((run) => run.session !== null && this.chance(3))
    const claims = held.map(({ id, token, inbox, crashes }) => {
      const known = this.chance(2) ? { inbox: Math.max(inbox - this.below(2), 0) } : {}
      const begun = crashes >= 2 && this.chance(2) ? { begun: crashes + 1 } : {}
      return { runId: id, token, extendMs: this.maybe(200, 2), ...known, ...begun }
    })
    const request = {
      session,
      leaseMs: 50 + this.below(200),
      held: claims,
      end: this.chance(10),
      seeksUnknownLeases: this.chance(2),
    }
    return (store) => store.beat(request)
  }

  private release(rows: readonly Run[]): Operation {
    const leases = rows.filter(() => this.chance(4)).map(({ id, session, token }) => ({ runId: id, session, token }))
    const given = leases.map((lease) => ({ ...lease, session: lease.session ?? this.session() }))
    return (store) => store.release(given)
  }

  private rescue(): Operation {
    const onCrashes = this.chance(2) ? 'pause' : 'fail'
    const workflows = types.map(({ type, version }) => ({ type, version, maxCrashes: null, onCrashes }) as const)
    const request = { limit: 1_000, maxCrashes: 2 + this.below(2), workflows, failures }
    return async (store) => {
      const { takenOver, ended, paused, ...rest } = await store.rescue(request)
      const byRun = (a: { readonly runId: string }, b: { readonly runId: string }): number =>
        a.runId < b.runId ? -1 : 1
      const sorted = {
        takenOver: [...takenOver].sort(byRun),
        ended: [...ended].sort(byRun),
        paused: [...paused].sort(),
      }
      return { ...rest, ...sorted }
    }
  }
}
