// `graph()`: a run whose steps follow from one another by the events with which they end. Every edge becomes live or dead;
// a step is decided when all its incoming edges are: it runs once if one is live, otherwise it is dead, and so is what
// leaves it. The run ends when no step is active, waiting or undecided.
// Which steps are active is the fold of the journal: nothing but their outcomes is recorded.

import type { StepTools } from '../../src/core/runtime/attempt.ts'
import type { Definition } from '../../src/core/definition/definition.ts'
import type { AttemptMeta } from '../../src/core/model/entry.ts'
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

/** Where a branch ends. */
export const done = Symbol('done')
/** What a step returns that is to be ended from outside, by a message of its name. */
export const waiting = Symbol('waiting')

/** An event, alone or with data that later steps may read. */
export type Ended = string | { readonly event: string; readonly data: unknown }

export interface GraphContext {
  readonly input: unknown
  /** The data of the steps that have ended. */
  readonly steps: Readonly<Record<string, unknown>>
}

export interface GraphStep {
  /** The events with which it may end. */
  readonly events: readonly string[]
  readonly perform: (ctx: GraphContext, tools: StepTools) => Ended | typeof waiting | Promise<Ended | typeof waiting>
}

type Targets = string | readonly string[] | typeof done

export interface GraphOptions {
  readonly steps: Readonly<Record<string, GraphStep>>
  readonly start: string
  /** For each event of each step, what comes next. A list fans out; what several lead to joins them. */
  readonly transitions: Readonly<Record<string, Readonly<Record<string, Targets>>>>
  /** How failed attempts of steps are repeated. @default three attempts */
  readonly retry?: Retry
}

export function graph(type: string, options: GraphOptions): Definition {
  const policy = retryPolicy(options.retry, retryPresets.standard, `graph "${type}": retry`)
  const edges = edgesOf(options)
  const unknown = [options.start, ...edges.flatMap(({ from, to }) => [from, to])].find(
    (name) => !Object.hasOwn(options.steps, name),
  )
  if (unknown !== undefined) throw new HoldfastError('INVALID_OPTION', `Graph "${type}" has no step "${unknown}".`)
  return {
    type,
    version: 1,
    style: 'graph',
    leaseMs: null,
    feed: false,
    unique: null,
    tags: [],
    metadata: null,
    validate: (input) => input,
    open: (host, claim) => new Drainer(new GraphProgram(options, policy), host, claim),
  }
}

interface Edge {
  readonly from: string
  readonly event: string
  readonly to: string
  state: 'open' | 'live' | 'dead'
}

function edgesOf({ transitions }: GraphOptions): readonly Edge[] {
  return Object.entries(transitions).flatMap(([from, byEvent]) =>
    Object.entries(byEvent).flatMap(([event, targets]) =>
      (targets === done ? [] : [targets].flat()).map((to): Edge => ({ from, event, to, state: 'open' })),
    ),
  )
}

type Standing = 'undecided' | 'active' | 'waiting' | 'ended' | 'dead'

class GraphProgram implements Program {
  readonly policy: RetryPolicy
  readonly isNew = false
  readonly work = new Map<string, Work>()
  readonly timers = new Map<string, Timer>()
  private readonly options: GraphOptions
  private readonly edges: readonly Edge[]
  private readonly standings: Map<string, Standing>
  /** The attempt that began to wait, of each step that does. */
  private readonly waits = new Map<string, AttemptMeta>()
  private readonly data: Record<string, unknown> = {}
  private input: unknown
  private failure: { readonly failure: unknown; readonly cause: number } | null = null

  constructor(options: GraphOptions, policy: RetryPolicy) {
    this.options = options
    this.policy = policy
    this.edges = edgesOf(options)
    this.standings = new Map(Object.keys(options.steps).map((name) => [name, 'undecided']))
  }

  get outcome(): Outcome | null {
    if (this.failure !== null) return this.failure
    const standings = [...this.standings.values()]
    if (standings.some((standing) => standing === 'active' || standing === 'waiting')) return null
    if (!standings.includes('undecided')) return { output: this.data }
    return { failure: new Error('Nothing leads to some steps of the graph but a circle.'), cause: null }
  }

  apply(entry: Applied): void {
    switch (entry.kind) {
      case 'started':
      case 'continued':
        this.input = entry.value
        return this.activate(this.options.start)
      case 'waiting':
        this.waits.set(entry.name, { attempt: (this.work.get(entry.name)?.failures ?? 0) + 1, ms: 0 })
        return this.become(entry.name, 'waiting')
      case 'step-succeeded':
        this.data[entry.name] = entry.value
        this.become(entry.name, 'ended')
        return this.leave(entry.name, entry.meta.event ?? null)
      case 'step-failed':
        this.become(entry.name, 'ended')
        this.failure = { failure: entry.value, cause: entry.seq }
        return
      default:
        return
    }
  }

  private activate(name: string): void {
    this.standings.set(name, 'active')
    const step = this.options.steps[name]
    const context: GraphContext = { input: this.input, steps: this.data }
    this.work.set(
      name,
      newWork(name, (tools) => step?.perform(context, tools)),
    )
  }

  private become(name: string, standing: Standing): void {
    this.standings.set(name, standing)
    this.work.delete(name)
  }

  /** A step has ended with an event, or is dead: its edges are decided, and with them perhaps other steps. */
  private leave(name: string, event: string | null): void {
    const leaving = this.edges.filter(({ from }) => from === name)
    for (const edge of leaving) edge.state = edge.event === event ? 'live' : 'dead'
    for (const to of new Set(leaving.map((edge) => edge.to))) this.settle(to)
  }

  private settle(name: string): void {
    const incoming = this.edges.filter(({ to }) => to === name)
    if (this.standings.get(name) !== 'undecided' || incoming.some(({ state }) => state === 'open')) return
    if (incoming.some(({ state }) => state === 'live')) return this.activate(name)
    this.become(name, 'dead')
    this.leave(name, null)
  }

  decide(occasion: Occasion, now: number): readonly Proposal[] | null {
    switch (occasion.kind) {
      case 'performed': {
        const { work, meta, value } = occasion
        if (value === waiting) return [waitFor(work.name)]
        return [this.ended(work.name, meta, value as Ended)]
      }
      case 'gave-up':
        return [{ kind: 'step-failed', name: occasion.work.name, meta: occasion.meta, error: occasion.error }]
      case 'message': {
        const { name, at } = occasion.message
        const began = this.waits.get(name)
        if (began === undefined || this.standings.get(name) !== 'waiting') return null
        const ended = this.ended(name, began, occasion.read() as Ended)
        return [{ kind: 'woken', name, meta: { winner: 'resumed', trueAt: at, seenAt: now } }, ended]
      }
      default:
        return null
    }
  }

  refuse(occasion: Occasion, error: unknown): readonly Proposal[] {
    if (occasion.kind !== 'performed') {
      return [
        { kind: 'logged', name: 'refused', meta: null, value: error instanceof Error ? error.message : String(error) },
      ]
    }
    return [{ kind: 'step-failed', name: occasion.work.name, meta: occasion.meta, error }]
  }

  private ended(name: string, meta: AttemptMeta, ended: Ended): Proposal {
    const { event, data = null } = typeof ended === 'string' ? { event: ended } : ended
    if (this.options.steps[name]?.events.includes(event) !== true) {
      throw new Error(`Step "${name}" cannot end with the event "${event}": it does not declare it.`)
    }
    return { kind: 'step-succeeded', name, meta: { ...meta, event }, value: data }
  }
}

function waitFor(name: string): Proposal {
  return { kind: 'waiting', name, meta: { conditions: [{ tag: 'resumed', kind: 'signal', name }] } }
}
