// A bench for the replay machine of durable functions. It opens frames on a ledger of runs with a clock that only the test
// moves, a real batcher in front of it, real turns of the event loop and seeded chance. Steps that are gated end when, and in the order in which,
// the test says so; between two such events the rig waits until nothing moves any more. Nothing here sleeps.

import { defaultLimits } from '../../src/core/definition/limits.ts'
import { jsonCodec, type Codec } from '../../src/core/payload/codec.ts'
import type { Acknowledged, Claim, Definition, Host } from '../../src/core/definition/definition.ts'
import type { Draft, Entry } from '../../src/core/model/entry.ts'
import { Payloads, type Offload } from '../../src/core/payload/payload.ts'
import type { Cancel, Clock, Ports, Random, Scopes } from '../../src/core/runtime/ports.ts'
import { HoldfastError, type ErrorCode } from '../../src/core/errors/error.ts'
import type { Run, ControlRequest } from '../../src/core/model/run.ts'
import { mayMerge, mergeTransitions, sizeOf, type Transition } from '../../src/core/model/transition.ts'
import { Batcher } from '../../src/engine/batch/batcher.ts'
import type { Attempt, StepTools } from '../../src/core/runtime/attempt.ts'
import type { Committed, Refusal } from '../../src/store.ts'
import { systemDigest } from '../../src/system.ts'
import { Held } from './held-run.ts'
import { RunLedger } from './run-ledger.ts'

export { Held } from './held-run.ts'

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
  readonly abortGraceMs?: number
  /** @default calls are not followed through what they await */
  readonly scopes?: Scopes
  /** Prepares the children of runs. What starts them is in the transitions; nobody performs them. */
  readonly prepare?: Host['prepare']
  readonly transact?: Host['transact']
  /** Called with each transition before the store gets it; may throw in the store's stead. */
  readonly onCommit?: (transition: Transition) => void
  /** Gives the reason of a cancellation with the refusal that comes of it. @default true */
  readonly givesReason?: boolean
}

export interface Line {
  readonly level: 'debug' | 'info' | 'warn' | 'error'
  readonly message: string
}

const session = 'rig'
const firstLease = { session, token: 1 }

export class FunctionRig {
  readonly clock: VirtualClock
  readonly store: RunLedger
  readonly ports: Ports
  readonly host: Host
  readonly payloads: Payloads
  readonly lines: Line[] = []
  /** What reached the store, in order, each with what was asked of it in one. */
  readonly commits: Transition[] = []
  /** Runs whose holder has heard that they are being cancelled. */
  readonly heard = new Set<string>()
  /** How long the journals of runs were when they were claimed last. */
  readonly claimedAt = new Map<string, number>()
  /** How many turns the frames have had. */
  turns = 0
  /** Set to let the process die with its next commit, once that has landed or before. */
  dies: { readonly hasLanded: boolean; readonly how: () => void } | null = null
  private readonly options: RigOptions
  private committer: Batcher<Transition, Committed, Acknowledged>
  private gatesMade: Gate[] = []
  private activity = 0
  private ids = 0

  constructor(options: RigOptions = {}) {
    this.clock = new VirtualClock(options.time)
    this.store = new RunLedger(this.clock)
    this.ports = this.makePorts(options)
    this.payloads = new Payloads(options.codec ?? jsonCodec(), options.offload)
    this.options = options
    this.committer = this.makeCommitter()
    this.host = {
      ports: this.ports,
      payloads: this.payloads,
      services: {},
      inlineRetryMs: options.inlineRetryMs ?? 1_000,
      abortGraceMs: options.abortGraceMs ?? 30_000,
      heartbeat: () => undefined,
      now: () => this.clock.now(),
      untilIntervalMs: 3_600_000,
      mailbox: async () => ({ messages: [], isCut: false }),
      prepare: options.prepare ?? nobodyToStart,
      receiver: async () => null,
      limits: defaultLimits,
      transitionId: () => `t${(this.ids += 1)}`,
      commit: (transition) => this.committer.submit(transition),
      transact: options.transact ?? null,
    }
  }

  /** Inserts a run that is leased at once and opens its frame. */
  async start(definition: Definition, input: unknown = null): Promise<Held> {
    const id = this.nextRunId()
    const data = await this.payloads.keep(this.encode(id, input), this.payloads.place(id, 1, 'started', null))
    const first: Draft = { kind: 'started', name: null, meta: null, data }
    const run = this.store.insert({ id, ...identity(definition) }, firstLease, [first])
    return new Held(this, definition, this.claimOf(run))
  }

  /** Makes a run whose journal is what is given, as a process that died would have left it, and claims it. */
  async adopt(definition: Definition, entries: readonly Entry[]): Promise<Held> {
    const id = this.nextRunId()
    this.clock.moveTo(Math.max(...entries.map(({ at }) => at)))
    this.store.insert({ id, ...identity(definition) }, firstLease, entries)
    this.store.release(id)
    return new Held(this, definition, this.claim(id))
  }

  /** Leases a run that is due to this rig. */
  claim(runId: string): Claim {
    return this.claimOf(this.store.claim(runId, session))
  }

  private claimOf(run: Run): Claim {
    const entries = this.store.journal(run.id).slice(run.base - 1)
    if (run.status === 'cancelling') this.heard.add(run.id)
    this.claimedAt.set(run.id, run.seq)
    return { run, lease: { session, token: run.token }, entries, messages: [] }
  }

  async run(runId: string): Promise<Run> {
    return this.store.row(runId)
  }

  async journal(runId: string): Promise<readonly Entry[]> {
    return this.store.journal(runId)
  }

  /** The last place of that run's journal which is durable. */
  committedSeq(runId: string): number {
    return this.store.row(runId).seq
  }

  /** The function of a step that ends when its gate is opened. */
  readonly gated = (tools: StepTools): Promise<unknown> =>
    new Promise((resolve, reject) => {
      this.activity += 1
      const step = stepOf(tools)
      this.gatesMade.push({ step, attempt: tools.attempt, tools, succeed: resolve, fail: reject })
    })

  /** Attempts that are running, in the order in which they began; also those that were asked to stop. */
  get gates(): readonly Gate[] {
    this.gatesMade = this.gatesMade.filter(({ tools }) => (tools as Attempt).isOpen)
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

  /** Another process goes on: whatever the last one had sent is not answered any more. */
  restart(): void {
    this.committer = this.makeCommitter()
  }

  private async commit(transitions: readonly Transition[]): Promise<readonly Committed[]> {
    this.activity += 1
    for (const transition of transitions) this.options.onCommit?.(transition)
    const { dies } = this
    this.dies = null
    if (dies?.hasLanded !== false) this.commits.push(...transitions)
    const answers = dies?.hasLanded === false ? [] : await this.store.commit(transitions)
    if (dies === null) return answers
    dies.how()
    return new Promise(() => undefined)
  }

  private makeCommitter(): Batcher<Transition, Committed, Acknowledged> {
    const controlRequestOf = (runId: string): ControlRequest | null => {
      return this.options.givesReason === false ? null : this.store.row(runId).controlRequest
    }
    return new Batcher<Transition, Committed, Acknowledged>(this.ports, {
      flush: (transitions) => this.commit(transitions),
      keyOf: ({ runId }) => runId,
      nameOf: ({ runId }) => runId,
      sizeOf: ({ append }) => append.reduce((bytes, draft) => bytes + sizeOf(draft), 0),
      resultOf: (transition, answer, isLast) => {
        const isRefused = answer.outcome === 'refused'
        if (isRefused ? answer.reason === 'cancelling' : answer.controlRequest?.kind === 'cancel')
          this.heard.add(transition.runId)
        return acknowledge(transition, answer, isLast, controlRequestOf)
      },
      merge: { may: mayMerge, both: mergeTransitions },
    })
  }

  private encode(runId: string, value: unknown): string {
    return this.payloads.encode(value, this.payloads.place(runId, 1, 'started', null))
  }

  private nextRunId(): string {
    return `01900000-0000-7000-8000-${(this.ids += 1).toString(16).padStart(12, '0')}`
  }

  private makePorts({ seed = 1, scopes }: RigOptions): Ports {
    const write = (level: Line['level']) => (message: string) => void this.lines.push({ level, message })
    return {
      clock: this.clock,
      random: seededRandom(seed),
      digest: systemDigest,
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
      ...(scopes === undefined ? {} : { scopes }),
    }
  }
}

function nobodyToStart(): never {
  throw new Error('There is nobody to start')
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

/** The step that an attempt belongs to, or that it undoes. */
export function stepOf({ idempotencyKey }: StepTools): string {
  const [, , name = '', undo] = idempotencyKey.split(':')
  return undo === undefined ? decodeURIComponent(name) : `undo ${decodeURIComponent(name)}`
}

function identity({ type, version }: Definition): { readonly type: string; readonly version: number } {
  return { type, version }
}

const codes: Readonly<Record<Refusal, ErrorCode>> = {
  stale: 'STALE_WRITE',
  'lease-lost': 'LEASE_LOST',
  'not-found': 'RUN_NOT_FOUND',
  cancelling: 'RUN_CANCELLING',
  'timed-out': 'RUN_TIMEOUT',
  resumed: 'RUN_RESUMED',
  'key-taken': 'RUN_EXISTS',
  held: 'WRONG_STATUS',
  ended: 'WRONG_STATUS',
  busy: 'STORE_UNAVAILABLE',
}

function acknowledge(
  { runId, guard, append }: Transition,
  answer: Committed,
  isLast: boolean,
  controlRequestOf: (runId: string) => ControlRequest | null,
): Acknowledged {
  if (answer.outcome === 'refused') {
    const { reason } = answer
    throw new HoldfastError(codes[reason], `The store said ${reason}.`, {
      details: { controlRequest: controlRequestOf(runId) },
    })
  }
  if (isLast) return answer
  return { ...answer, seq: guard.seq + append.length, released: false }
}
