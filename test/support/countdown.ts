// One program, played from beginning to end in virtual time, with a fault at exactly one call of the store. An operator starts
// and controls the run and repeats what is not answered; a process that does not come back is replaced by another one.

import { createHoldfast, isHoldfastError, type Holdfast, type HoldfastOptions } from 'holdfast'
import {
  createSeededRandom,
  createVirtualClock,
  faultAtCall,
  silentLogger,
  withFaults,
  type FaultAtCallOptions,
  type FaultKind,
  type VirtualClock,
} from 'holdfast/testing'
import type { Entry } from '../../src/core/model/entry.ts'
import { isTerminal } from '../../src/core/model/run.ts'
import { MemoryStore } from '../../src/stores/memory/store.ts'

export interface Program {
  readonly name: string
  readonly workflows: (tools: Tools) => NonNullable<HoldfastOptions['workflows']>
  /** What an operator does, and with which runs. */
  readonly play: (person: Person) => Promise<void>
  readonly runIds: readonly string[]
  /** An operator interferes, and a fault may make that come at another point of the run: then it may take another way. */
  readonly isSteered?: boolean
  /** How often each of its runs ends: more than once if it is retried afterwards. @default 1 */
  readonly endings?: number
}

/** What the functions of steps work with. */
export interface Tools {
  readonly clock: VirtualClock
  readonly pause: (ms: number) => Promise<void>
  /** Something happens in the world. */
  readonly effect: (what: string) => void
  /** How often that has happened. */
  readonly times: (what: string) => number
}

export interface Person extends Tools {
  /** Asks for something until it is answered. */
  readonly ask: <Answer>(what: (holdfast: Holdfast) => Promise<Answer>) => Promise<Answer>
  /** Lets time pass until something has happened in the world. */
  readonly until: (what: string) => Promise<void>
  readonly status: (runId: string) => Promise<string | undefined>
  /** Lets time pass until a run has one of these statuses. */
  readonly untilStatus: (runId: string, ...statuses: readonly string[]) => Promise<void>
}

export interface Fault {
  readonly n: number
  readonly kind: FaultKind
  readonly options: FaultAtCallOptions
}

export interface Played {
  /** The fault came. */
  readonly isReached: boolean
  /** Which call it befell. */
  readonly befallen: string | null
  /** A process had to be replaced. */
  readonly replaced: boolean
  readonly effects: readonly string[]
  readonly runs: readonly { readonly status: string | undefined; readonly journal: readonly Essence[] }[]
}

/** A person waits so long for an answer. */
const patience = '1 min'
/** After this, the operator starts it anew. */
const standstill = '3 min'

class World {
  readonly clock = createVirtualClock()
  readonly store = new MemoryStore({ clock: this.clock })
  readonly effects: string[] = []
  replaced = false
  befallen: string | null = null
  private readonly plan: ReturnType<typeof faultAtCall>
  private readonly workflows: NonNullable<HoldfastOptions['workflows']>
  private processes = 0
  private current: { holdfast: Holdfast | null; isWorking: boolean; isOver: boolean } | null = null

  constructor(program: Program, { n, kind, options }: Fault) {
    this.plan = faultAtCall(n, kind, options)
    this.workflows = program.workflows(this.tools)
  }

  get isReached(): boolean {
    return this.plan.isReached
  }

  get tools(): Tools {
    const { clock, effects } = this
    return {
      clock,
      pause: (ms) => new Promise((resolve) => void clock.after(ms, resolve)),
      effect: (what) => void effects.push(what),
      times: (what) => effects.filter((effect) => effect === what).length,
    }
  }

  get person(): Person {
    return {
      ...this.tools,
      ask: (what) => this.ask(what),
      until: async (what) => {
        if (await this.passes(() => this.effects.includes(what))) return
        throw new Error(`"${what}" did not happen`)
      },
      status: (runId) => this.status(runId),
      untilStatus: async (runId, ...statuses) => {
        for (let turn = 0; turn < 80; turn += 1) {
          if (statuses.includes(String(await this.status(runId)))) return
          await this.clock.advance('5s')
          if (turn !== 40) continue
          this.replace()
          await this.ask(async () => undefined)
        }
        throw new Error(`The run did not become ${statuses.join(' or ')}`)
      },
    }
  }

  private async status(runId: string): Promise<string | undefined> {
    return (await this.store.get([runId]))[0]?.status
  }

  /** Lets time pass until something is so. A process that stands still, or that is dead, is replaced once. */
  async passes(isSo: () => boolean): Promise<boolean> {
    if (await this.clock.runUntil(isSo, standstill)) return true
    this.replace()
    await this.ask(async () => undefined)
    return this.clock.runUntil(isSo, standstill)
  }

  /** Asks until there is an answer. An error of the store says nothing of whether it happened. */
  async ask<Answer>(what: (holdfast: Holdfast) => Promise<Answer>): Promise<Answer> {
    for (let tries = 0; tries < 5; tries += 1) {
      const call = this.working().then(what)
      let [isSettled, isAway] = [false, false]
      call.then(
        () => (isSettled = true),
        (error: unknown) => {
          isSettled = true
          isAway = !isHoldfastError(error) || error.family === 'unavailable'
        },
      )
      if (!(await this.clock.runUntil(() => isSettled, patience))) this.replace()
      else if (!isAway) return call
    }
    throw new Error('Nobody answers, however often one asks')
  }

  /** The process at work, which is begun if there is none. */
  private async working(): Promise<Holdfast> {
    const process = (this.current ??= { holdfast: null, isWorking: false, isOver: false })
    process.holdfast ??= await this.begin(process)
    if (!process.isWorking) {
      await process.holdfast.work({ signals: false })
      process.isWorking = true
    }
    return process.holdfast
  }

  private begin(process: { readonly isOver: boolean }): Promise<Holdfast> {
    const { clock, workflows, plan } = this
    const faulty = withFaults(this.store, plan, { clock }, (method) => (this.befallen = method))
    // What a dead process does reaches nobody, and nobody answers it.
    const outbound = new Proxy(faulty, {
      get(target, key) {
        const value: unknown = Reflect.get(target, key)
        if (typeof value !== 'function') return value
        const call = value as (...request: unknown[]) => Promise<unknown>
        return (...request: unknown[]): Promise<unknown> => {
          if (process.isOver) return new Promise(() => undefined)
          return call(...request).then((answer) => (process.isOver ? new Promise(() => undefined) : answer))
        }
      },
    })
    const random = createSeededRandom((this.processes += 1))
    return createHoldfast({ store: outbound, workflows, logger: silentLogger, ports: { clock, random } })
  }

  private replace(): void {
    this.replaced = true
    if (this.current !== null) this.current.isOver = true
    this.current = null
  }
}

export async function play(program: Program, fault: Fault): Promise<Played> {
  const world = new World(program, fault)
  const { store } = world
  const over: string[] = []
  await store.listen((hint) => hint.kind === 'ended' && void over.push(hint.runId))
  await program.play(world.person)
  const { runIds, endings = 1 } = program
  const ended = await world.passes(() => runIds.every((id) => over.filter((other) => other === id).length >= endings))
  const rows = await store.get(runIds)
  const loaded = await store.load(runIds.map((runId) => ({ runId, after: 0, limit: 10_000 })))
  await store.close()
  const runs = rows.map((run, index) => ({
    status: run?.status,
    journal: (loaded[index]?.entries ?? []).filter(isLasting).map(essence),
  }))
  if (!ended) {
    const live = JSON.stringify(rows.filter((run) => run !== undefined && !isTerminal(run.status)))
    throw new Error(`A run did not come to its end: ${live}`)
  }
  const { isReached, befallen, replaced, effects } = world
  return { isReached, befallen, replaced, effects, runs }
}

/** Attempts and crashes show the way, not of what came of it. */
function isLasting({ kind }: Entry): boolean {
  return kind !== 'crashed' && kind !== 'attempt-failed' && kind !== 'undo-attempt-failed'
}

/** What must be the same whatever happened on the way: not when, at which place, and at which attempt. */
export interface Essence {
  readonly kind: string
  readonly name: string | null
  readonly meta: unknown
  readonly data: string | null
}

function essence({ kind, name, meta, data }: Entry): Essence {
  const kept = Object.entries(meta ?? {}).filter(([key]) => !passing.has(key))
  // What chance gave is the same for ever in one journal, but not in two.
  return { kind, name, meta: Object.fromEntries(kept), data: kind === 'recorded' ? null : withoutStack(data) }
}

/** A stack says who called, and that depends on the way. */
function withoutStack(data: string | null): string | null {
  return data?.replaceAll(/"stack":"(?:[^"\\]|\\.)*"/g, '"stack":""') ?? null
}

const passing = new Set(['attempt', 'ms', 'delayMs', 'trueAt', 'seenAt', 'cause', 'seq'])
