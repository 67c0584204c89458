// What the body of a function is given. Every call here is recorded under its identity, so that a replay of the body
// finds what it found before; a call that was not recorded yet happens now.

import type { Definition } from '../core/definition.ts'
import type { TypedDefinition } from '../core/definition.ts'
import { toMs, type Duration } from '../core/duration.ts'
import { HoldfastError } from '../core/error.ts'
import type { Entry, WokenMeta } from '../core/entry.ts'
import { randomFraction } from '../core/ports.ts'
import { retryPolicy, type Retry } from '../core/retry.ts'
import type { Run } from '../core/run.ts'
import { checkOptions } from '../core/suggest.ts'
import { fatal } from '../core/verdict.ts'
import type { Condition } from '../core/wait.ts'
import type { StepTools } from '../core/attempt.ts'
import { StepCall, WaitCall, type Perform, type Undo } from './call.ts'
import { checkName, type Scope } from './scope.ts'
import type { Stage } from './stage.ts'
import { Wait, type TimeReached } from './wait.ts'

/** The application's own services, as given to `createHoldfast`. Declare yours by augmenting this interface. */
export interface Services {}

export interface StepOptions<Result = unknown> {
  /** How often, and after which delays, a failing step is tried again. @default the workflow's */
  readonly retry?: Retry
  /** How long one attempt may take. @default no limit */
  readonly timeout?: Duration
  /**
   * Undoes what the step did, if the run fails or is cancelled later. It gets what the step returned, and is tried as often
   * and as long as the step. The undos of a run happen in the reverse order of its steps, each at least once until it has
   * succeeded or given up.
   *
   * @example
   * await ctx.step('book', () => book(42), { undo: (booking, step) => unbook(booking.id, { key: step.idempotencyKey }) })
   */
  readonly undo?: (result: Result, step: StepTools) => unknown
}

/**
 * What your transactions are. Declare it once, and `ctx.transaction` knows: with `createHoldfast({ transaction })` it is what
 * your library hands to its callback; without, what the store's driver calls a connection.
 *
 * @example
 * declare module 'holdfast' {
 *   interface Transactions { tx: import('pg').PoolClient }
 * }
 */
export interface Transactions {}

/** A transaction, as far as it was declared. */
export type Transaction = Transactions extends { readonly tx: infer Tx } ? Tx : unknown

/** An input that may be left out need not be given. */
export type InputOf<Input> = undefined extends Input ? [input?: Input] : [input: Input]

export interface Context {
  /** The run that this is. */
  readonly run: { readonly id: string; readonly type: string; readonly version: number }
  readonly services: Services
  /** Aborts when the run is being cancelled, when it fails for want of time, and when it goes on elsewhere. */
  readonly abortSignal: AbortSignal
  /** True once the run is being cancelled: for bodies that do their work without steps. */
  isCancelled(): boolean

  /**
   * Runs `perform` once and records what it returns; later, and on every replay, that is what this call returns.
   *
   * @example
   * const payment = await ctx.step('charge', (step) => pay(99, { key: step.idempotencyKey }), { timeout: '30s' })
   */
  step<Result>(
    name: string,
    perform: (step: StepTools) => Result | PromiseLike<Result>,
    options?: StepOptions<NoInfer<Awaited<Result>>>,
  ): Promise<Result>

  /**
   * A step whose writes to your own tables and whose result are committed together, exactly once: `tx` is a transaction of the
   * database that holds the runs. It is committed when the function has returned, and rolled back when it throws; then it
   * is tried again like any step. Await everything that is done with `tx`, and leave its end to Holdfast.
   *
   * @example
   * await ctx.transaction('book', async (tx) => {
   *   await tx.query('insert into bookings (order_id) values ($1)', [order.id])
   * })
   */
  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- who declares nothing may still name a type here
  transaction<Result, Tx = Transaction>(
    name: string,
    perform: (tx: Tx, step: StepTools) => Result | PromiseLike<Result>,
    options?: StepOptions<NoInfer<Awaited<Result>>>,
  ): Promise<Result>

  /** Runs part of the body in a scope of its own, so that its calls keep their identity whatever happens beside it. */
  branch<Result>(name: string, body: (ctx: Context) => Result | PromiseLike<Result>): Promise<Result>

  /** Waits for a time. The run holds no slot and no lease meanwhile, and survives any restart. */
  sleep(duration: Duration): Wait<TimeReached>
  sleepUntil(time: Date | number): Wait<TimeReached>

  /** The time, the same on every replay. */
  now(): Date
  /** A number in [0, 1), the same on every replay. */
  random(): number
  /** A random id, the same on every replay. */
  uuid(): string

  /** Writes a line to the run's journal and to the logger, once, however often the body is replayed. */
  log(message: string, data?: unknown): void
  /** Tells how far the run is, from 0 to 1. */
  progress(fraction: number, text?: string): void

  /**
   * True if the code that came with that change is to run here: in every run that has not yet come past this point. Keep
   * both ways in the code until no run needs the old one.
   *
   * @example
   * if (ctx.patched('check-stock')) await ctx.step('check', () => check(order))
   */
  patched(id: string): boolean

  /** Ends this incarnation of the run and begins it anew, under the same id, with a new input and without its history. */
  continueAsNew(input: unknown): Promise<never>
  /** As `continueAsNew`, but as a run of another workflow. */
  continueAs<Input>(workflow: TypedDefinition<Input, unknown>, ...input: InputOf<Input>): Promise<never>

  /** Lends a resource to `use`: acquired anew on every replay, released also when the run is parked meanwhile. */
  withResource<Resource, Result>(
    acquire: () => Resource | Promise<Resource>,
    release: (resource: Resource) => unknown,
    use: (resource: Resource) => Promise<Result>,
  ): Promise<Result>
}

export function createContext(stage: Stage, scope: Scope, run: Run): Context {
  return new FunctionContext(stage, scope, { id: run.id, type: run.type, version: run.version })
}

class FunctionContext implements Context {
  readonly run: Context['run']
  private readonly stage: Stage
  private readonly scope: Scope

  constructor(stage: Stage, scope: Scope, run: Context['run']) {
    this.stage = stage
    this.scope = scope
    this.run = run
  }

  get services(): Services {
    return this.stage.host.services as Services
  }

  get abortSignal(): AbortSignal {
    return this.stage.abortSignal
  }

  isCancelled(): boolean {
    return this.stage.isCancelled
  }

  step<Result>(
    name: string,
    perform: (step: StepTools) => Result | PromiseLike<Result>,
    options?: StepOptions<NoInfer<Awaited<Result>>>,
  ): Promise<Result> {
    checkName(name, 'A step')
    if (typeof perform !== 'function') throw notAFunction(`Step "${name}"`)
    return this.enter(name, perform, options as StepOptions | undefined, false) as Promise<Result>
  }

  transaction<Result>(
    name: string,
    perform: (tx: never, step: StepTools) => Result | PromiseLike<Result>,
    options?: StepOptions<NoInfer<Awaited<Result>>>,
  ): Promise<Result> {
    checkName(name, 'A transaction')
    if (typeof perform !== 'function') throw notAFunction(`Transaction "${name}"`)
    if (this.stage.host.transact === null) throw noTransactions(name)
    const within: Perform = (step, tx) => perform(tx as never, step)
    return this.enter(name, within, options as StepOptions | undefined, true) as Promise<Result>
  }

  private enter(
    name: string,
    perform: Perform,
    options: StepOptions | undefined,
    isTransaction: boolean,
  ): Promise<unknown> {
    const { stage } = this
    if (stage.performing !== null) throw insideStep(`Step "${name}"`, stage.performing)
    if (!stage.admits()) return never()
    let policy = stage.policy
    let timeoutMs: number | undefined
    let undo: Undo | undefined
    if (options !== undefined) {
      const where = `step "${name}"`
      checkOptions(options, ['retry', 'timeout', 'undo'], where)
      undo = options.undo
      if (undo !== undefined && typeof undo !== 'function') throw notAFunction(`The undo of ${where}`)
      policy = retryPolicy(options.retry, policy, `${where}: retry`)
      timeoutMs = options.timeout === undefined ? undefined : toMs(options.timeout, `The timeout of ${where}`)
    }
    const call = new StepCall(this.scope.next('step', name), perform, { policy, timeoutMs, undo, isTransaction })
    if (stage.sites !== null) call.place = stage.sites.find<Context>(this, isTransaction ? 'transaction' : 'step')
    stage.enterStep(call)
    return call.promise
  }

  branch<Result>(name: string, body: (ctx: Context) => Result | PromiseLike<Result>): Promise<Result> {
    checkName(name, 'A branch')
    if (typeof body !== 'function') throw notAFunction(`Branch "${name}"`)
    const ctx = new FunctionContext(this.stage, this.scope.child(name), this.run)
    return quietly((async () => body(ctx))())
  }

  sleep(duration: Duration): Wait<TimeReached> {
    const ms = toMs(duration, 'ctx.sleep')
    return this.time({ tag: 'sleep', kind: 'delay', ms }, 'sleep')
  }

  sleepUntil(time: Date | number): Wait<TimeReached> {
    const at = typeof time === 'number' ? time : time.getTime()
    if (!Number.isFinite(at)) {
      throw new HoldfastError('INVALID_DURATION', 'ctx.sleepUntil needs a valid Date or milliseconds since 1970.')
    }
    return this.time({ tag: 'sleep', kind: 'time', at }, 'sleepUntil')
  }

  now(): Date {
    return new Date(this.record('now', () => this.stage.host.now()))
  }

  random(): number {
    return this.record('random', () => randomFraction(this.stage.host.ports.random))
  }

  uuid(): string {
    return this.record('uuid', () => randomUuid(() => this.stage.host.ports.random.uint32()))
  }

  log(message: string, data?: unknown): void {
    const { stage } = this
    if (typeof message !== 'string') throw new HoldfastError('INVALID_OPTION', 'ctx.log needs a text as its message.')
    const name = this.note('log')
    if (name === null) return
    const line = data === undefined ? { message } : { message, data }
    stage.writer.append({ kind: 'logged', name, meta: null, data: stage.encode(line, name) })
    stage.host.ports.logger.info(message, {
      run: this.run.id,
      type: this.run.type,
      ...(data === undefined ? {} : { data }),
    })
    stage.stir()
  }

  progress(fraction: number, text?: string): void {
    const { stage } = this
    if (!(fraction >= 0 && fraction <= 1)) {
      throw new HoldfastError('INVALID_OPTION', `ctx.progress needs a fraction from 0 to 1. Got ${String(fraction)}.`)
    }
    const name = this.note('progress')
    if (name === null) return
    stage.writer.append({ kind: 'progressed', name, meta: { fraction, text: text ?? null }, data: null })
    stage.stir()
  }

  withResource<Resource, Result>(
    acquire: () => Resource | Promise<Resource>,
    release: (resource: Resource) => unknown,
    use: (resource: Resource) => Promise<Result>,
  ): Promise<Result> {
    if (!this.stage.admits()) return never()
    return quietly(this.stage.resources.use(acquire, release, use))
  }

  patched(id: string): boolean {
    checkName(id, 'A change')
    if (this.stage.performing !== null) throw insideStep('ctx.patched', this.stage.performing)
    return this.stage.patched(id)
  }

  continueAsNew(input: unknown): Promise<never> {
    return this.begin(null, input)
  }

  continueAs<Input>(workflow: TypedDefinition<Input, unknown>, ...[input]: InputOf<Input>): Promise<never> {
    const { type, validate }: Partial<Definition> = workflow ?? {}
    if (typeof type === 'string' && typeof validate === 'function') return this.begin(workflow, input)
    throw new HoldfastError('INVALID_OPTION', 'ctx.continueAs needs a workflow, made by workflow(), and its input.')
  }

  private begin(target: Definition | null, input: unknown): Promise<never> {
    if (this.stage.performing !== null) throw insideStep('ctx.continueAsNew', this.stage.performing)
    return this.stage.admits() ? quietly(this.stage.continueAs(target, input)) : never()
  }

  private time(condition: Condition, method: 'sleep' | 'sleepUntil'): Wait<TimeReached> {
    const place = this.stage.sites?.find<Context>(this, method) ?? null
    return new Wait(async () => {
      const { trueAt, seenAt } = await this.wait('sleep', [condition], place)
      return { scheduledAt: new Date(trueAt), firedAt: new Date(seenAt) }
    })
  }

  private wait(name: string, conditions: readonly Condition[], place: string | null): Promise<WokenMeta> {
    const { stage } = this
    if (stage.performing !== null) throw insideStep(`ctx.${name}`, stage.performing)
    if (!stage.admits()) return never()
    const identity = this.scope.next('wait', name)
    const recorded = stage.history.wait(identity)
    if (recorded === undefined && stage.isWriting) {
      stage.writer.append({ kind: 'waiting', name: identity, meta: { conditions }, data: null })
    }
    const call = new WaitCall(identity, recorded?.meta.conditions ?? conditions, recorded?.at ?? null)
    call.place = place
    stage.enterWait(call)
    return call.promise as Promise<WokenMeta>
  }

  private read({ data, seq, name }: Extract<Entry, { kind: 'recorded' }>): unknown {
    try {
      return this.stage.decode(data, seq, name)
    } catch (error) {
      this.stage.unreadable(error)
      throw error
    }
  }

  private record<Value>(name: string, make: () => Value): Value {
    const { stage } = this
    const identity = this.scope.next('value', name)
    const recorded = stage.history.value(identity)
    if (recorded !== undefined) return this.read(recorded) as Value
    const value = make()
    if (stage.admits() && stage.isWriting) {
      stage.writer.append({ kind: 'recorded', name: identity, meta: null, data: stage.encode(value, identity) })
      stage.stir()
    }
    return value
  }

  /** The identity of a note that is not in the journal yet; null if it is, or if nobody is there to read it. */
  private note(name: string): string | null {
    const identity = this.scope.next('note', name)
    const { history, isWriting } = this.stage
    return history.hasNote(identity) || !this.stage.admits() || !isWriting ? null : identity
  }
}

/** A body may begin something now and await it later. If it fails in between, that must not end the process. */
function quietly<Value>(promise: Promise<Value>): Promise<Value> {
  promise.catch(() => undefined)
  return promise
}

function never<Value>(): Promise<Value> {
  return new Promise(() => undefined)
}

/** A replay does not call the functions of recorded steps, so it would miss what they ask of the context. */
function insideStep(what: string, step: string): Error {
  const message =
    `${what} was called inside of step "${step}". Call it in the body, before or after that step, ` +
    'or use ctx.branch to group several steps.'
  return fatal(new HoldfastError('INVALID_OPTION', message, { details: { step } }))
}

function noTransactions(name: string): Error {
  const message =
    `Transaction "${name}" needs a store whose database has your tables, too: 'sqlite:app.db' or 'postgres://…'. This one ` +
    'keeps runs only; use ctx.step here.'
  return fatal(new HoldfastError('INVALID_OPTION', message, { details: { step: name } }))
}

function notAFunction(what: string): HoldfastError {
  return new HoldfastError('INVALID_OPTION', `${what} needs a function to perform.`)
}

function randomUuid(uint32: () => number): string {
  const hex = (value: number): string => value.toString(16).padStart(8, '0')
  const [a, b, c, d] = [hex(uint32()), hex(uint32()), hex(uint32()), hex(uint32())]
  const variant = '89ab'[Number.parseInt(c.charAt(0), 16) & 3] ?? '8'
  return `${a}-${b.slice(0, 4)}-4${b.slice(5)}-${variant}${c.slice(1, 4)}-${c.slice(4)}${d}`
}
