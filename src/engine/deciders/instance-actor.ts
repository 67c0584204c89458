// Decides inputs for one instance in this process, without a lease: its place in the journal is the fence. Inputs that come
// while a transition is on its way are decided together, in the next one.
//
//   idle     → deciding  an input came: the instance is read, unless it is cached
//   deciding → flying    what follows from the inputs is on its way to the store
//   flying   → idle      it is committed, and the callers have their answers
//   flying   → deciding  others have come while it was on its way, or another process was first (`stale`): what is new is folded,
//                        and the inputs are decided once more
//   flying   → deciding  nobody holds the instance, but its run does not just wait (`held`): it is performed here
//   flying   → awaiting  a worker holds the instance (`held`): the inputs go through the mailbox, each under the id of its
//                        command, and the journal says what became of them
//   flying   → awaiting  others were first again and again: the same, and the run is claimed here, which no rival can prevent
//   flying   → idle      the instance is paused, or begins later: the callers learn of that (`held-instance.ts`)
//   awaiting → idle      all of them were found there, or their callers wait no longer
//
// An answer that is not committed (a rejection that leaves nothing) is only given when the store has nothing new.

import type { Answer, Decided, DeciderDefinition } from '../../core/definition/decider-model.ts'
import type { Acknowledged, EffectOutcome } from '../../core/definition/definition.ts'
import { HoldfastError } from '../../core/errors/error.ts'
import type { Transition } from '../../core/model/transition.ts'
import { createBackoff } from '../../core/runtime/backoff.ts'
import { decidedTransition } from '../../core/deciding/decided-transition.ts'
import { logDeadTimers } from '../../core/runtime/fired-timers.ts'
import { fetchedEntries } from '../../core/deciding/read-entries.ts'
import { loadJournal } from '../store/journal-pages.ts'
import { loadInstance, refusalReason, type CachedInstance } from './cached-instance.ts'
import type { Call, DecidingActor, Input, InputAnswer, InstanceKeeper } from './deciding-actor.ts'
import { EffectLeases } from './effect-leases.ts'
import { expectWorker } from './expect-worker.ts'
import { hostOf, type DecidingEngine } from './deciding-engine.ts'
import { beginInstance, rejectFirst } from './begin-instance.ts'
import { whenHeld } from './held-instance.ts'
import { LateCalls, stillWaiting } from './late-calls.ts'
import { MailboxPath } from './mailbox-path.ts'
import { offerOf, outcomeOffer } from './offers.ts'

/** The end of an effect, with which the instance decides its outcome. */
interface Settling {
  readonly kind: 'settling'
  readonly outcome: EffectOutcome
  readonly end: Transition
  readonly resolve: (answer: Acknowledged) => void
  readonly reject: (error: unknown) => void
}

/** A caller reads the instance: between two transitions, so nothing that is not committed is seen. */
interface Looking {
  readonly kind: 'looking'
  readonly show: (cached: CachedInstance | null) => void
  readonly reject: (error: unknown) => void
}

type Item = Call | Settling | Looking

/** How many effects may wait here for their turn: others report their ends to the mailbox, which takes 500 at once. */
const mostSettling = 8

/**
 * How often another process may be first before the inputs go through the mailbox and the run is claimed, which no rival can
 * prevent. A loser knows later than the winner what is new, so it mostly loses again, for as long as the winner has inputs.
 */
const mostStale = 6

/**
 * From the second loss on rivals wait, each for another time, and for several commits of the winner: those who ask for the row
 * meanwhile keep it waiting, and then all of them together decide less than one alone.
 */
const rivalPauses = { firstMs: 8, longestMs: 32 }

export class InstanceActor implements DecidingActor {
  readonly id: string
  readonly definition: DeciderDefinition
  readonly engine: DecidingEngine
  /** What is known of the instance; null while it was not read, or is not to be trusted. */
  cached: CachedInstance | null = null
  private queue: Item[] = []
  private isWorking = false
  readonly late: LateCalls
  /** Null while no input has gone through it. */
  private mailbox: MailboxPath | null = null
  private readonly keeper: InstanceKeeper

  constructor(engine: DecidingEngine, definition: DeciderDefinition, id: string, keeper: InstanceKeeper) {
    this.engine = engine
    this.definition = definition
    this.id = id
    this.keeper = keeper
    this.late = new LateCalls(this)
  }

  get isIdle(): boolean {
    return !this.isWorking && this.mailbox?.isWaiting !== true
  }

  get bytes(): number {
    return this.cached?.bytes ?? 0
  }

  execute({ input, command, timeoutMs }: Input): Promise<InputAnswer> {
    const until = this.engine.ports.clock.monotonic() + timeoutMs
    const given = { kind: 'call', input, command, timeoutMs, until, isGivenUp: false } as const
    return new Promise((resolve, reject) => this.add(this.late.watched({ ...given, resolve, reject })))
  }

  /** Commits the end of an effect, and with it what the instance decides, if it can be decided now. */
  settle(outcome: EffectOutcome, end: Transition): Promise<Acknowledged> {
    const waiting = this.queue.filter(({ kind }) => kind === 'settling').length
    if (waiting >= mostSettling) return this.engine.commit(end)
    return new Promise((resolve, reject) => this.add({ kind: 'settling', outcome, end, resolve, reject }))
  }

  add(item: Item): void {
    this.queue.push(item)
    if (!this.isWorking) void this.work()
  }

  look<Result>(read: (cached: CachedInstance | null) => Result): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.add({ kind: 'looking', show: (cached) => resolve(read(cached)), reject })
    })
  }

  private async lookNow({ show, reject }: Looking): Promise<void> {
    try {
      let cached = await this.load()
      if (cached !== null && !(await cached.isCurrent())) {
        await this.refresh(cached)
        cached = await this.load()
      }
      show(cached)
    } catch (error) {
      this.cached = null
      reject(error)
    }
  }

  private async work(): Promise<void> {
    this.isWorking = true
    // All inputs of this turn go together.
    await Promise.resolve()
    while (this.queue.length > 0) {
      const [first] = this.queue as [Item]
      if (first.kind === 'settling') {
        this.queue.shift()
        await this.settleNow(first)
        continue
      }
      if (first.kind === 'looking') {
        this.queue.shift()
        await this.lookNow(first)
        continue
      }
      await this.decideAll(this.takeCalls())
    }
    this.isWorking = false
    if (this.isIdle) this.keeper.rested(this)
  }

  /** The inputs that are next in the queue, and whose callers still wait. */
  private takeCalls(): readonly Call[] {
    const end = this.queue.findIndex(({ kind }) => kind !== 'call')
    return stillWaiting(this.queue.splice(0, end === -1 ? this.queue.length : end) as Call[])
  }

  /** Whether nothing waits for the mailbox any more either. */
  rested(): void {
    if (this.isIdle) this.keeper.rested(this)
  }

  private async decideAll(calls: readonly Call[]): Promise<void> {
    let open = calls
    try {
      if (!this.engine.knowsTime) await this.engine.learnTime()
      let pause: (() => Promise<void>) | null = null
      for (let [stale, held] = [0, 0]; open.length > 0;) {
        const done = await this.decideNext(open)
        if (done === 'stale') {
          stale += 1
          if (stale > 1) pause ??= createBackoff(this.engine.ports, rivalPauses)
          if (stale < mostStale) await this.lost(pause)
          // Those that have come meanwhile go along: there is one try for all.
          open = [...stillWaiting(open), ...this.takeCalls()]
        }
        if (done === 'held') held += 1
        const isBlocked = done === 'held' && (await whenHeld(this, open, held)) === 'mailbox'
        if (isBlocked || stale >= mostStale) {
          return await (this.mailbox ??= new MailboxPath(this)).send(open, !isBlocked)
        }
        if (typeof done === 'number') {
          open = stillWaiting(open.slice(done))
          stale = 0
          pause = null
        }
      }
    } catch (error) {
      this.cached = null
      for (const { reject } of open) reject(error)
    }
  }

  /** Others were first: what they have decided is read, after a pause if this is not the first time. */
  private async lost(pause: (() => Promise<void>) | null): Promise<void> {
    await pause?.()
    if (this.cached !== null) await this.refresh(this.cached)
  }

  /**
   * An instance that is not known here may not exist. If one of these inputs would begin it, that is tried before it is looked for:
   * the store answers with the run that has its id, if there is one.
   */
  private async decideNext(calls: readonly Call[]): Promise<number | 'stale' | 'held' | 'again'> {
    if (this.cached !== null) return this.decideOnce(this.cached, calls)
    const begun = await beginInstance(this, calls)
    if (begun !== 'rejected') return begun
    const cached = await this.load()
    return cached === null ? rejectFirst(this, calls) : this.decideOnce(cached, calls)
  }

  /** Decides the first of these calls as one transition. Answers how many have their answers now, or why none has. */
  private async decideOnce(
    cached: CachedInstance,
    calls: readonly Call[],
  ): Promise<number | 'stale' | 'held' | 'again'> {
    const { instance } = cached
    const decided = instance.decide(calls.map(offerOf), { now: this.engine.clock.now() })
    if (decided.append.length === 0) {
      // A known id stays known; a window of contents may have moved on.
      const isFinal = decided.answers.every(
        (answer, at) => answer.outcome === 'duplicate' && instance.find(calls[at]?.command ?? '') === answer.of,
      )
      if (!isFinal && !(await cached.isCurrent())) return this.refresh(cached)
    } else {
      const answer = await this.commit(cached, decided)
      if (typeof answer === 'string') return answer
    }
    await this.answer(cached, calls, decided.answers)
    return decided.answers.length
  }

  private async commit(cached: CachedInstance, decided: Decided): Promise<Acknowledged | 'stale' | 'held' | 'again'> {
    const { engine } = this
    const leases = new EffectLeases(engine)
    try {
      const made = await this.transition(cached, decided)
      const answer = await engine.commit(leases.reserve(made))
      cached.instance.committed(answer.at)
      this.noteCommitted(cached, made)
      logDeadTimers(engine.ports.logger, cached.run, decided)
      leases.begin(answer.leased, answer.at)
      return answer
    } catch (error) {
      cached.instance.rollBack()
      return this.afterRefusal(error)
    } finally {
      leases.giveBack()
    }
  }

  private transition(cached: CachedInstance, decided: Decided): Promise<Transition> {
    const seq = cached.instance.seq - decided.append.length
    const options = { host: hostOf(this.engine), run: cached.run, seq, decided }
    return decidedTransition({ ...options, lease: null, parkIf: null, isWanted: () => !this.engine.isClosed })
  }

  noteCommitted(cached: CachedInstance, transition: Transition): void {
    const { keyId = null, append, due } = transition
    expectWorker(this.engine, cached.run, transition)
    if (keyId !== null) cached.run = { ...cached.run, keyId }
    for (const { data } of append) cached.bytes += data?.length ?? 0
    // A worker has to look at the new time, and runs that perform effects may be claimed.
    if (due !== null) this.engine.onReady()
  }

  private afterRefusal(error: unknown): 'stale' | 'held' | 'again' {
    switch (refusalReason(error)) {
      case 'stale':
        return 'stale'
      case 'held':
        return 'held'
      case 'ended':
      case 'not-found': {
        // It has ended since, or was removed: then there may be another instance of this id, or none.
        this.cached = null
        return 'again'
      }
      default:
        throw error
    }
  }

  private async refresh(cached: CachedInstance): Promise<'again'> {
    if (!(await cached.catchUp())) this.cached = null
    return 'again'
  }

  /** The cached instance, or as it is in the store; null if there is none. */
  private async load(): Promise<CachedInstance | null> {
    this.cached ??= await loadInstance(this.engine, this.definition.type, this.id)
    return this.cached
  }

  /** Answers the callers. */
  async answer(cached: CachedInstance, calls: readonly Call[], answers: readonly Answer[]): Promise<void> {
    for (const [at, answer] of answers.entries()) {
      const call = calls[at] as Call
      // Those of thousands of inputs are at hand.
      if (answer.outcome === 'accepted' || answer.outcome === 'rejected') call.resolve(answer)
      else await this.answerOne(cached, call, answer).catch(call.reject)
    }
  }

  private async answerOne(cached: CachedInstance, { resolve, reject }: Call, answer: Answer): Promise<void> {
    const first = answer.outcome === 'duplicate' ? (answer.first ?? (await this.recalled(cached, answer.of))) : answer
    switch (first.outcome) {
      case 'accepted':
      case 'rejected':
      case 'already-completed':
        return resolve(first)
      case 'failed':
        return reject(first.error)
      default:
        throw new HoldfastError('BUG', `An input was answered with ${first.outcome}.`)
    }
  }

  /** The answer to a command that was decided before, as the journal has it. */
  async recalled(
    { run, instance }: CachedInstance,
    known: Extract<Answer, { outcome: 'duplicate' }>['of'],
  ): Promise<ReturnType<CachedInstance['instance']['recall']>> {
    // What follows from an input is one transition at most.
    for await (const { entries } of loadJournal(this.engine.store, run.id, { after: known.seq - 1, limit: 501 })) {
      return instance.recall(known, await fetchedEntries(this.engine, entries, () => true))
    }
    throw new HoldfastError('BUG', `Run ${run.id} has no entry ${known.seq}.`)
  }

  private async settleNow({ outcome, end, resolve, reject }: Settling): Promise<void> {
    await this.settled(outcome, end).then(resolve, reject)
  }

  /** If the instance cannot be read or decided for now, the end goes alone, and the outcome is found in the mailbox. */
  private async settled(outcome: EffectOutcome, end: Transition): Promise<Acknowledged> {
    const { engine } = this
    const cached = await this.load().catch(() => null)
    if (cached === null || cached.run.id !== outcome.runId) return engine.commit(end)
    const offer = outcomeOffer(outcome)
    const decide = (): Decided => cached.instance.decide([offer], { now: engine.clock.now() })
    let decided = decide()
    if (decided.answers[0]?.outcome === 'unknown-effect' && decided.append.length === 0) {
      await cached.catchUp()
      decided = decide()
    }
    const [answer] = decided.answers
    const hasFailed = answer?.outcome === 'failed' && offer.kind === 'performed'
    if (decided.append.length === 0 || answer === undefined || hasFailed) {
      if (decided.append.length > 0) cached.instance.rollBack()
      if (!hasFailed) return engine.commit(end)
      // It may have failed only because of what is not known here.
      if (await cached.isCurrent()) throw answer.error
      await this.refresh(cached)
      return this.settled(outcome, end)
    }
    return this.commitSettled(cached, decided, end)
  }

  private async commitSettled(cached: CachedInstance, decided: Decided, end: Transition): Promise<Acknowledged> {
    const leases = new EffectLeases(this.engine)
    try {
      const settles = await this.transition(cached, decided)
      const answer = await this.engine.commit({ ...end, settles: leases.reserve(settles) })
      const { settled } = answer
      if (settled?.outcome === 'committed') {
        cached.instance.committed(settled.at)
        this.noteCommitted(cached, settles)
        logDeadTimers(this.engine.ports.logger, cached.run, decided)
        leases.begin(settled.leased, settled.at)
      } else {
        // The outcome is in the mailbox.
        cached.instance.rollBack()
        this.cached = null
        this.engine.onReady()
      }
      return answer
    } catch (error) {
      cached.instance.rollBack()
      this.cached = null
      throw error
    } finally {
      leases.giveBack()
    }
  }
}
