// Random operations on a store, made from what the oracle holds: sensible lives of runs (start, claim, commit, park,
// message, steer, end), and then bent: stale tokens, wrong places, unknown ids, repetitions, ended sessions, taken keys,
// time that jumps. An operation is data, so that a failure can be shown and done again.
//
// Worlds are of two kinds. In one, many runs are rescued at once; in which order is a store's own affair, so that nothing
// that they do may reach others. In the other, runs watch and start one another and share topics; there no lease has a
// deadline, no session dies by itself, and at most one run at a time is bound by time, so that a rescue has one thing to do.

import type { Lease, Run } from '../../src/core/model/run.ts'
import { createRunIds, shardFor } from '../../src/core/model/run-id.ts'
import type { Outbound, Transition } from '../../src/core/model/transition.ts'
import type {
  BeatRequest,
  HeldClaim,
  NewBroadcast,
  NewMessage,
  NewRun,
  RunFilter,
  RunStart,
  ControlCommand,
} from '../../src/store.ts'
import { Chances } from './chances.ts'
import { broadcastOf, deadLetterQuery, loadRequest, messageTo, outboundOf } from './exchange-chances.ts'
import { withSends } from './sends-chances.ts'
import { drawnRun, payloadKeys } from './run-chances.ts'
import type { Operation, Oracle } from './operation.ts'
import { keys, kinds, runFilter } from './run-filter.ts'
import { rescueRequest, selectorLists } from './selectors.ts'
import { controlCommand } from './control-commands.ts'
import { bentTransition, illegalTransition, sensibleTransition } from './transitions.ts'
import { drawnUnheld, settlingTransition, unheldTransition } from './unheld-chances.ts'

const years = 31_536_000_000

const forEver = 1e15

export interface World {
  readonly shards?: number
  /** A batch of commits takes place in its order. Otherwise what reaches others goes alone. @default true */
  readonly isOrdered?: boolean
}

export class Operations {
  private readonly chances: Chances
  private readonly runIds: ReturnType<typeof createRunIds>
  private readonly shards: number
  private readonly isOrdered: boolean
  private readonly isExchanging: boolean
  /** What must come next. */
  private readonly forced: Operation[] = []
  private now = 0
  private generation = 0
  /** When a run was last started that is bound by time. */
  private boundAt = 0
  private runs: RunStart[] = []
  /** Runs that were started, or asked for, before. */
  private readonly known = new Set<string>()
  /** Which run asked for which child. */
  private readonly asked = new Set<string>()
  private readonly transitions: Transition[] = []
  private readonly messages: NewMessage[] = []
  private readonly broadcasts: NewBroadcast[] = []
  private readonly requests: ControlCommand[] = []

  /**
   * With several shards, runs lie where their keys belong, or anywhere; and a claim takes nothing or all, because there is
   * no order of runs that lie in different ones.
   */
  constructor(seed: number, { shards = 1, isOrdered = true }: World = {}) {
    this.chances = new Chances(seed)
    this.shards = shards
    this.isOrdered = isOrdered
    this.isExchanging = seed % 2 === 0
    const now = (): number => this.now
    const random = { uint32: () => this.chances.below(2 ** 32) }
    this.runIds = createRunIds({ clock: { now, monotonic: now, after: () => () => undefined }, random })
    if (this.isExchanging) for (const session of this.sessions) this.opens(session)
  }

  next(oracle: Oracle): Operation {
    this.now = oracle.now
    const rows = [...oracle.rows.values()]
    const forced = this.forced.shift()
    if (forced !== undefined) return forced
    const method = this.chances.weighted([
      [rows.length < 8 ? 60 : 10, 'start'],
      [14, 'claim'],
      [34, 'commit'],
      [this.isExchanging ? 20 : 8, 'deliver'],
      [16, 'control'],
      [8, 'beat'],
      [4, 'rescue'],
      [3, 'release'],
      [2, 'load'],
      [1, 'get'],
      [2, 'changes'],
      [3, 'find'],
      [2, 'count'],
      [3, 'deadLetters'],
      [3, 'settleDeadLetter'],
      [7, 'advance'],
    ] as const)
    return this[method](rows, oracle)
  }

  private start(rows: readonly Run[]): Operation {
    return { method: 'start', runs: this.several(3, () => this.decided(this.withMessages(this.newRun(rows)), rows)) }
  }

  /** A run that was never asked for before, and whose first input is decided. */
  private decided(run: RunStart, rows: readonly Run[]): RunStart {
    const { chances } = this
    const isNew = !this.known.has(run.id)
    this.known.add(run.id)
    if (!isNew || !chances.oneIn(5)) return run
    const mayReach = this.isExchanging && rows.length > 0
    const outbound = mayReach && chances.oneIn(2) ? this.outbound(run, rows) : null
    const decided = unheldTransition(chances, { ...run, seq: 1 }, this.now, outbound)
    const started = { ...run, decided }
    this.runs = [...this.runs.filter(({ id }) => id !== run.id), started]
    return started
  }

  private withMessages(run: RunStart): RunStart {
    const { chances } = this
    if (run.messages !== undefined || !chances.oneIn(5)) return run
    const messages = Array.from({ length: 1 + chances.below(2) }, () => messageTo(chances, run.id, this.isExchanging))
    this.messages.push(...messages)
    const started = { ...run, messages }
    this.runs.push(started)
    return started
  }

  /** Two that reach one another must not come to an end by one rescue. */
  private mayEndByTime(rows: readonly Run[]): boolean {
    const isBound = ({ timeoutAt, expiresAt, endedAt }: Run): boolean =>
      endedAt === null && (timeoutAt !== null || expiresAt !== null)
    return !this.isExchanging || (this.boundAt !== this.now && !rows.some(isBound))
  }

  /** A run starts each child once: every child that a run asks for has an id of its own. */
  private newChild({ id }: Pick<Run, 'id'>, rows: readonly Run[]): NewRun {
    const known = this.newRun(rows)
    // One that is decided is started by people.
    const isAsked = this.asked.has(`${id} ${known.id}`) || (known.decided ?? null) !== null
    const child = isAsked ? this.newRun(rows, false) : known
    this.asked.add(`${id} ${child.id}`)
    this.known.add(child.id)
    return child
  }

  private newRun(rows: readonly Run[], mayRepeat = true): RunStart {
    const { chances } = this
    const mayEnd = this.mayEndByTime(rows)
    if (this.runs.length > 0 && mayRepeat && chances.oneIn(12)) {
      const earlier = chances.pick(this.runs)
      // It may be gone by now, or never have been: then it begins here, without a bound.
      const again = mayEnd ? earlier : { ...earlier, timeoutMs: null, expiresInMs: null }
      if (again.timeoutMs !== null || again.expiresInMs !== null) this.boundAt = this.now
      return chances.oneIn(2) ? again : { ...again, transition: chances.unique('start') }
    }
    const kind = chances.pick(kinds)
    const key = chances.maybe(2, keys)
    const shard = this.shards === 1 ? 0 : key === null ? chances.below(this.shards) : shardFor(key, this.shards)
    const run = drawnRun(chances, {
      id: this.runIds.next(shard),
      shard,
      kind,
      key,
      now: this.now,
      parents: this.runs,
      mayEnd,
      mayMissDeadline: !this.isExchanging,
      session: () => this.session(),
    })
    if (run.timeoutMs !== null || run.expiresInMs !== null) this.boundAt = this.now
    this.runs.push(run)
    return run
  }

  private claim(rows: readonly Run[]): Operation {
    const { chances } = this
    const listed = chances.weighted(selectorLists.map((list, index) => [index === 0 ? 6 : 1, list] as const))
    const selectors = this.isExchanging ? listed.map((one) => ({ ...one, leaseMs: null })) : listed
    const limits = this.shards === 1 ? [0, 1, 1, 2, 3, 5, 100] : [0, 100_000, 100_000]
    const named = chances.oneIn(4) ? { keys: chances.some(payloadKeys, 2) } : {}
    const request = { session: this.session(), selectors, limit: chances.pick(limits), ...named }
    if (rows.length > 0 && chances.oneIn(8))
      return { method: 'claim', request: { ...request, runId: this.runId(rows) } }
    return { method: 'claim', request: chances.oneIn(5) ? { ...request, isolated: true } : request }
  }

  private commit(rows: readonly Run[], oracle: Oracle): Operation {
    const { chances } = this
    if (rows.length === 0) return this.start(rows)
    const held = rows.filter(({ session }) => session !== null)
    // Such a one rejects its whole batch, and what else of it took effect is open: it goes alone.
    if (held.length > 0 && chances.oneIn(40)) {
      return { method: 'commit', transitions: [illegalTransition(chances, chances.pick(held))] }
    }
    const batch = new Map<string, Transition>()
    for (let count = 1 + chances.below(3); count > 0; count -= 1) {
      const transition = this.transition(held, rows, oracle)
      if (!this.isOrdered && this.isExchanging) return { method: 'commit', transitions: [transition] }
      // Which of two of one run comes first, of one and of what another one settles, is a store's own affair.
      const { runId, settles = null } = transition
      const taken = new Set([...batch.values()].map((one) => one.settles?.runId))
      if (taken.has(runId) || (settles !== null && batch.has(settles.runId))) continue
      batch.set(runId, transition)
    }
    return { method: 'commit', transitions: [...batch.values()] }
  }

  private transition(held: readonly Run[], rows: readonly Run[], { messageNameOf }: Oracle): Transition {
    const { chances } = this
    if (this.transitions.length > 0 && chances.oneIn(8)) return chances.pick(this.transitions.slice(-30))
    const reach = (of: Run): Outbound | null => (this.isExchanging ? this.outbound(of, rows) : null)
    const run = chances.pick(held.length > 0 && !chances.oneIn(10) ? held : rows)
    const made =
      drawnUnheld(chances, rows, this.now, reach) ??
      (this.isExchanging ? settlingTransition(chances, held, rows, this.now) : null) ??
      this.ofHolder(sensibleTransition(chances, run, messageNameOf(run.id), this.now), () => reach(run))
    const sending = this.isExchanging ? withSends(chances, made, rows) : made
    const transition = chances.oneIn(7)
      ? bentTransition(chances, sending, this.session(), this.runIds.next(0))
      : sending
    this.transitions.push(transition)
    return transition
  }

  private ofHolder(sensible: Transition, reach: () => Outbound | null): Transition {
    const { chances } = this
    const outbound = sensible.append.length > 0 && chances.oneIn(2) ? reach() : null
    const keyed = chances.oneIn(8) ? { ...sensible, keyId: chances.pick(payloadKeys) } : sensible
    return outbound === null ? keyed : { ...keyed, outbound }
  }

  private outbound(run: Pick<Run, 'id'>, rows: readonly Run[]): Outbound {
    const { chances } = this
    const lease = (): Lease | null => (chances.oneIn(3) ? { session: this.session(), token: 1 } : null)
    return outboundOf(chances, run, rows, () => this.newChild(run, rows), lease)
  }

  private deliver(rows: readonly Run[]): Operation {
    const { chances } = this
    const messages = this.several(3, (): NewMessage | NewBroadcast => {
      if (this.isExchanging && chances.oneIn(2)) return this.broadcast()
      if (this.messages.length > 0 && chances.oneIn(6)) return chances.pick(this.messages)
      const waiting = rows.filter(({ status }) => status === 'waiting')
      const runId = this.runId(waiting.length > 0 && !chances.oneIn(3) ? waiting : rows)
      const message = messageTo(chances, runId, this.isExchanging)
      this.messages.push(message)
      return message
    })
    return { method: 'deliver', messages }
  }

  private broadcast(): NewBroadcast {
    const { chances } = this
    if (this.broadcasts.length > 0 && chances.oneIn(8)) return chances.pick(this.broadcasts.slice(-20))
    const made = broadcastOf(chances)
    this.broadcasts.push(made)
    return made
  }

  private control(rows: readonly Run[]): Operation {
    const requests = this.several(2, (): ControlCommand => {
      const { chances } = this
      if (this.requests.length > 0 && chances.oneIn(10)) return chances.pick(this.requests.slice(-20))
      const request = controlCommand(chances, rows, this.runIds.next(0))
      this.requests.push(request)
      return request
    })
    return { method: 'control', requests }
  }

  private beat(rows: readonly Run[]): Operation {
    const { chances } = this
    const session = this.session()
    const own = rows.filter((run) => run.session === session)
    const held = [...own, ...chances.some(rows, 40)].filter((run, index, all) => all.indexOf(run) === index)
    const claims = held.map(({ id, token, inbox, crashes }) => ({
      runId: chances.oneIn(30) ? this.runIds.next(0) : id,
      token: chances.oneIn(15) ? token - 1 : token,
      extendMs: this.isExchanging ? null : chances.maybe(2, [50, 400, 2_000]),
      ...(chances.oneIn(2) ? { inbox: inbox - chances.below(2) } : {}),
      // Suspects are rare; a store writes whatever number it is given.
      ...(chances.oneIn(4) ? { begun: Math.max(2, crashes) + chances.below(3) } : {}),
    }))
    if (this.isExchanging) return this.beatForEver(session, rows, claims)
    const request: BeatRequest = { session, leaseMs: chances.pick([60, 250, 600, 2_000]) }
    if (chances.oneIn(3)) return { method: 'beat', request }
    return { method: 'beat', request: { ...request, held: claims, end: chances.oneIn(12) } }
  }

  /** Such a session ends only while nothing else has to be rescued, and then that is done at once. */
  private beatForEver(session: string, rows: readonly Run[], held: readonly HeldClaim[]): Operation {
    const own = rows.filter((run) => run.session === session)
    const isOver = (time: number | null): boolean => time !== null && time <= this.now
    const hasOverdue = rows.some(({ timeoutAt, expiresAt }) => isOver(timeoutAt) || isOver(expiresAt))
    const end = own.length <= 1 && !hasOverdue && this.chances.oneIn(6)
    if (end) {
      this.forced.push(this.rescue())
      this.generation += 1
      for (const one of this.sessions) this.opens(one)
    }
    return { method: 'beat', request: { session, leaseMs: forEver, held, end } }
  }

  private opens(session: string): void {
    this.forced.push({ method: 'beat', request: { session, leaseMs: forEver } })
  }

  private rescue(): Operation {
    return { method: 'rescue', request: rescueRequest(this.chances) }
  }

  private release(rows: readonly Run[]): Operation {
    const { chances } = this
    const held = rows.filter(({ session }) => session !== null)
    const given = [...chances.some(held, 4), ...chances.some(rows, 60)]
    const leases = given.map(({ id, session, token }) => ({
      runId: chances.oneIn(20) ? this.runIds.next(0) : id,
      session: session === null || chances.oneIn(10) ? this.session() : session,
      token: chances.oneIn(10) ? token - 1 : token,
      ...(chances.oneIn(3) ? { crashes: chances.below(4) } : {}),
    }))
    return { method: 'release', leases }
  }

  private load(rows: readonly Run[]): Operation {
    const { chances } = this
    const requests = this.several(3, () => loadRequest(chances, this.runId(rows), rows))
    return { method: 'load', requests, ...(chances.oneIn(2) ? { mostBytes: 1 + chances.below(60) } : {}) }
  }

  private deadLetters(rows: readonly Run[]): Operation {
    return { method: 'deadLetters', ...deadLetterQuery(this.chances, rows, this.messages) }
  }

  private settleDeadLetter(rows: readonly Run[]): Operation {
    const { chances } = this
    const known = chances.pick([...this.messages.slice(-60), { runId: this.runId(rows), id: 'nothing' }])
    const fate = chances.pick(['discarded', 'retried'] as const)
    return { method: 'settleDeadLetter', letter: { runId: known.runId, id: known.id }, fate }
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
    return runFilter(
      this.chances,
      this.several(5, () => this.runId(rows)),
      this.now,
    )
  }

  private advance(): Operation {
    const ms = this.chances.oneIn(60) ? [years, 10 * years] : [1, 10, 40, 100, 300]
    return { method: 'advance', ms: this.chances.pick(ms) }
  }

  private several<Item>(most: number, make: () => Item): readonly Item[] {
    return Array.from({ length: this.chances.oneIn(40) ? 0 : 1 + this.chances.below(most) }, make)
  }

  /** The id of one of them, or of nobody. */
  private runId(rows: readonly Run[]): string {
    return rows.length === 0 || this.chances.oneIn(20) ? this.runIds.next(0) : this.chances.pick(rows).id
  }

  /** Sessions end; new ones take their place, and old ones come back. */
  private session(): string {
    const { chances } = this
    if (!this.isExchanging && chances.oneIn(40)) this.generation += 1
    const generation = this.generation - (chances.oneIn(12) ? 1 : 0)
    return `${chances.pick(['a', 'b', 'c'])}${generation}`
  }

  private get sessions(): readonly string[] {
    return ['a', 'b', 'c'].map((name) => `${name}${this.generation}`)
  }
}
