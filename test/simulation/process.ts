// One process of a simulation: a real Holdfast whose time, chance, order and way to the store belong to the world.
//
// A crash drops everything that the process waits for, for ever: nothing is rejected, because no `finally` runs after a
// kill. Its requests that are on their way reach the store all the same. A restart is a new Holdfast that shares nothing
// with the old one.

import { createScopes } from '../../src/async-scopes.ts'
import type { Cancel, Ports } from '../../src/core/runtime/ports.ts'
import { HoldfastError, isHoldfastError } from '../../src/core/errors/error.ts'
import type { Definition } from '../../src/core/definition/definition.ts'
import type { Lease, Run } from '../../src/core/model/run.ts'
import { createHoldfast, type Holdfast } from '../../src/holdfast.ts'
import type { Claimed, Committed, Hint, Started, Store } from '../../src/store.ts'
import { systemDigest } from '../../src/system.ts'
import { Draw } from './draw.ts'
import { programWorkflows, type Stagehand } from './program.ts'
import type { FaultKind, Skew, Swarm } from './scenario.ts'
import type { Owner, World } from './world.ts'

/** 1 January 2030. */
export const epoch = 1_893_456_000_000

/** Every call is followed. All processes share them: each would cost every promise of all that come after it. */
export const scopes = createScopes({ callsOfName: Infinity })

/** What goes from a process to the store. */
export type SimMethod = keyof Store | 'find'

/** What a process needs of the simulation that it lives in. */
export interface Surroundings {
  readonly seed: number
  readonly world: World
  readonly swarm: Swarm
  /** What goes wrong with the next call; null if nothing does. */
  fault(): FaultKind | null
  /** The request has reached the store. */
  perform(by: Incarnation, method: SimMethod, request: readonly unknown[]): Promise<unknown>
  listen(onHint: (hint: Hint) => void): Promise<() => void>
  stagehand(of: Incarnation): Stagehand
  readonly hasDeciders: boolean
  /** The deciders of a process, in seeds that have some. */
  deciders(of: Incarnation): readonly Definition[]
  /** Rejects an answer that nobody will get, when everything heals. */
  onHeal(call: () => void): void
  restarted(): void
  /** Something was thrown that nobody must expect. */
  unhandled(reason: unknown): void
}

/** A process between its start and its end. */
export interface Incarnation extends Owner {
  readonly process: SimProcess
  holdfast: Holdfast | null
  /** Its way to the store. */
  line: Store | null
  /** What it was last answered that it holds, by run. */
  readonly leases: Map<string, Lease>
}

export class SimProcess {
  readonly index: number
  readonly works: boolean
  current: Incarnation | null = null
  private readonly around: Surroundings
  private readonly skew: Skew
  private incarnations = 0

  constructor(around: Surroundings, index: number, works: boolean, skew: Skew) {
    this.around = around
    this.index = index
    this.works = works
    this.skew = skew
  }

  /** The Holdfast that is there for callers; null while the process is away or not up. */
  get holdfast(): Holdfast | null {
    return this.current?.isAlive === true ? this.current.holdfast : null
  }

  /** The way to the store, for what no client has a word for. */
  get line(): Store | null {
    return this.current?.isAlive === true ? this.current.line : null
  }

  boot(): void {
    this.incarnations += 1
    const incarnation: Incarnation = {
      process: this,
      label: `p${this.index}.${this.incarnations}`,
      isAlive: true,
      standsStillUntil: 0,
      holdfast: null,
      line: null,
      leases: new Map(),
    }
    this.current = incarnation
    this.open(incarnation).catch((error: unknown) => {
      // A supervisor watches over processes that cannot start.
      this.around.world.trace.add(() => `${incarnation.label} could not start: ${String(error)}`)
      if (!isHoldfastError(error, 'STORE_UNAVAILABLE')) this.around.unhandled(error)
      this.crash()
      this.around.world.after(200, null, 'boot', () => {
        if (this.current === incarnation) this.boot()
      })
    })
  }

  crash(): void {
    if (this.current !== null) this.current.isAlive = false
  }

  private async open(incarnation: Incarnation): Promise<void> {
    const { swarm } = this.around
    const { clock, turns, random, logger } = this.ports(incarnation)
    const workflows = [...programWorkflows(this.around.stagehand(incarnation)), ...this.around.deciders(incarnation)]
    const store = this.connect(incarnation)
    incarnation.line = store
    const holdfast = await createHoldfast({ store, workflows, logger, ports: { clock, turns, random, scopes } })
    if (this.works) {
      await holdfast.work({
        concurrency: swarm.slots,
        cachedRuns: swarm.parked,
        lease: swarm.leaseMs,
        inlineRetry: swarm.inlineRetryMs,
        shutdownTimeout: swarm.leaseMs,
        signals: false,
      })
    }
    incarnation.holdfast = holdfast
    if (this.incarnations > 1) this.around.restarted()
  }

  private ports(incarnation: Incarnation): Ports {
    const { world, seed } = this.around
    const { skew } = this
    const { rate } = skew
    const random = Draw.of(seed, 'engine', 64 * this.index + this.incarnations)
    const bootedAt = world.now
    const wall = (): number => {
      const swing = skew.swingMs * Math.sin((2 * Math.PI * world.now) / skew.swingEveryMs)
      const step = world.now >= skew.stepAtMs ? skew.stepMs : 0
      return Math.floor(epoch + world.now * rate + skew.offsetMs + step + swing)
    }
    const say =
      (level: string) =>
      (message: string, details?: Readonly<Record<string, unknown>>): void =>
        world.trace.add(() => `${incarnation.label} ${level}: ${message}${why(details)}`)
    return {
      clock: {
        now: wall,
        monotonic: () => (world.now - bootedAt) * rate,
        after(ms: number, wake: () => void): Cancel {
          const event = world.after(ms / rate, incarnation, 'timer', wake)
          return () => void (event.call = null)
        },
      },
      turns: { next: (call) => void world.after(0, incarnation, 'turn', call) },
      random,
      digest: systemDigest,
      logger: { debug: () => undefined, info: () => undefined, warn: say('warns'), error: say('cries') },
    }
  }

  /** The way to the store: two points at which others may come in between. */
  private connect(incarnation: Incarnation): Store {
    const { swarm } = this.around
    const call =
      (method: SimMethod) =>
      (...request: unknown[]): Promise<never> =>
        this.call(incarnation, method, request) as Promise<never>
    return {
      capabilities: { notifies: swarm.hints.sent, multiProcess: true },
      migrate: call('migrate'),
      start: this.inChunks(call('start')),
      claim: call('claim'),
      load: call('load'),
      commit: this.inChunks(call('commit')),
      deliver: call('deliver'),
      control: call('control'),
      beat: call('beat'),
      rescue: call('rescue'),
      release: call('release'),
      doChores: call('doChores'),
      get: call('get'),
      changes: call('changes'),
      listen: (onHint) => this.listen(incarnation, onHint),
      close: () => Promise.resolve(),
      // Deciders look for their instances.
      ...(this.around.hasDeciders ? { find: call('find'), count: call('find') } : {}),
    }
  }

  /** Sends what goes together in smaller parts, so that one of them may fail after another took effect. */
  private inChunks<Item, Answer>(send: (items: readonly Item[]) => Promise<readonly Answer[]>): typeof send {
    const { batch } = this.around.swarm
    return async (items) => {
      if (batch === null || items.length <= batch) return send(items)
      const answers: Answer[] = []
      for (let from = 0; from < items.length; from += batch) {
        answers.push(...(await send(items.slice(from, from + batch))))
      }
      return answers
    }
  }

  private listen(incarnation: Incarnation, onHint: (hint: Hint) => void): Promise<() => void> {
    const { world, swarm } = this.around
    return this.around.listen((hint) => {
      if (!incarnation.isAlive || world.schedule.chance(swarm.hints.lost)) return
      world.after(this.latency(), incarnation, 'hint', () => onHint({ ...hint }))
    })
  }

  private call(incarnation: Incarnation, method: SimMethod, given: readonly unknown[]): Promise<unknown> {
    const { around } = this
    const { world, swarm } = around
    const request = world.trace.carry(given)
    const fault = around.fault()
    const slowMs = fault === 'slow' ? world.schedule.between(0, 2 * swarm.leaseMs) : 0
    const isSlowThere = slowMs > 0 && world.schedule.chance(0.5)
    const trace = (what: string): void =>
      world.trace.add(() => `${world.now.toFixed(1)} ${incarnation.label} ${what} ${method}`)
    return new Promise((resolve, reject) => {
      const reply = (ms: number, settle: () => void): void =>
        void world.after(ms + this.latency(), incarnation, method, settle)
      const refuse = (): void => reject(unavailable(method, fault))
      world.after(this.latency() + (isSlowThere ? slowMs : 0), null, method, () => {
        if (fault === 'before') {
          trace('fails before')
          return reply(0, refuse)
        }
        around.perform(incarnation, method, request).then(
          (answer) => {
            const carried = world.trace.carry(answer)
            if (fault !== null) trace(`gets fault "${fault}" after`)
            if (fault === 'after') return reply(0, refuse)
            if (fault === 'lost') {
              around.onHeal(() => reply(0, refuse))
              return reply(world.schedule.between(1, 4) * swarm.leaseMs, refuse)
            }
            reply(isSlowThere ? 0 : slowMs, () => {
              learn(incarnation, method, carried)
              resolve(carried)
            })
          },
          (error: unknown) => reply(0, () => reject(error)),
        )
      })
    })
  }

  private latency(): number {
    return this.around.world.schedule.between(0, this.around.swarm.latencyMs)
  }
}

/** Takes note of the leases in an answer. */
function learn({ leases }: Incarnation, method: SimMethod, answer: unknown): void {
  const runs = leasedBy(method, answer)
  for (const { id, session, token } of runs) if (session !== null) leases.set(id, { session, token })
}

function leasedBy(method: SimMethod, answer: unknown): readonly Run[] {
  switch (method) {
    case 'claim':
      return (answer as Claimed).runs
    case 'start':
      return (answer as readonly Started[]).flatMap(({ created, run, leased = [] }) =>
        created ? [run, ...leased] : [],
      )
    case 'commit':
      return (answer as readonly Committed[]).flatMap((one) => (one.outcome === 'committed' ? (one.leased ?? []) : []))
    default:
      return []
  }
}

function unavailable(method: SimMethod, fault: FaultKind | null): HoldfastError {
  return new HoldfastError('STORE_UNAVAILABLE', `The store did not answer ${method}.`, { details: { fault } })
}

function why(details: Readonly<Record<string, unknown>> | undefined): string {
  const error = details?.['error']
  return error instanceof Error ? ` (${error.message.slice(0, 160)})` : ''
}
