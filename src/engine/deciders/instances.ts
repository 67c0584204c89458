// The instances that this process decides for: one actor for each that is in use, and the state of those that were used last, as
// far as they fit into a bound of bytes. Losing one costs a read of its journal, never correctness.

import { isDecider, type DeciderDefinition } from '../../core/definition/decider-model.ts'
import type { Acknowledged, EffectOutcome } from '../../core/definition/definition.ts'
import type { Transition } from '../../core/model/transition.ts'
import type { DecidingEngine } from './deciding-engine.ts'
import { loadInstance, type CachedInstance } from './cached-instance.ts'
import type { DecidingActor, Input, InputAnswer, InstanceKeeper } from './deciding-actor.ts'
import { InstanceActor } from './instance-actor.ts'

/** How many bytes of folded journals are kept. */
const mostBytes = 64 * 1024 * 1024

export class Instances implements InstanceKeeper {
  private readonly engine: DecidingEngine
  private readonly most: number
  /** In the order of their last use. */
  private readonly actors = new Map<string, InstanceActor>()
  /** The last call of `inOrder` for each instance, until it has submitted what it does. */
  private readonly turns = new Map<string, Promise<void>>()
  private bytes = 0
  private readonly weights = new Map<string, number>()

  constructor(engine: DecidingEngine, most = mostBytes) {
    this.engine = engine
    this.most = most
  }

  /** Has an input decided: settles once that is committed. Rejects if it could not be decided. */
  execute(definition: DeciderDefinition, { id, ...input }: Input & { readonly id: string }): Promise<InputAnswer> {
    return this.actor(definition, id).execute(input)
  }

  /** Calls `read` with the instance as the store has it; null if there is none. */
  async look<Result>(
    definition: DeciderDefinition,
    id: string,
    read: (cached: CachedInstance | null) => Result,
  ): Promise<Result> {
    // Reading alone is no use that is worth a place here: an id may come from anywhere.
    const actor = this.actors.get(nameOf(definition.type, id))
    return actor === undefined ? read(await loadInstance(this.engine, definition.type, id)) : actor.look(read)
  }

  /** Commits the end of an effect, and what its instance decides because of it. */
  settle(outcome: EffectOutcome, end: Transition): Promise<Acknowledged> {
    const { type, version, id } = outcome.instance
    const definition = this.engine.registry.find(type, version)
    if (definition === undefined || !isDecider(definition)) return this.engine.commit(end)
    return this.actor(definition, id).settle(outcome, end)
  }

  /**
   * Calls `work` for one instance after the other call of it has submitted what it does: so inputs are enqueued in the order of
   * the calls, and the store is not awaited for each.
   */
  async inOrder<Result>(
    definition: DeciderDefinition,
    id: string,
    work: (submitted: () => void) => Promise<Result>,
  ): Promise<Result> {
    const name = nameOf(definition.type, id)
    const before = this.turns.get(name)
    let submitted = (): void => undefined
    const turn = new Promise<void>((resolve) => (submitted = resolve))
    this.turns.set(name, turn)
    await before
    try {
      return await work(submitted)
    } finally {
      submitted()
      if (this.turns.get(name) === turn) this.turns.delete(name)
    }
  }

  private actor(definition: DeciderDefinition, id: string): InstanceActor {
    const name = nameOf(definition.type, id)
    const known = this.actors.get(name)
    if (known !== undefined) {
      this.actors.delete(name)
      this.actors.set(name, known)
      return known
    }
    const actor = new InstanceActor(this.engine, definition, id, this)
    this.actors.set(name, actor)
    return actor
  }

  /** Nothing is under way for an instance: it may be forgotten from here on. */
  rested(actor: DecidingActor): void {
    const name = nameOf(actor.definition.type, actor.id)
    if (this.actors.get(name) !== actor) return
    if (actor.cached === null) {
      this.actors.delete(name)
      return this.weigh(name, 0)
    }
    this.weigh(name, actor.bytes)
    for (const [oldest, one] of this.actors) {
      if (this.bytes <= this.most) return
      if (!one.isIdle) continue
      this.actors.delete(oldest)
      this.weigh(oldest, 0)
    }
  }

  private weigh(name: string, bytes: number): void {
    this.bytes += bytes - (this.weights.get(name) ?? 0)
    if (bytes === 0) this.weights.delete(name)
    else this.weights.set(name, bytes)
  }
}

/** The types of deciders have no line break. */
function nameOf(type: string, id: string): string {
  return `${type}\n${id}`
}
