// A store in a few maps: the smallest thing that keeps the contract. Every method is the same few lines: it looks up rows, hands
// them to a rule, and answers what the rule said. What goes in and what comes out is copied, so that no caller shares a row.

import {
  beatAnswer,
  checkAll,
  checkExchange,
  checkFeed,
  choreOrder,
  choreTakenMs,
  claimColumns,
  commit,
  controlRun,
  countKeys,
  deadLetterPage,
  deliver,
  doChore,
  endedSessionKeptMs,
  extended,
  holds,
  inClaimOrder,
  isClaimable,
  isClaimableByName,
  HoldfastError,
  isOrphaned,
  isOverdue,
  judge,
  loadBudgets,
  loadPage,
  matching,
  nextChoreInMs,
  nextRescue,
  releaseRun,
  report,
  rescuedTogether,
  rescueOrder,
  rescueRun,
  rewriteObjection,
  sessionsForgottenAtOnce,
  startRun,
  tidyTopic,
  type Capabilities,
  type Change,
  type ClaimRequest,
  type Clock,
  type DeadLetter,
  type Entry,
  type Run,
  type Store,
  type StoreAdmin,
} from 'holdfast/store'
import { Tables } from './tables.ts'
import { ToyWork } from './work.ts'

export class ToyStore implements Store, StoreAdmin {
  readonly capabilities: Capabilities = { notifies: true, multiProcess: false }
  private readonly clock: Pick<Clock, 'now'>
  private readonly tables = new Tables()
  private isClosed = false

  constructor(clock: Pick<Clock, 'now'>) {
    this.clock = clock
  }

  migrate: Store['migrate'] = this.method(() => undefined)

  start: Store['start'] = this.method((work, runs) => runs.map((run) => startRun(work, run)))

  claim: Store['claim'] = this.method((work, request) => {
    const { now } = work
    const limit = work.hasEnded(request.session) ? 0 : request.limit
    const asked = request.runId === undefined ? this.queued(request) : []
    const isClaimableNow = (run: Run): boolean => isClaimable(run, request, now)
    const named = work.run(request.runId ?? '')
    const ready = inClaimOrder(asked.filter(({ due }) => due <= now).filter(isClaimableNow), request)
    const found = named !== undefined && isClaimableByName(named, request, now) ? [named] : ready
    const runs = found.slice(0, limit).map((run) => ({ ...run, ...claimColumns(run, request, now) }))
    for (const run of runs) this.tables.runs.set(run.id, run)
    const later = asked.flatMap(({ due }) => (due > now ? [due] : []))
    return { runs, more: found.length > limit, nextDue: later.length === 0 ? null : Math.min(...later), now }
  })

  load: Store['load'] = this.method((_work, requests, mostBytes) => {
    const bounds = loadBudgets(mostBytes)
    return requests.map((request) => {
      const { runId } = request
      return loadPage(this.tables.journal(runId), this.tables.unread(runId), request, bounds)
    })
  })

  commit: Store['commit'] = this.method((work, transitions) =>
    transitions.map((transition) => {
      const run = work.run(transition.runId)
      return judge(work, run, transition) ?? commit(work, run as Run, transition)
    }),
  )

  deliver: Store['deliver'] = this.method((work, sent) =>
    sent.map((one) => deliver(work, 'topic' in one ? undefined : work.run(one.runId), one)),
  )

  control: Store['control'] = this.method((work, requests) =>
    requests.map((request) => controlRun(work, work.run(request.runId), request)),
  )

  beat: Store['beat'] = this.method((work, request) => {
    const { session, leaseMs, held = [], seeksUnknownLeases = true, opens = true, end = false } = request
    const { sessions, runs } = this.tables
    const { now } = work
    const known = sessions.get(session)
    const isAlive = !end && (known === undefined ? opens : known.endedAt === null)
    if (isAlive) sessions.set(session, { aliveUntil: now + leaseMs, endedAt: null })
    if (end) {
      if ((known?.endedAt ?? null) === null) sessions.set(session, { aliveUntil: now, endedAt: now })
      this.forgetSessions(now)
    }
    for (const claim of held) {
      const run = work.run(claim.runId)
      const isHeld = isAlive && run !== undefined && holds(run, { session, token: claim.token })
      if (isHeld) runs.set(run.id, { ...run, ...extended(run, claim, now) })
    }
    const listed = new Set(held.map(({ runId }) => runId))
    const mine = this.byId((run) => run.session === session && (seeksUnknownLeases || listed.has(run.id)))
    return beatAnswer(request, isAlive, mine, now)
  })

  /** Some rows of sessions that ended long ago go, unless a run still names them. */
  private forgetSessions(now: number): void {
    const { sessions, runs } = this.tables
    const named = new Set([...runs.values()].flatMap(({ session }) => session ?? []))
    const old = [...sessions]
      .flatMap(([id, { endedAt }]) =>
        endedAt !== null && endedAt <= now - endedSessionKeptMs && !named.has(id) ? [{ id, endedAt }] : [],
      )
      .sort((a, b) => a.endedAt - b.endedAt || (a.id < b.id ? -1 : 1))
    for (const { id } of old.slice(0, sessionsForgottenAtOnce)) sessions.delete(id)
  }

  rescue: Store['rescue'] = this.method((work, request) => {
    const { sessions, runs } = this.tables
    const { now } = work
    const dead = [...sessions].filter(([, { aliveUntil, endedAt }]) => endedAt === null && aliveUntil <= now)
    for (const [id, session] of dead) sessions.set(id, { ...session, endedAt: now })
    if (dead.length > 0) this.forgetSessions(now)
    const isAlive = (session: string): boolean => sessions.get(session)?.endedAt === null
    const isLost = (run: Run): boolean => isOrphaned(run, isAlive, now) || isOverdue(run, now)
    const found = [...runs.values()].filter(isLost).sort(rescueOrder)
    const chosen = found.slice(0, request.limit)
    const rescued = rescuedTogether(chosen.map(({ id }) => rescueRun(work, work.run(id), request)))
    const living = [...sessions.values()].filter(({ endedAt }) => endedAt === null)
    const next = nextRescue(
      runs.values(),
      living.map(({ aliveUntil }) => aliveUntil),
    )
    const suspects = [...runs.values()].flatMap(({ readiness, due }) => (readiness === 'isolated' ? [due ?? 0] : []))
    return {
      ...rescued,
      sessionsEnded: dead.length,
      suspects: suspects.length === 0 ? null : Math.min(...suspects),
      more: found.length > chosen.length,
      next,
      now,
    }
  })

  release: Store['release'] = this.method((work, leases) => {
    for (const lease of leases) releaseRun(work, work.run(lease.runId), lease)
    return []
  })

  doChores: Store['doChores'] = this.method((work) => {
    const { now } = work
    const chores = [...this.tables.chores.values()].toSorted(choreOrder)
    const chore = chores.find(({ due }) => due <= now)
    const topic = [...this.tables.topics].find(([, { lookAt }]) => lookAt <= now)?.[0]
    if (chore === undefined && topic !== undefined) {
      tidyTopic(work, topic)
      return { worked: true, nextInMs: null }
    }
    if (chore === undefined) {
      const dues = chores.map(({ due }) => due)
      return { worked: false, nextInMs: nextChoreInMs(dues, now) }
    }
    this.tables.chores.set(`${chore.kind} ${chore.target}`, { ...chore, due: now + choreTakenMs })
    doChore(work, chore)
    return { worked: true, nextInMs: null }
  })

  get: Store['get'] = this.method((work, ids) => ids.map((id) => work.run(id)))

  changes: Store['changes'] = this.method((_work, after, limit) => this.feed(after, limit))

  find: StoreAdmin['find'] = this.method((_work, filter, { limit, after }) => {
    const found = matching(this.tables.runs.values(), filter)
    return found.filter(({ id }) => after === undefined || id < after).slice(0, limit)
  })

  count: StoreAdmin['count'] = this.method((_work, filter, atMost) =>
    Math.min(matching(this.tables.runs.values(), filter).length, atMost),
  )

  deadLetters: StoreAdmin['deadLetters'] = this.method((_work, filter, page) => {
    const letters = [...this.tables.runs.values()].flatMap(({ id, status, endedAt }): DeadLetter[] => {
      const dead = [...this.tables.mailbox(id).values()].filter(({ fate }) => fate === 'dead')
      return dead.map(({ message }) => ({ ...message, status, endedAt }))
    })
    const [runId = '', id = ''] = page.after?.split(/ (.*)/s) ?? []
    return deadLetterPage(letters, filter, page, this.tables.mailboxes.get(runId)?.get(id)?.message)
  })

  settleDeadLetter: StoreAdmin['settleDeadLetter'] = this.method((_work, { runId, id }, fate) => {
    const letter = this.tables.mailbox(runId).get(id)
    if (letter?.fate !== 'dead') return false
    this.tables.mailbox(runId).set(id, { ...letter, fate })
    return true
  })

  otherKeys: StoreAdmin['otherKeys'] = this.method((_work, keys, atMost) =>
    countKeys(this.tables.runs.values(), keys, atMost),
  )

  rewritePayloads: StoreAdmin['rewritePayloads'] = this.method((work, request) => {
    const run = work.run(request.runId)
    const objection = rewriteObjection(run, request.seq)
    if (objection === null) this.tables.rewritePayloads(run as Run, request)
    return objection ?? 'written'
  })

  doctor: StoreAdmin['doctor'] = this.method(({ now }) => {
    const states = [...this.tables.runs.values()].map((run) => this.tables.stateOf(run))
    const waits = [...this.tables.waits.values()].flatMap((some) => [...some.values()])
    const broadcasts = [...this.tables.broadcasts.values()].flat()
    const between = { waits, broadcasts, chores: [...this.tables.chores.values()] }
    const feed = checkFeed(this.feed(0, Number.POSITIVE_INFINITY), states)
    return report([...checkAll(states, now), ...checkExchange(between, states, now), ...feed])
  })

  async listen(onHint: Parameters<Store['listen']>[0]): Promise<() => void> {
    this.assertOpen()
    return this.tables.hints.listen(onHint)
  }

  async close(): Promise<void> {
    this.isClosed = true
    this.tables.hints.close()
  }

  /** A method of the port: it takes place at once, at one time, and shares nothing with its caller. */
  private method<Given extends readonly unknown[], Answer>(
    body: (work: ToyWork, ...given: Given) => Answer,
  ): (...given: Given) => Promise<Answer> {
    return async (...given) => {
      this.assertOpen()
      return structuredClone(body(new ToyWork(this.tables, this.clock.now()), ...structuredClone(given)))
    }
  }

  private assertOpen(): void {
    if (this.isClosed) throw new HoldfastError('CLOSED', 'This store is closed. Open a new one to go on.')
  }

  /** The runs of these types and versions that no session holds and that are or will be due. */
  private queued({ selectors, isolated = false }: ClaimRequest): readonly (Run & { readonly due: number })[] {
    const isAsked = ({ type, version, readiness }: Run): boolean =>
      (readiness === 'isolated') === isolated && selectors.some((one) => one.type === type && one.version === version)
    return [...this.tables.runs.values()].flatMap((run) => {
      const { due } = run
      return due !== null && isAsked(run) ? [{ ...run, due }] : []
    })
  }

  private byId(isMeant: (run: Run) => boolean): readonly Run[] {
    return [...this.tables.runs.values()].filter(isMeant).sort((a, b) => (a.id < b.id ? -1 : 1))
  }

  private feed(after: number, limit: number): readonly Change[] {
    return this.tables.feed.slice(after, after + limit).map(({ runId, seq }, index) => {
      const { type, version, idempotencyKey: key } = this.tables.runs.get(runId) as Run
      const entry = this.tables.journal(runId)[seq - 1] as Entry
      return { position: after + index + 1, runId, type, version, key, entry }
    })
  }
}
