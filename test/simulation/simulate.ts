// One simulation: several processes on one store, in virtual time, under a scenario. First chaos, then everything heals,
// and every run must come to its right end within a bound.

import { defaultPageLimits } from '../../src/core/model/chore.ts'
import { tinyPages } from './tiny-pages.ts'
import { isTerminal } from '../../src/core/model/run.ts'
import type { Change, Hint, Store } from '../../src/store.ts'
import type { Mutation as PlanMutation } from '../read-committed/database/call.ts'
import { createReadCommittedStore } from '../read-committed/store.ts'
import { MemoryStore } from '../../src/stores/memory/store.ts'
import { Checker } from './checker.ts'
import { Draw } from './draw.ts'
import { withQuirks } from './store-quirks.ts'
import { Effects } from './effects.ts'
import { longestMs } from './interpreter.ts'
import { Operator } from './operator.ts'
import { forbidAmbient } from './ambient-guard.ts'
import { epoch, SimProcess, type Incarnation, type Surroundings } from './process.ts'
import type { Stagehand } from './program.ts'
import { faultKinds, type Blow, type FaultKind, type Isolation, type Scenario, type Swarm } from './scenario.ts'
import { instancesOf, type Instances } from './instances.ts'
import { isOfInstances } from './instance-journal.ts'
import { Strangers } from './strangers.ts'
import { Trace } from './trace.ts'
import { checkEnd } from './final-checks.ts'
import type { Violation } from '../../src/testing/invariants/index.ts'
import { World } from './world.ts'

/**
 * A planted bug: a serial store that does something wrong, a wrong statement of a read-committed one, or an engine that does
 * something wrong, which is put right again with what `engine` gives back.
 */
export type Mutation = StoreMutation | { readonly plan: PlanMutation } | { readonly engine: () => () => void }

export type StoreMutation = (store: MemoryStore, clock: { now(): number }) => Store

export interface Outcome {
  readonly violations: readonly Violation[]
  readonly hash: string
  readonly isolation: Isolation
  readonly events: number
  readonly storeCalls: number
  readonly virtualMs: number
  readonly faults: Readonly<Record<FaultKind, number>>
  readonly crashes: number
  readonly restarts: number
  readonly standstills: number
  readonly runs: number
  readonly effects: number
  readonly story: readonly string[]
}

export interface SimulateOptions {
  readonly mutation?: Mutation | undefined
  readonly keepsStory?: boolean
}

/** How long a run may take after everything has healed, besides what its program takes. */
const graceMs = 90_000

export async function simulate(scenario: Scenario, options: SimulateOptions = {}): Promise<Outcome> {
  const simulation = new Simulation(scenario, options)
  const banned = forbidAmbient()
  const { stackTraceLimit } = Error
  // Stacks name this machine, stand in journals and are a third of the cost: only a story has them.
  Error.stackTraceLimit = options.keepsStory === true ? 12 : 0
  const onRejection = (reason: unknown): void => simulation.unhandled(reason)
  process.on('unhandledRejection', onRejection)
  const { mutation } = options
  const repair = mutation !== undefined && 'engine' in mutation ? mutation.engine() : null
  try {
    await simulation.run()
  } finally {
    repair?.()
    banned.lift()
    Error.stackTraceLimit = stackTraceLimit
    process.off('unhandledRejection', onRejection)
  }
  for (const what of banned.asked) {
    simulation.checker.report({ name: 'no_ambient_time_or_chance', runId: null, message: what })
  }
  return simulation.outcome()
}

function isolationOf(mutation: Mutation | undefined, { isolation }: Scenario): Isolation {
  if (mutation === undefined || 'engine' in mutation) return isolation
  return 'plan' in mutation ? 'read committed' : 'serial'
}

class Simulation implements Surroundings {
  readonly seed: number
  readonly swarm: Swarm
  readonly world: World
  readonly checker: Checker
  private readonly scenario: Scenario
  private readonly trace: Trace
  private readonly store: Store
  private readonly isolation: Isolation
  /** Only a read-committed store has rows that a stranger can hold. */
  private readonly strangers: Strangers | null
  private readonly effects: Effects
  private readonly processes: readonly SimProcess[]
  private readonly operator: Operator
  private readonly instances: Instances | null
  private readonly faultDraw: Draw
  private readonly faults: Record<FaultKind, number> = { before: 0, after: 0, slow: 0, lost: 0 }
  private readonly healings: (() => void)[] = []
  private isHealed = false
  private storeCalls = 0
  private crashes = 0
  private restarts = 0
  private standstills = 0

  constructor(scenario: Scenario, { mutation, keepsStory = false }: SimulateOptions) {
    this.scenario = scenario
    this.seed = scenario.seed
    this.swarm = scenario.swarm
    this.trace = new Trace(keepsStory)
    this.world = new World(scenario.seed, this.trace)
    const clock = { now: () => epoch + Math.floor(this.world.now) }
    const quirks = Draw.of(scenario.seed, 'quirks')
    const asked = isolationOf(mutation, scenario)
    const pages = scenario.seed % 2 === 1 ? tinyPages : defaultPageLimits
    this.isolation = asked
    if (asked === 'read committed') {
      const mutations = new Set(mutation !== undefined && 'plan' in mutation ? [mutation.plan] : [])
      const schedule = (statement: string): Promise<void> => this.statement(statement)
      const store = createReadCommittedStore({ clock, schedule, mutations, pages })
      this.store = withQuirks(store, quirks, scenario.seed)
      this.checker = new Checker(store, clock.now)
      this.strangers = new Strangers(this.world, store, { now: clock.now, report: this.checker.report })
    } else {
      const memory = new MemoryStore({ clock, pages })
      this.store = withQuirks(typeof mutation === 'function' ? mutation(memory, clock) : memory, quirks, scenario.seed)
      this.checker = new Checker(memory, clock.now)
      this.strangers = null
    }
    this.effects = new Effects(this.checker, this.checker.report)
    this.faultDraw = Draw.of(scenario.seed, 'faults')
    const { workers, skews } = this.swarm
    this.processes = skews.map((skew, index) => new SimProcess(this, index, index < workers, skew))
    this.operator = new Operator(scenario, this.world, this.processes, this.checker)
    this.instances = instancesOf(scenario, this.world, this.processes, this.checker)
  }

  async run(): Promise<void> {
    const { world, scenario, processes, operator } = this
    for (const process of processes) process.boot()
    operator.schedule()
    this.strangers?.schedule(scenario.strangers)
    this.instances?.schedule(scenario.chaosMs)
    for (const blow of scenario.blows) world.after(blow.at, null, blow.kind, () => this.strike(blow))
    const isBroken = (): boolean => {
      // Asked between any two events.
      if (this.checker.catchUp()) this.changed()
      return this.checker.violations.length > 0
    }
    await world.run(isBroken, scenario.chaosMs)
    if (isBroken()) return
    this.checker.checkFleet()
    this.heal()
    // Strangers who want one row wait for one another, and may have it long after they came.
    const lockedMs = scenario.strangers.reduce((sum, { ms }) => sum + ms, 0)
    const boundMs = scenario.programs.reduce((sum, program) => sum + longestMs(program), graceMs + lockedMs)
    const until = world.now + boundMs
    do {
      await world.run(() => isBroken() || this.isAtRest, until)
      // A process that stood still or was slow may come back now, and must find the doors closed, or start something new.
      await world.run(isBroken, world.now + 2 * this.swarm.leaseMs)
    } while (!isBroken() && !this.isAtRest && world.now < until)
    if (isBroken()) return
    checkEnd(scenario, this.checker, this.effects, operator)
    this.instances?.checkEnd()
    this.checker.checkFeed(await this.readFeed())
  }

  /** Everything that the feed lists, when nobody writes any more. */
  private async readFeed(): Promise<readonly Change[]> {
    const { world } = this
    const read: { changes: readonly Change[] | null } = { changes: null }
    void this.store.changes(0, 1_000_000).then((changes) => (read.changes = changes))
    await world.run(() => read.changes !== null, world.now + graceMs)
    return read.changes ?? []
  }

  unhandled(reason: unknown): void {
    const shown = reason instanceof Error ? (reason.stack ?? reason.message) : String(reason)
    this.checker.report({ name: 'no_unhandled_rejection', runId: null, message: shown })
  }

  outcome(): Outcome {
    const { trace, world, checker } = this
    return {
      violations: checker.violations,
      hash: trace.hash,
      isolation: this.isolation,
      events: trace.events,
      storeCalls: this.storeCalls,
      virtualMs: world.now,
      faults: this.faults,
      crashes: this.crashes,
      restarts: this.restarts,
      standstills: this.standstills,
      runs: checker.runs.size,
      effects: this.effects.all.length,
      story: trace.lines ?? [],
    }
  }

  private get isAtRest(): boolean {
    if (!this.operator.isDone) return false
    for (const { run } of this.checker.runs.values()) {
      // A removed run goes on until its holder leaves it.
      const isRemoved = run.deletedAt !== null && run.session === null
      if (!isTerminal(run.status) && !isRemoved && !isOfInstances(run.type)) return false
    }
    return this.checker.choresLeft.length === 0 && this.instances?.isAtRest !== false
  }

  private changed(): void {
    this.effects.changed()
    this.instances?.check()
  }

  private strike(blow: Blow): void {
    const process = this.processes[blow.process]
    const current = process?.current
    if (process === undefined || current?.isAlive !== true || this.isHealed) return
    this.trace.add(() => `${this.world.now.toFixed(1)} ${current.label}: ${blow.kind}`)
    if (blow.kind === 'stand-still') {
      this.standstills += 1
      current.standsStillUntil = Math.max(current.standsStillUntil, this.world.now + blow.ms)
      return
    }
    if (blow.kind === 'crash') return this.kill(process, current, blow.backAfterMs)
    const { holdfast } = current
    if (holdfast === null) return
    current.holdfast = null
    holdfast.close().then(
      () => {
        this.restarts += 1
        this.bury(process, current, blow.backAfterMs)
      },
      (error: unknown) => this.unhandled(error),
    )
  }

  private kill(process: SimProcess, current: Incarnation, backAfterMs: number): void {
    this.crashes += 1
    this.bury(process, current, backAfterMs)
  }

  /** Nothing reaches a process any more, until it is begun anew. */
  private bury(process: SimProcess, current: Incarnation, backAfterMs: number): void {
    current.isAlive = false
    this.effects.died(current)
    this.world.after(backAfterMs, null, 'boot', () => {
      if (process.current === current) process.boot()
    })
  }

  private heal(): void {
    const { world } = this
    this.isHealed = true
    this.trace.add(() => `${world.now.toFixed(1)} everything heals`)
    for (const call of this.healings.splice(0)) call()
    for (const process of this.processes) {
      if (process.current?.isAlive !== true) process.boot()
    }
    this.operator.heal()
    this.strangers?.leave()
  }

  fault(): FaultKind | null {
    if (this.isHealed) return null
    const { faults } = this.swarm
    let roll = this.faultDraw.fraction()
    for (const kind of faultKinds) {
      if (roll < faults[kind]) {
        this.faults[kind] += 1
        return kind
      }
      roll -= faults[kind]
    }
    return null
  }

  async perform(by: Incarnation, method: keyof Store, request: readonly unknown[]): Promise<unknown> {
    const { store, checker, world } = this
    this.storeCalls += 1
    checker.sent(method, request)
    try {
      const call = store[method] as (...given: readonly unknown[]) => Promise<unknown>
      const asked = (): Promise<unknown> => call.apply(store, request as unknown[])
      const answer = await (this.strangers?.around(method, request, asked) ?? asked())
      checker.after(method, request, answer)
      this.changed()
      this.trace.add(() => `${world.now.toFixed(1)} ${by.label} ${method} ${shown(request)} → ${shown(answer)}`)
      return answer
    } catch (error) {
      checker.threw(method, error)
      throw error
    }
  }

  /** A statement takes its time, in which those of others come. */
  private statement(name: string): Promise<void> {
    const { world, checker, swarm } = this
    return new Promise((resolve) => {
      world.after(world.schedule.between(0, swarm.latencyMs / 2), null, name, () => {
        checker.executes(name)
        resolve()
      })
    })
  }

  listen(onHint: (hint: Hint) => void): Promise<() => void> {
    return this.store.listen(onHint)
  }

  onHeal(call: () => void): void {
    if (this.isHealed) call()
    else this.healings.push(call)
  }

  restarted(): void {
    this.restarts += 1
  }

  stagehand(of: Incarnation): Stagehand {
    const { world, effects, scenario } = this
    return {
      program: (index) => scenario.programs[index] as Scenario['programs'][number],
      pause: (ms, signal) =>
        new Promise((resolve, reject) => {
          const refuse = (): void => reject(new Error('asked to stop', { cause: signal?.reason }))
          if (signal?.aborted === true) return refuse()
          const { rate } = this.swarm.skews[of.process.index] ?? { rate: 1 }
          const event = world.after(ms / rate, of, 'step', () => {
            signal?.removeEventListener('abort', stop)
            resolve()
          })
          const stop = (): void => {
            event.call = null
            refuse()
          }
          signal?.addEventListener('abort', stop, { once: true })
        }),
      die: () => {
        this.kill(of.process, of, 100)
        return new Promise(() => undefined)
      },
      begun: (runId, step) => effects.begun(runId, step),
      begins: (beginning) => {
        this.trace.text(beginning.key)
        this.trace.add(
          () =>
            `${world.now.toFixed(1)} ${of.label} begins to ${beginning.kind} ${beginning.step} of ${short(beginning.runId)}`,
        )
        return effects.begins(of, beginning)
      },
      ends: (n, isDone) => effects.ends(n, isDone),
      took: (taken) => effects.took(of, taken),
      saw: ({ runId, n, step }) => {
        const known = this.checker.run(runId)
        const recorded = known?.entries.findLast(
          (entry) =>
            entry.kind === 'step-succeeded' && entry.seq >= known.run.base && entry.data.includes(`"s":"${step}"`),
        )
        const lease = of.leases.get(runId)
        const isHeld = lease !== undefined && known?.run.session === lease.session && known.run.token === lease.token
        if (isHeld && recorded !== undefined && !(recorded.data ?? '').includes(`"n":${n}}`)) {
          const shown = `${step} gave ${n}, recorded is ${recorded.data}`
          this.checker.report({ name: 'recorded_is_returned', runId, message: shown })
        }
      },
    }
  }
}

function short(id: string): string {
  return id.slice(-6)
}

const mostShown = 400

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? 'undefined'
  const plain = text.replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-([0-9a-f]{12})/g, (_, tail: string) =>
    tail.slice(-6),
  )
  return plain.length > mostShown ? `${plain.slice(0, mostShown)}…` : plain
}
