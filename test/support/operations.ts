// Random operations on a store, made from what the oracle holds: sensible lives of runs (start, claim, commit, park,
// message, steer, end), and then bent: stale tokens, wrong places, unknown ids, repetitions, ended sessions, taken keys,
// time that jumps. An operation is data, so that a failure can be shown and done again.

import type { Lease, Run } from '../../src/core/run.ts'
import { createRunIds, shardFor } from '../../src/core/id.ts'
import type { Transition } from '../../src/core/transition.ts'
import type {
  BeatRequest,
  ClaimRequest,
  ClaimSelector,
  LoadRequest,
  NewMessage,
  NewRun,
  Page,
  RescueRequest,
  RunFilter,
  SteerRequest,
} from '../../src/store.ts'
import { Chances } from './chances.ts'
import { steerRequest } from './steers.ts'
import { illegalTransition, sensibleTransition } from './transitions.ts'

export type Operation =
  | { readonly method: 'start'; readonly runs: readonly NewRun[] }
  | { readonly method: 'claim'; readonly request: ClaimRequest }
  | { readonly method: 'load'; readonly requests: readonly LoadRequest[] }
  | { readonly method: 'commit'; readonly transitions: readonly Transition[] }
  | { readonly method: 'deliver'; readonly messages: readonly NewMessage[] }
  | { readonly method: 'steer'; readonly requests: readonly SteerRequest[] }
  | { readonly method: 'beat'; readonly request: BeatRequest }
  | { readonly method: 'rescue'; readonly request: RescueRequest }
  | { readonly method: 'release'; readonly leases: readonly (Lease & { readonly runId: string })[] }
  | { readonly method: 'get'; readonly ids: readonly string[] }
  | { readonly method: 'changes'; readonly after: number; readonly limit: number }
  | { readonly method: 'find'; readonly filter: RunFilter; readonly page: Page }
  | { readonly method: 'count'; readonly filter: RunFilter; readonly atMost: number }
  | { readonly method: 'advance'; readonly ms: number }

/** What the generator may look at: the oracle's rows, its feed's length and the time. */
export interface Oracle {
  readonly rows: ReadonlyMap<string, Run>
  readonly feedLength: number
  readonly now: number
}

/** The same lists every time: a store may know a list of selectors again. */
const selectorLists: readonly (readonly ClaimSelector[])[] = [
  [
    { type: 'billing.charge', version: 1, leaseMs: 400 },
    { type: 'billing.charge', version: 2 },
    { type: 'billing', version: 1, leaseMs: null },
    { type: 'ship', version: 1 },
  ],
  [{ type: 'billing.charge', version: 1 }],
  [
    { type: 'ship', version: 1, leaseMs: 100 },
    { type: 'billing', version: 1 },
    { type: 'ship', version: 1, leaseMs: 900 },
  ],
  [{ type: 'nobody', version: 1 }],
]
export const kinds = (selectorLists[0] ?? []).map(({ type, version }) => ({ type, version }))
export const keys = ['k1', 'k2', 'k3']
const idempotencyKeys = ['i1', 'i2', 'i3', 'i4']
const tags = ['eu', 'EU', 'blue']
const years = 365 * 86_400_000

export class Operations {
  private readonly chances: Chances
  private readonly runIds: ReturnType<typeof createRunIds>
  private readonly shards: number
  private now = 0
  private generation = 0
  private readonly runs: NewRun[] = []
  private readonly transitions: Transition[] = []
  private readonly messages: NewMessage[] = []
  private readonly requests: SteerRequest[] = []

  /**
   * With several shards, runs lie where their keys belong, or anywhere; and a claim takes nothing or all, because there is
   * no order of runs that lie in different ones.
   */
  constructor(seed: number, shards = 1) {
    this.chances = new Chances(seed)
    this.shards = shards
    const now = (): number => this.now
    const random = { uint32: () => this.chances.below(2 ** 32) }
    this.runIds = createRunIds({ clock: { now, monotonic: now, after: () => () => undefined }, random })
  }

  next(oracle: Oracle): Operation {
    this.now = oracle.now
    const rows = [...oracle.rows.values()]
    const method = this.chances.weighted([
      [rows.length < 8 ? 60 : 10, 'start'],
      [14, 'claim'],
      [34, 'commit'],
      [8, 'deliver'],
      [16, 'steer'],
      [8, 'beat'],
      [4, 'rescue'],
      [3, 'release'],
      [2, 'load'],
      [1, 'get'],
      [2, 'changes'],
      [3, 'find'],
      [2, 'count'],
      [7, 'advance'],
    ] as const)
    return this[method](rows, oracle)
  }

  private start(): Operation {
    return { method: 'start', runs: this.several(3, () => this.newRun()) }
  }

  private newRun(): NewRun {
    const { chances } = this
    if (this.runs.length > 0 && chances.oneIn(12)) {
      const earlier = chances.pick(this.runs)
      return chances.oneIn(2) ? earlier : { ...earlier, transition: chances.unique('start') }
    }
    const kind = chances.pick(kinds)
    const key = chances.maybe(2, keys)
    const shard = this.shards === 1 ? 0 : key === null ? chances.below(this.shards) : shardFor(key, this.shards)
    const run: NewRun = {
      id: this.runIds.next(shard),
      shard,
      ...kind,
      key,
      keyScope: chances.pick(['workflow', 'version', 'global', 'none']),
      idempotencyKey: chances.maybe(5, idempotencyKeys),
      parentId: this.runs.length === 0 || !chances.oneIn(4) ? null : chances.pick(this.runs).id,
      tags: chances.some(tags, 3),
      metadata: chances.maybe(4, ['{"a":1}', '{ "é" : "\\u0000" }']),
      priority: chances.pick([0, 0, 0, 5, -1]),
      due: chances.maybe(4, [
        { at: null, afterMs: chances.below(300) },
        { at: this.now + chances.below(500) - 100, afterMs: null },
        { at: this.now + 200, afterMs: chances.below(400) },
        { at: null, afterMs: null },
      ]),
      timeoutMs: chances.maybe(6, [50, 300, 900]),
      expiresInMs: chances.maybe(6, [30, 200, 700]),
      lease: chances.oneIn(3) ? { session: this.session(), token: chances.oneIn(10) ? 7 : 1 } : null,
      leaseMs: chances.maybe(2, [50, 200, 800]),
      transition: chances.unique('start'),
      first: { kind: 'started', name: null, meta: null, data: `{"n":${chances.below(1_000)}}` },
    }
    this.runs.push(run)
    return run
  }

  private claim(): Operation {
    const { chances } = this
    const selectors = chances.weighted(selectorLists.map((list, index) => [index === 0 ? 6 : 1, list] as const))
    const limits = this.shards === 1 ? [0, 1, 1, 2, 3, 5, 100] : [0, 100_000, 100_000]
    return { method: 'claim', request: { session: this.session(), selectors, limit: chances.pick(limits) } }
  }

  private commit(rows: readonly Run[]): Operation {
    const { chances } = this
    if (rows.length === 0) return this.start()
    const held = rows.filter(({ session }) => session !== null)
    // Such a one rejects its whole batch, and what else of it took effect is open: it goes alone.
    if (held.length > 0 && chances.oneIn(40)) {
      return { method: 'commit', transitions: [illegalTransition(chances, chances.pick(held))] }
    }
    const batch = new Map<string, Transition>()
    for (let count = 1 + chances.below(3); count > 0; count -= 1) {
      const transition = this.transition(held, rows)
      batch.set(transition.runId, transition)
    }
    return { method: 'commit', transitions: [...batch.values()] }
  }

  private transition(held: readonly Run[], rows: readonly Run[]): Transition {
    const { chances } = this
    if (this.transitions.length > 0 && chances.oneIn(8)) return chances.pick(this.transitions.slice(-30))
    const run = chances.pick(held.length > 0 && !chances.oneIn(10) ? held : rows)
    const mail = this.messages.filter(({ runId }) => runId === run.id).map(({ id }) => id)
    const sensible = sensibleTransition(chances, run, mail, this.now)
    const transition = chances.oneIn(7) ? this.bent(sensible) : sensible
    this.transitions.push(transition)
    return transition
  }

  private bent(transition: Transition): Transition {
    const { chances } = this
    const { guard } = transition
    const { lease } = guard
    return chances.pick([
      { ...transition, guard: { ...guard, lease: { ...lease, token: lease.token - 1 } } },
      { ...transition, guard: { ...guard, lease: { ...lease, token: lease.token + 1 } } },
      { ...transition, guard: { ...guard, lease: { ...lease, session: this.session() } } },
      { ...transition, guard: { ...guard, seq: guard.seq - 1 } },
      { ...transition, guard: { ...guard, seq: guard.seq + 1 } },
      { ...transition, runId: this.runIds.next(0) },
    ])
  }

  private deliver(rows: readonly Run[]): Operation {
    const messages = this.several(3, (): NewMessage => {
      const { chances } = this
      if (this.messages.length > 0 && chances.oneIn(6)) return chances.pick(this.messages)
      const waiting = rows.filter(({ status }) => status === 'waiting')
      const runId = this.runId(waiting.length > 0 && !chances.oneIn(3) ? waiting : rows)
      const message = { id: chances.unique('m'), runId, name: 'go', data: `${chances.below(100)}` }
      this.messages.push(message)
      return message
    })
    return { method: 'deliver', messages }
  }

  private steer(rows: readonly Run[]): Operation {
    const requests = this.several(2, (): SteerRequest => {
      const { chances } = this
      if (this.requests.length > 0 && chances.oneIn(10)) return chances.pick(this.requests.slice(-20))
      const request = steerRequest(chances, rows, this.runIds.next(0))
      this.requests.push(request)
      return request
    })
    return { method: 'steer', requests }
  }

  private beat(rows: readonly Run[]): Operation {
    const { chances } = this
    const session = this.session()
    const own = rows.filter((run) => run.session === session)
    const held = [...own, ...chances.some(rows, 40)].filter((run, index, all) => all.indexOf(run) === index)
    const claims = held.map(({ id, token }) => ({
      runId: chances.oneIn(30) ? this.runIds.next(0) : id,
      token: chances.oneIn(15) ? token - 1 : token,
      extendMs: chances.maybe(2, [50, 400, 2_000]),
    }))
    const request: BeatRequest = { session, leaseMs: chances.pick([60, 250, 600, 2_000]) }
    if (chances.oneIn(3)) return { method: 'beat', request }
    return { method: 'beat', request: { ...request, held: claims, end: chances.oneIn(12) } }
  }

  private rescue(): Operation {
    const { chances } = this
    const failures = { crashed: '"crashed"', 'timed-out': '"timed out"', expired: '"expired"' }
    return { method: 'rescue', request: { limit: chances.pick([1, 2, 3, 1_000]), maxCrashes: 2, failures } }
  }

  private release(rows: readonly Run[]): Operation {
    const { chances } = this
    const held = rows.filter(({ session }) => session !== null)
    const given = [...chances.some(held, 4), ...chances.some(rows, 60)]
    const leases = given.map(({ id, session, token }) => ({
      runId: chances.oneIn(20) ? this.runIds.next(0) : id,
      session: session === null || chances.oneIn(10) ? this.session() : session,
      token: chances.oneIn(10) ? token - 1 : token,
    }))
    return { method: 'release', leases }
  }

  private load(rows: readonly Run[]): Operation {
    const { chances } = this
    const requests = this.several(3, () => ({
      runId: this.runId(rows),
      after: chances.pick([0, 0, 1, 3, 100]),
      limit: chances.pick([0, 1, 2, 1_000]),
    }))
    return { method: 'load', requests }
  }

  private get(rows: readonly Run[]): Operation {
    return { method: 'get', ids: this.several(4, () => this.runId(rows)) }
  }

  private changes(_rows: readonly Run[], { feedLength }: Oracle): Operation {
    const { chances } = this
    return { method: 'changes', after: chances.below(feedLength + 3), limit: chances.pick([0, 1, 2, 7, 1_000]) }
  }

  private find(rows: readonly Run[]): Operation {
    const { chances } = this
    const after = rows.length > 0 && chances.oneIn(3) ? { after: chances.pick(rows).id } : {}
    return { method: 'find', filter: this.filter(rows), page: { limit: chances.pick([0, 1, 5, 1_000]), ...after } }
  }

  private count(rows: readonly Run[]): Operation {
    return { method: 'count', filter: this.filter(rows), atMost: this.chances.pick([0, 1, 3, 1_000]) }
  }

  private filter(rows: readonly Run[]): RunFilter {
    const { chances } = this
    const members: readonly RunFilter[] = [
      { ids: this.several(5, () => this.runId(rows)) },
      { types: chances.some([...kinds.map(({ type }) => type), 'SHIP'], 2) },
      { typePrefix: chances.pick(['billing', 'billing.', 'BILLING', 'b_lling', '%', '']) },
      { statuses: chances.some(['pending', 'running', 'waiting', 'paused', 'failed', 'cancelled'], 2) },
      { key: chances.pick([...keys, 'K1']) },
      { idempotencyKey: chances.pick(idempotencyKeys) },
      { tag: chances.pick([...tags, 'none']) },
      { version: chances.pick([1, 2, 3]) },
      { parentId: this.runId(rows) },
      { createdFrom: this.now - chances.below(2_000) },
      { createdBefore: this.now - chances.below(2_000) },
      { deleted: chances.oneIn(2) },
      {},
    ]
    const filter = chances.pick(members)
    return chances.oneIn(3) ? { ...chances.pick(members), ...filter } : filter
  }

  private advance(): Operation {
    const { chances } = this
    const ms = chances.oneIn(60) ? chances.pick([years, 10 * years]) : chances.pick([1, 10, 40, 100, 300])
    return { method: 'advance', ms }
  }

  private several<Item>(most: number, make: () => Item): readonly Item[] {
    // Nothing at all is asked now and then, too.
    return Array.from({ length: this.chances.oneIn(40) ? 0 : 1 + this.chances.below(most) }, make)
  }

  /** The id of one of them, or of nobody. */
  private runId(rows: readonly Run[]): string {
    return rows.length === 0 || this.chances.oneIn(20) ? this.runIds.next(0) : this.chances.pick(rows).id
  }

  /** Sessions end; new ones take their place, and old ones come back. */
  private session(): string {
    const { chances } = this
    if (chances.oneIn(40)) this.generation += 1
    const generation = this.generation - (chances.oneIn(12) ? 1 : 0)
    return `${chances.pick(['a', 'b', 'c'])}${generation}`
  }
}
