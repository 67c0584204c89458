// A bench for the replay machine of durable functions. It opens frames on a real memory store with a clock that only the
// test moves, real turns of the event loop and seeded chance. Steps that are gated end when, and in the order in which,
// the test says so; between two such events the rig waits until nothing moves any more. Nothing here sleeps.

import { jsonCodec, type Codec } from '../../src/core/codec.ts'
import type { Claim, Definition, Departure, Frame, Host } from '../../src/core/definition.ts'
import type { Draft, Entry } from '../../src/core/entry.ts'
import { Payloads, type Offload } from '../../src/core/payload.ts'
import type { Cancel, Clock, Ports, Random } from '../../src/core/ports.ts'
import type { Run } from '../../src/core/run.ts'
import type { Transition } from '../../src/core/transition.ts'
import { createCommitter } from '../../src/engine/committer.ts'
import type { StepTools } from '../../src/functions/attempt.ts'
import { MemoryStore } from '../../src/stores/memory/store.ts'

/** A clock that stands still until it is moved. */
export class VirtualClock implements Clock {
  private time: number
  private timers: { readonly at: number; readonly order: number; readonly wake: () => void }[] = []
  private made = 0

  constructor(time = 1_800_000_000_000) {
    this.time = time
  }

  now(): number {
    return this.time
  }

  monotonic(): number {
    return this.time
  }

  after(ms: number, wake: () => void): Cancel {
    const timer = { at: this.time + Math.max(0, Math.ceil(ms)), order: (this.made += 1), wake }
    this.timers.push(timer)
    return () => {
      this.timers = this.timers.filter((other) => other !== timer)
    }
  }

  /** When the next timer goes off; null if there is none. */
  get nextAt(): number | null {
    return this.timers.length === 0 ? null : Math.min(...this.timers.map(({ at }) => at))
  }

  /** Moves to a point in time and sets off, in order, what is due then. A point in the past sets off what is due now. */
  moveTo(time: number): void {
    this.time = Math.max(this.time, time)
    const due = this.timers.filter(({ at }) => at <= this.time).sort((a, b) => a.at - b.at || a.order - b.order)
    for (const timer of due) {
      if (!this.timers.includes(timer)) continue
      this.timers = this.timers.filter((other) => other !== timer)
      timer.wake()
    }
  }
}

/** The same numbers for the same seed. */
function seededRandom(seed: number): Random {
  let state = seed >>> 0
  return {
    uint32() {
      state = (state + 0x6d2b79f5) >>> 0
      let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
      mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
      return (mixed ^ (mixed >>> 14)) >>> 0
    },
  }
}

/** One attempt of a gated step, which ends when the test says so. */
export interface Gate {
  readonly step: string
  readonly attempt: number
  readonly tools: StepTools
  succeed(value?: unknown): void
  fail(error: unknown): void
}

export interface RigOptions {
  readonly seed?: number
  readonly time?: number
  readonly codec?: Codec
  readonly offload?: Offload
  readonly inlineRetryMs?: number
  /** Called with each transition before the store gets it; may throw in the store's stead. */
  readonly onCommit?: (transition: Transition) => void
}

export interface Line {
  readonly level: 'debug' | 'info' | 'warn' | 'error'
  readonly message: string
}

const session = 'rig'

export class FunctionRig {
  readonly clock: VirtualClock
  readonly store: MemoryStore
  readonly ports: Ports
  readonly host: Host
  readonly payloads: Payloads
  readonly lines: Line[] = []
  /** What reached the store, in order, each with what was asked of it in one. */
  readonly commits: Transition[] = []
  /** How many turns the frames have had. */
  turns = 0
  private gatesMade: Gate[] = []
  private activity = 0
  private ids = 0
  private readonly committed = new Map<string, number>()

  constructor(options: RigOptions = {}) {
    this.clock = new VirtualClock(options.time)
    this.store = new MemoryStore({ clock: this.clock })
    this.ports = this.makePorts(options.seed ?? 1)
    this.payloads = new Payloads(options.codec ?? jsonCodec(), options.offload)
    const commit = async (transitions: readonly Transition[]) => {
      this.activity += 1
      for (const transition of transitions) options.onCommit?.(transition)
      const answers = await this.store.commit(transitions)
      this.commits.push(...transitions)
      transitions.forEach(({ runId }, index) => {
        const answer = answers[index]
        if (answer?.outcome === 'committed') this.committed.set(runId, answer.seq)
      })
      return answers
    }
    const committer = createCommitter({ commit }, this.ports)
    this.host = {
      ports: this.ports,
      payloads: this.payloads,
      services: {},
      inlineRetryMs: options.inlineRetryMs ?? 1_000,
      heartbeat: () => undefined,
      now: () => this.clock.now(),
      transitionId: () => `t${(this.ids += 1)}`,
      commit: (transition) => committer.submit(transition),
    }
  }

  /** Inserts a run that is leased at once and opens its frame. */
  async start(definition: Definition, input: unknown = null): Promise<Held> {
    const id = this.nextRunId()
    const data = await this.payloads.keep(this.encode(id, input), { runId: id, seq: 1, name: null })
    const first: Draft = { kind: 'started', name: null, meta: null, data }
    const { run } = await this.insert(definition, id, first)
    const entries = await this.journal(id)
    return new Held(this, definition, { run, lease: { session, token: 1 }, entries })
  }

  /** Makes a run whose journal is what is given, as a process that died would have left it, and claims it. */
  async adopt(definition: Definition, entries: readonly Entry[]): Promise<Held> {
    const [first, ...rest] = entries
    if (first === undefined) throw new Error('A journal has at least its input')
    const id = this.nextRunId()
    this.clock.moveTo(first.at)
    await this.insert(definition, id, draftOf(first))
    const lease = { session, token: 1 }
    for (const entry of rest) {
      this.clock.moveTo(entry.at)
      const guard = { seq: entry.seq - 1, lease }
      const append = [draftOf(entry)]
      await this.store.commit([
        { id: `adopt${entry.seq}`, runId: id, guard, append, status: null, due: null, parkIf: null },
      ])
    }
    this.committed.set(id, entries.length)
    await this.store.release([{ ...lease, runId: id }])
    return new Held(this, definition, await this.claim(definition))
  }

  /** Leases the next run of that type to this rig. */
  async claim(definition: Definition): Promise<Claim> {
    const selectors = [{ type: definition.type, version: definition.version }]
    const { runs } = await this.store.claim({ session, selectors, limit: 1 })
    const [run] = runs
    if (run === undefined) throw new Error('There is nothing to claim')
    return { run, lease: { session, token: run.token }, entries: await this.journal(run.id) }
  }

  async run(runId: string): Promise<Run> {
    const [run] = await this.store.get([runId])
    if (run === undefined) throw new Error('There is no such run')
    return run
  }

  async journal(runId: string): Promise<readonly Entry[]> {
    const [loaded] = await this.store.load([{ runId, after: 0, limit: 100_000 }])
    return loaded?.entries ?? []
  }

  /** The last place of that run's journal which is durable. */
  committedSeq(runId: string): number {
    return this.committed.get(runId) ?? 1
  }

  /** The function of a step that ends when its gate is opened. */
  readonly gated = (tools: StepTools): Promise<unknown> =>
    new Promise((resolve, reject) => {
      this.activity += 1
      const step = decodeURIComponent(tools.idempotencyKey.split(':')[2] ?? '')
      this.gatesMade.push({ step, attempt: tools.attempt, tools, succeed: resolve, fail: reject })
    })

  /** Attempts that are running, in the order in which they began. */
  get gates(): readonly Gate[] {
    this.gatesMade = this.gatesMade.filter(({ tools }) => !tools.abortSignal.aborted)
    return this.gatesMade
  }

  /** Takes the gate of a running attempt. */
  gate(step: string): Gate {
    const gate = this.gates.find((other) => other.step === step)
    if (gate === undefined) {
      throw new Error(`Step "${step}" is not running. Running: ${this.gates.map((other) => other.step).join(', ')}`)
    }
    this.gatesMade = this.gatesMade.filter((other) => other !== gate)
    return gate
  }

  /** Lets a running attempt return, and everything that follows from it happen. */
  async succeed(step: string, value?: unknown): Promise<void> {
    this.gate(step).succeed(value)
    await this.quiet()
  }

  async fail(step: string, error: unknown): Promise<void> {
    this.gate(step).fail(error)
    await this.quiet()
  }

  /** Lets time pass, timer by timer, and everything that follows from each happen. */
  async pass(ms: number): Promise<void> {
    const until = this.clock.now() + ms
    for (let at = this.clock.nextAt; at !== null && at <= until; at = this.clock.nextAt) {
      this.clock.moveTo(at)
      await this.quiet()
    }
    this.clock.moveTo(until)
    await this.quiet()
  }

  /** A turn of the event loop in which something of the test is under way. */
  turn(): Promise<void> {
    this.activity += 1
    return new Promise((resolve) => setImmediate(resolve))
  }

  /** Settles when nothing moves any more by itself. */
  async quiet(): Promise<void> {
    for (let before = -1; before !== this.activity;) {
      before = this.activity
      for (let turn = 0; turn < 4; turn += 1) await new Promise((resolve) => setImmediate(resolve))
    }
  }

  private encode(runId: string, value: unknown): string {
    return this.payloads.encode(value, { runId, seq: 1, name: null })
  }

  private nextRunId(): string {
    return `01900000-0000-7000-8000-${(this.ids += 1).toString(16).padStart(12, '0')}`
  }

  private async insert(definition: Definition, id: string, first: Draft): Promise<{ readonly run: Run }> {
    const { type, version } = definition
    const lease = { session, token: 1 }
    const [started] = await this.store.start([
      {
        id,
        shard: 0,
        type,
        version,
        priority: 0,
        due: null,
        timeoutMs: null,
        expiresInMs: null,
        lease,
        leaseMs: null,
        transition: `start${id}`,
        first,
      },
    ])
    if (started === undefined) throw new Error('The store did not answer')
    return started
  }

  private makePorts(seed: number): Ports {
    const write = (level: Line['level']) => (message: string) => void this.lines.push({ level, message })
    return {
      clock: this.clock,
      random: seededRandom(seed),
      turns: {
        next: (call) => {
          this.activity += 1
          setImmediate(() => {
            this.turns += 1
            call()
          })
        },
      },
      logger: { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') },
    }
  }
}

/** A run that the rig holds: its frame, and how that departed. */
export class Held {
  readonly runId: string
  frame: Frame
  departure: Departure | null = null
  private readonly rig: FunctionRig
  private readonly definition: Definition

  constructor(rig: FunctionRig, definition: Definition, claim: Claim) {
    this.rig = rig
    this.definition = definition
    this.runId = claim.run.id
    this.frame = definition.open(rig.host, claim)
  }

  /** Lets the body begin, and go as far as it can by itself. */
  async begin(): Promise<this> {
    this.follow(this.frame.start())
    await this.rig.quiet()
    return this
  }

  /** Claims the run again when it is due: goes on in memory if that is possible and wanted, by a replay otherwise. */
  async goOn(how: 'in memory' | 'replayed' = 'in memory'): Promise<this> {
    const { due } = await this.rig.run(this.runId)
    if (due === null) throw new Error('The run is not due by itself')
    this.rig.clock.moveTo(due)
    const claim = await this.rig.claim(this.definition)
    if (how === 'in memory' && this.frame.seq === claim.run.seq) {
      this.follow(this.frame.resume({ ...claim, entries: [] }))
      await this.rig.quiet()
      return this
    }
    this.frame = this.definition.open(this.rig.host, claim)
    return this.begin()
  }

  journal(): Promise<readonly Entry[]> {
    return this.rig.journal(this.runId)
  }

  /** The journal, in short: kinds and names. */
  async story(): Promise<readonly string[]> {
    return (await this.journal()).map(({ kind, name }) => (name === null ? kind : `${kind} ${name}`))
  }

  /** The value of the last entry: what the run returned, or why it failed. */
  async outcome(): Promise<{ readonly status: string; readonly value: unknown }> {
    const { status } = await this.rig.run(this.runId)
    const last = (await this.journal()).at(-1)
    if (last === undefined || last.data === null) return { status, value: undefined }
    const text = await this.rig.payloads.fetch(last.data)
    return { status, value: this.rig.payloads.decode(text, { runId: this.runId, seq: last.seq, name: last.name }) }
  }

  private follow(departure: Promise<Departure>): void {
    this.departure = null
    void departure.then((how) => (this.departure = how))
  }
}

/** Collects promises that were rejected while nobody listened: in production each of them ends the process. */
export async function unhandledIn(work: () => Promise<unknown>): Promise<readonly unknown[]> {
  const others = process.listeners('unhandledRejection')
  const unhandled: unknown[] = []
  const collect = (reason: unknown): void => void unhandled.push(reason)
  process.removeAllListeners('unhandledRejection')
  process.on('unhandledRejection', collect)
  try {
    await work()
    await new Promise((resolve) => setImmediate(resolve))
  } finally {
    process.off('unhandledRejection', collect)
    for (const other of others) process.on('unhandledRejection', other)
  }
  return unhandled
}

function draftOf({ kind, name, meta, data }: Entry): Draft {
  return { kind, name, meta, data } as Draft
}
