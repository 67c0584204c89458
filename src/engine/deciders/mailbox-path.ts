// Inputs that could not be decided here at once: a worker holds the instance, or other processes were always first. Each lies in
// the mailbox under the id of its command, so it is decided once, by any process; and the journal, which this process reads
// again and again, says what became of it. Where no worker takes them, they are decided here after all, under the same ids.

import type { KnownCommand } from '../../core/definition/decider-model.ts'
import { HoldfastError } from '../../core/errors/error.ts'
import { randomUuid, type Cancel } from '../../core/runtime/ports.ts'
import { createBackoffDelays } from '../../core/runtime/backoff.ts'
import type { CachedInstance } from './cached-instance.ts'
import type { Call, DecidingActor } from './deciding-actor.ts'
import { inputMessage, inputsFull } from './input-message.ts'

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

  /** Puts inputs into the mailbox, in order. */
  async send(calls: readonly Call[]): Promise<void> {
    await Promise.all(calls.map((call) => this.sendOne(call).catch(call.reject)))
    if (this.waiting.size > 0 && !this.isLooking) void this.lookOn()
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
        cancel = clock.after(delay(), resolve)
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
    if (looks % looksForWorkers !== 0) return
    const [run] = await engine.store.get([cached.run.id])
    if (run?.status === 'waiting') this.decideHere()
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
    for (const call of calls) this.actor.add(call)
  }

  private fail(error: unknown): void {
    const calls = [...this.waiting.values()].flat()
    this.waiting.clear()
    for (const { reject } of calls) reject(error)
  }
}
