// Inputs that could not be decided here at once: a worker holds the instance, or other processes were always first. Each lies in
// the mailbox under the id of its command, so it is decided once, by any process; and the journal, which this process reads
// again and again, says what became of it. Where no worker takes them, the run is claimed here, and what lies in its mailbox is
// decided. The caller of one that nobody decides in time learns why; the input stays where it is.

import type { KnownCommand } from '../../core/definition/decider-model.ts'
import { HoldfastError } from '../../core/errors/error.ts'
import type { Run } from '../../core/model/run.ts'
import { randomUuid, type Cancel } from '../../core/runtime/ports.ts'
import { createBackoffDelays } from '../../core/runtime/backoff.ts'
import type { CachedInstance } from './cached-instance.ts'
import type { Call, DecidingActor } from './deciding-actor.ts'
import { paused, rowOf, tookTooLong } from './held-instance.ts'
import { inputMessage, inputsFull } from './input-message.ts'
import { performHere } from './perform-here.ts'

/** Between two looks at the journal. */
const pauses = { firstMs: 5, longestMs: 500 }

/** So many looks a worker has to take them: then they are decided here, if nobody holds the instance. */
const looksForWorkers = 4

export class MailboxPath {
  private readonly actor: DecidingActor
  /** By the ids of their commands. */
  private readonly waiting = new Map<string, Call[]>()
  private isLooking = false
  private wake: (() => void) | null = null

  constructor(actor: DecidingActor) {
    this.actor = actor
  }

  get isWaiting(): boolean {
    return this.waiting.size > 0
  }

  /**
   * Puts inputs into the mailbox, in order. `isRival`: nobody holds the run, and others were always first. Then it is claimed here
   * at once, and whatever has come is decided together.
   */
  async send(calls: readonly Call[], isRival: boolean): Promise<void> {
    await Promise.all(calls.map((call) => this.sendOne(call).catch(call.reject)))
    if (this.waiting.size === 0) return
    if (isRival) await this.drain().catch(() => undefined)
    if (!this.isLooking) void this.lookOn()
  }

  /** Performs the run here, unless a process holds it. False if it cannot be had. */
  private async drain(): Promise<boolean> {
    const { engine, cached } = this.actor
    if (cached === null) return false
    const run = await rowOf(this.actor, cached.run.id)
    if (run?.status !== 'waiting' || run.session !== null || run.readiness === 'isolated') return false
    return (await performHere(engine, cached.definition, run)).isClaimed
  }

  private async sendOne(call: Call): Promise<void> {
    const { actor } = this
    const { engine, cached } = actor
    if (cached === null) return actor.add(call)
    call.command ??= randomUuid(engine.ports.random)
    const { command } = call
    const message = await inputMessage(engine, cached.run.id, call.input, command)
    const { outcome } = await engine.send(message)
    if (outcome === 'full') throw inputsFull(engine.limits, actor.definition.type, actor.id)
    if (outcome === 'delivered' || outcome === 'queued') {
      actor.late.done(call)
      const others = this.waiting.get(command)
      if (others === undefined) this.waiting.set(command, [call])
      else others.push(call)
      return
    }
    // It is over, or was removed: that is read from its journal.
    actor.cached = null
    actor.add(call)
  }

  private async lookOn(): Promise<void> {
    const { engine, cached } = this.actor
    const { clock, random } = engine.ports
    const runId = cached?.run.id ?? ''
    this.isLooking = true
    const unwatch = engine.runMoves.watch(runId, () => this.wake?.())
    let delay = createBackoffDelays(random, pauses)
    for (let looks = 1; this.waiting.size > 0; looks += 1) {
      let cancel: Cancel = () => undefined
      await new Promise<void>((resolve) => {
        this.wake = resolve
        const leftMs = this.firstUntil - clock.monotonic()
        cancel = clock.after(Math.max(0, Math.min(delay(), leftMs)), resolve)
      })
      cancel()
      this.wake = null
      const before = this.waiting.size
      try {
        await this.lookOnce(looks)
      } catch (error) {
        this.fail(error)
      }
      if (this.waiting.size < before) delay = createBackoffDelays(random, pauses)
    }
    unwatch()
    this.isLooking = false
    this.actor.rested()
  }

  private async lookOnce(looks: number): Promise<void> {
    const { actor } = this
    const { engine } = actor
    if (engine.isClosed) throw new HoldfastError('CLOSED', 'This Holdfast was closed before the input was decided.')
    const seen = await actor.look((cached) => cached && { cached, known: this.knownIn(cached) })
    if (seen === null) return this.decideHere()
    const { cached, known } = seen
    for (const [command, of] of known) {
      const calls = this.waiting.get(command) ?? []
      this.waiting.delete(command)
      const answers = calls.map(() => ({ outcome: 'duplicate', of, first: null }) as const)
      await actor.answer(cached, calls, answers)
    }
    if (this.waiting.size === 0) return
    if (cached.instance.isOver) return this.decideHere()
    const isLate = this.firstUntil <= engine.ports.clock.monotonic()
    if (!isLate && looks % looksForWorkers !== 0) return
    const run = await rowOf(actor, cached.run.id)
    if (run === null) return this.decideHere()
    if (run.status === 'waiting' && run.readiness !== 'isolated') {
      // A message that nobody takes would keep every later input from the short way.
      const { isClaimed } = await performHere(engine, cached.definition, run)
      return isClaimed ? undefined : this.decideHere()
    }
    if (run.status === 'paused') return this.failEach((call) => paused(actor, run, call.command))
    if (isLate) return this.giveUpLate(run)
    if (run.session === null && run.readiness !== 'isolated') await performHere(engine, cached.definition, run)
  }

  /** When the first caller waits no longer. */
  private get firstUntil(): number {
    return Math.min(...[...this.waiting.values()].flat().map(({ until }) => until))
  }

  private giveUpLate(run: Run): void {
    const now = this.actor.engine.ports.clock.monotonic()
    for (const [command, calls] of this.waiting) {
      const open = calls.filter(({ until }) => until > now)
      for (const call of calls) if (!open.includes(call)) call.reject(tookTooLong(this.actor, run, call))
      if (open.length === 0) this.waiting.delete(command)
      else this.waiting.set(command, open)
    }
  }

  private async failEach(errorOf: (call: Call) => Promise<unknown>): Promise<void> {
    const calls = [...this.waiting.values()].flat()
    this.waiting.clear()
    // Why it is paused may not be readable now: then that is the answer.
    for (const call of calls) call.reject(await errorOf(call).catch((error: unknown) => error))
  }

  private knownIn({ instance }: CachedInstance): readonly (readonly [string, KnownCommand])[] {
    return [...this.waiting.keys()].flatMap((command) => {
      const known = instance.find(command)
      return known === null ? [] : [[command, known] as const]
    })
  }

  private decideHere(): void {
    const calls = [...this.waiting.values()].flat()
    this.waiting.clear()
    for (const call of calls) {
      this.actor.late.watch(call)
      this.actor.add(call)
    }
  }

  private fail(error: unknown): void {
    const calls = [...this.waiting.values()].flat()
    this.waiting.clear()
    for (const { reject } of calls) reject(error)
  }
}
