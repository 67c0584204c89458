// `decider()`: a run whose state is the fold of its events. Each input is decided once, in one transition that takes its
// message and appends the input with all that follows: events, effects, timers. The result of an effect is an input again,
// decided in the transition that records the effect as performed.
// Only `evolve` runs when the journal is read again: what was decided stays decided, whatever the code says now.

import type { StepTools } from '../../src/core/runtime/attempt.ts'
import type { Definition } from '../../src/core/definition/definition.ts'
import { toMs, type Duration } from '../../src/core/definition/duration.ts'
import type { InputMeta, InputSource } from '../../src/core/model/entry.ts'
import { HoldfastError } from '../../src/core/errors/error.ts'
import { retryPolicy, retryPresets, type Retry, type RetryPolicy } from '../../src/core/definition/retry.ts'
import { Drainer } from './drainer.ts'
import {
  newWork,
  type Applied,
  type Occasion,
  type Outcome,
  type Program,
  type Proposal,
  type Timer,
  type Work,
} from './program.ts'

/** What inputs, events and effects have in common. */
export interface Typed {
  readonly type: string
}

export interface DeciderOptions<State, Input extends Typed, Event extends Typed, Effect extends Typed> {
  readonly initial: () => State
  readonly evolve: (state: State, event: Event) => State
  /** Pure: `now` is all that it may know besides. What it throws rejects the input. */
  readonly decide: (state: State, input: Input, tools: { readonly now: number }) => Decision<Input, Event, Effect>
  readonly isTerminal: (state: State) => boolean
  /** How each type of effect is performed. What it returns is decided as an input. */
  readonly effects: {
    readonly [Type in Effect['type']]: (
      effect: Extract<Effect, { type: Type }>,
      tools: StepTools,
    ) => Input | void | Promise<Input | void>
  }
  /** How failed attempts of effects are repeated. @default three attempts */
  readonly retry?: Retry
  /** The input that reports an effect that gave up. @default none, only the journal shows it */
  readonly onGivenUp?: (effect: Effect, error: unknown) => Input
}

export type When = { readonly at: Date | number } | { readonly after: Duration }

/** What follows from an input, in the order in which it was said. */
export class Decision<Input extends Typed, Event extends Typed, Effect extends Typed> {
  readonly events: readonly Event[]
  readonly asked: readonly Asked<Input, Effect>[]
  /** Why nothing follows; null if the input was accepted. */
  readonly rejected: string | null

  constructor(events: readonly Event[], asked: readonly Asked<Input, Effect>[], rejected: string | null) {
    this.events = events
    this.asked = asked
    this.rejected = rejected
  }

  effect<const More extends Typed>(effect: More): Decision<Input, Event, Effect | More> {
    return new Decision<Input, Event, Effect | More>(this.events, [...this.asked, { kind: 'effect', effect }], null)
  }

  /** Lets an input come later. It replaces the timer that has this key. */
  timer<const More extends Typed>(key: string, when: When, input: More): Decision<Input | More, Event, Effect> {
    return new Decision<Input | More, Event, Effect>(
      this.events,
      [...this.asked, { kind: 'timer', key, when, input }],
      null,
    )
  }

  cancelTimer(key: string): Decision<Input, Event, Effect> {
    return new Decision(this.events, [...this.asked, { kind: 'timer-cancelled', key }], null)
  }
}

type Asked<Input, Effect> =
  | { readonly kind: 'effect'; readonly effect: Effect }
  | { readonly kind: 'timer'; readonly key: string; readonly when: When; readonly input: Input }
  | { readonly kind: 'timer-cancelled'; readonly key: string }

/** The input is accepted, and this happened. */
export function decision<Event extends Typed>(...events: readonly Event[]): Decision<never, Event, never> {
  return new Decision(events, [], null)
}

/** The input is refused, and nothing happened. */
export function reject(reason: string): Decision<never, never, never> {
  return new Decision([], [], reason)
}

export function decider<State, Input extends Typed, Event extends Typed, Effect extends Typed>(
  type: string,
  options: DeciderOptions<State, Input, Event, Effect>,
): Definition {
  const policy = retryPolicy(options.retry, retryPresets.standard, `decider "${type}": retry`)
  const odd = Object.keys(options.effects).find((name) => name.includes('#'))
  if (odd !== undefined) throw new HoldfastError('INVALID_NAME', `An effect cannot be called "${odd}": # counts them.`)
  return {
    type,
    version: 1,
    style: 'decider',
    leaseMs: null,
    feed: false,
    unique: null,
    tags: [],
    metadata: null,
    validate: (input) => input,
    open: (host, claim) => new Drainer(new DeciderProgram(options, policy), host, claim),
  }
}

interface InputTimer extends Timer {
  readonly input: unknown
}

class DeciderProgram<State, Input extends Typed, Event extends Typed, Effect extends Typed> implements Program {
  readonly policy: RetryPolicy
  readonly work = new Map<string, Work>()
  readonly timers = new Map<string, InputTimer>()
  isNew = true
  private readonly options: DeciderOptions<State, Input, Event, Effect>
  private readonly effects = new Map<string, Effect>()
  /** How many effects of each type were asked for. */
  private readonly counts = new Map<string, number>()
  private state: State
  private first: unknown
  private isFirst = false
  /** Why the input that it was started with was rejected: then there is nothing to go on with. */
  private rejection: string | null = null

  constructor(options: DeciderOptions<State, Input, Event, Effect>, policy: RetryPolicy) {
    this.options = options
    this.policy = policy
    this.state = options.initial()
  }

  get outcome(): Outcome | null {
    if (this.rejection !== null) return { failure: new Error(this.rejection), cause: null }
    // What was asked for before the end is still performed.
    return this.isOver && this.work.size === 0 ? { output: this.state } : null
  }

  private get isOver(): boolean {
    return this.options.isTerminal(this.state)
  }

  apply(entry: Applied): void {
    switch (entry.kind) {
      case 'started':
      case 'continued':
        this.first = entry.value
        return
      case 'input':
        return this.applyInput(entry.meta)
      case 'input-rejected':
        if (this.isFirst) this.rejection = entry.value as string
        return
      case 'event':
        this.state = this.options.evolve(this.state, entry.value as Event)
        if (this.isOver) this.timers.clear()
        return
      case 'effect':
        return this.applyEffect(entry.name, entry.value as Effect)
      case 'effect-succeeded':
      case 'effect-failed':
        this.work.delete(entry.name)
        return
      case 'timer':
        if (!this.isOver) this.timers.set(entry.name, { due: entry.meta, since: entry.since, input: entry.value })
        return
      case 'timer-cancelled':
        this.timers.delete(entry.name)
        return
      default:
        return
    }
  }

  private applyInput({ from }: InputMeta): void {
    if (from.kind === 'timer') this.timers.delete(from.name)
    this.isFirst = from.kind === 'start'
    if (this.isFirst) this.isNew = false
  }

  private applyEffect(name: string, effect: Effect): void {
    const perform = this.options.effects[effect.type as Effect['type']]
    this.counts.set(effect.type, (this.counts.get(effect.type) ?? 0) + 1)
    this.effects.set(name, effect)
    this.work.set(
      name,
      newWork(name, (tools) => perform(effect as Extract<Effect, { type: Effect['type'] }>, tools)),
    )
  }

  decide(occasion: Occasion, now: number): readonly Proposal[] {
    const settled = settledBy(occasion)
    const input = this.inputOf(occasion)
    if (input === undefined) return settled
    const from = sourceOf(occasion)
    // The data of an input that the run was started with stands in its first entry.
    const said = { kind: 'input', name: input.type, ...(from.kind === 'start' ? {} : { value: input }) } as const
    if (this.isOver) {
      if (settled.length > 0) return settled
      return [{ ...said, meta: { from, outcome: 'already-completed' } }]
    }
    const { events, asked, rejected } = this.options.decide(this.state, input, { now })
    if (rejected !== null) {
      return [...settled, { ...said, meta: { from, outcome: 'rejected' } }, rejection(rejected)]
    }
    // Tried before it is recorded: an event that cannot be folded must never stand in the journal.
    events.reduce(this.options.evolve, this.state)
    return [
      ...settled,
      { ...said, meta: { from, outcome: 'accepted' } },
      ...events.map((event) => ({ kind: 'event', name: event.type, meta: null, value: event }) as const),
      ...this.entriesOf(asked),
    ]
  }

  refuse(occasion: Occasion, error: unknown): readonly Proposal[] {
    const reason = error instanceof Error ? error.message : String(error)
    const meta = { from: sourceOf(occasion), outcome: 'rejected' } as const
    return [...settledBy(occasion), { kind: 'input', name: null, meta, ...this.readAgain(occasion) }, rejection(reason)]
  }

  /** What came out of the journal or the mailbox goes in again; what an effect returned may be what cannot be stored. */
  private readAgain(occasion: Occasion): { readonly value?: unknown } {
    try {
      return occasion.kind === 'message' || occasion.kind === 'timer' ? { value: this.inputOf(occasion) } : {}
    } catch {
      return {}
    }
  }

  private inputOf(occasion: Occasion): Input | undefined {
    switch (occasion.kind) {
      case 'start':
        return this.first as Input
      case 'message':
        return occasion.read() as Input
      case 'timer':
        return this.timers.get(occasion.name)?.input as Input
      case 'performed':
        return occasion.value as Input | undefined
      case 'gave-up':
        return this.options.onGivenUp?.(this.effects.get(occasion.work.name) as Effect, occasion.error)
    }
  }

  private entriesOf(asked: readonly Asked<Input, Effect>[]): readonly Proposal[] {
    const counts = new Map(this.counts)
    return asked.map((one): Proposal => {
      if (one.kind === 'timer-cancelled') return { kind: one.kind, name: one.key, meta: null }
      if (one.kind === 'timer') return { kind: one.kind, name: one.key, meta: dueOf(one.when), value: one.input }
      const { type } = one.effect
      if (!Object.hasOwn(this.options.effects, type)) throw new Error(`There is no effect "${type}".`)
      const count = (counts.get(type) ?? 0) + 1
      counts.set(type, count)
      return { kind: 'effect', name: count === 1 ? type : `${type}#${count}`, meta: null, value: one.effect }
    })
  }
}

function rejection(value: string): Proposal {
  return { kind: 'input-rejected', name: null, meta: null, value }
}

/** What an occasion says of an effect. */
function settledBy(occasion: Occasion): readonly Proposal[] {
  if (occasion.kind === 'performed')
    return [{ kind: 'effect-succeeded', name: occasion.work.name, meta: occasion.meta }]
  if (occasion.kind !== 'gave-up') return []
  return [{ kind: 'effect-failed', name: occasion.work.name, meta: occasion.meta, error: occasion.error }]
}

function sourceOf(occasion: Occasion): InputSource {
  switch (occasion.kind) {
    case 'start':
      return { kind: 'start' }
    case 'message':
      return { kind: 'message', id: occasion.message.id }
    case 'timer':
      return { kind: 'timer', name: occasion.name, dueAt: occasion.dueAt }
    case 'performed':
    case 'gave-up':
      return { kind: 'effect', name: occasion.work.name }
  }
}

function dueOf(when: When): Timer['due'] {
  if ('at' in when) return { at: Number(when.at), afterMs: null }
  return { at: null, afterMs: toMs(when.after, 'The time of a timer') }
}
