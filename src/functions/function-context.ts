// The context of one run: each call takes its identity from its scope and goes to the stage. It checks what it is given, and
// decides nothing else.

import { checkSignalName, isTopic, type Topic } from '../core/declared-topic.ts'
import type { Definition, TypedDefinition } from '../core/definition.ts'
import { toMs, type Duration } from '../core/duration.ts'
import type { Entry } from '../core/entry.ts'
import { HoldfastError } from '../core/error.ts'
import { isRunId } from '../core/id.ts'
import { callBody, randomFraction, randomUuid } from '../core/ports.ts'
import type { Run } from '../core/run.ts'
import { inspected } from '../core/shown.ts'
import { shown } from '../core/suggest.ts'
import { tokenSignal, tokenText } from '../core/token.ts'
import type { StepTools } from '../core/attempt.ts'
import { StepCall, type Perform } from './call.ts'
import {
  contextMethods,
  type ChildOptions,
  type Context,
  type Falsy,
  type InputOf,
  type Services,
  type ReceiveOptions,
  type StepOptions,
  type TransactionStepOptions,
  type UntilOptions,
} from './context.ts'
import { issueToken } from './issuing.ts'
import { insideStep, notAFunction, notAWorkflow, noTransactions } from './misuse.ts'
import { checkSchema, checkWaits, childAsk, stepAsk, timeOf } from './asking.ts'
import { knowing } from './knowing.ts'
import { leavingBody } from './leaving-body.ts'
import { encodeNote } from './notes.ts'
import { never, rejecting } from './promises.ts'
import { awaitBegun, beginWait, registerWait, type NewWait } from './registering.ts'
import { checkName, type Scope } from './scope.ts'
import type { Stage } from './stage.ts'
import { until, untilMs } from './until.ts'
import { TokenWait, Wait, type Raceable, type RaceResult, type WaitOwner } from './wait.ts'
import { childWay, runWay, signalWay, startWay, timeWay, type RunOutcome, type SleepResult, type Way } from './way.ts'

export function createContext(stage: Stage, scope: Scope, run: Run): Context {
  const ctx = new FunctionContext<unknown>(stage, scope, { id: run.id, type: run.type, version: run.version })
  return leavingBody(ctx, contextMethods, stage.host.ports)
}

class FunctionContext<Input> implements Context<Input> {
  readonly run: Context['run']
  private readonly stage: Stage
  private readonly scope: Scope

  constructor(stage: Stage, scope: Scope, run: Context['run']) {
    this.stage = stage
    this.scope = scope
    this.run = run
  }

  toJSON(): object {
    return { run: this.run }
  }

  [inspected](): object {
    return this.toJSON()
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
    try {
      checkName(name, 'A step')
      if (typeof perform !== 'function') throw notAFunction(`Step "${name}"`)
      return this.enter(name, perform, options as TransactionStepOptions | undefined, false) as Promise<Result>
    } catch (error) {
      return this.promised('step', null, () => Promise.reject(error as Error))
    }
  }

  transaction<Result>(
    name: string,
    perform: (tx: never, step: StepTools) => Result | PromiseLike<Result>,
    options?: TransactionStepOptions<NoInfer<Awaited<Result>>>,
  ): Promise<Result> {
    return this.promised('transaction', null, () => {
      checkName(name, 'A transaction')
      if (typeof perform !== 'function') throw notAFunction(`Transaction "${name}"`)
      if (this.stage.host.transact === null) throw noTransactions(name)
      const within: Perform = (step, tx) => perform(tx as never, step)
      return this.enter(name, within, options as TransactionStepOptions | undefined, true) as Promise<Result>
    })
  }

  private enter(
    name: string,
    perform: Perform,
    options: TransactionStepOptions | undefined,
    isTransaction: boolean,
  ): Promise<unknown> {
    const { stage } = this
    const method = isTransaction ? 'transaction' : 'step'
    this.outsideStep(method)
    if (!stage.admits()) return never()
    const { policy } = stage
    const asked = options === undefined ? { policy, isTransaction } : stepAsk(name, options, policy, isTransaction)
    const { scope } = this
    const call = new StepCall(scope.next('step', name), name, perform, asked)
    stage.places.note<Context>('step', call.name, scope.nth, this, method)
    if (stage.sites !== null) call.place = stage.sites.find<Context>(this, method)
    stage.enterStep(call)
    return call.promise
  }

  branch<Result>(name: string, body: (ctx: Context<Input>) => Result | PromiseLike<Result>): Promise<Result> {
    return this.promised('branch', name, () => this.branchOut(name, body))
  }

  private async branchOut<Result>(
    name: string,
    body: (ctx: Context<Input>) => Result | PromiseLike<Result>,
  ): Promise<Result> {
    checkName(name, 'A branch')
    if (typeof body !== 'function') throw notAFunction(`Branch "${name}"`)
    this.outsideStep('branch')
    const { ports } = this.stage.host
    const ctx = new FunctionContext<Input>(this.stage, this.scope.child(name), this.run)
    return callBody(ports, this.run.type, () => body(leavingBody(ctx, contextMethods, ports)))
  }

  sleep(duration: Duration): Wait<SleepResult> {
    const ms = toMs(duration, 'ctx.sleep')
    return this.wait('sleep', [timeWay({ kind: 'delay', ms, begun: null })], 'sleep')
  }

  sleepUntil(time: Date | number): Wait<SleepResult> {
    const at = timeOf(time)
    // Times are whole milliseconds in every store, and none fires early.
    return this.wait('sleep', [timeWay({ kind: 'time', at: Math.ceil(at) })], 'sleepUntil')
  }

  receive<Payload>(sender: string | Topic, options: ReceiveOptions<Payload> = {}): Wait<Payload> {
    const name = isTopic(sender) ? sender.name : checkSignalName(sender, 'A signal')
    const schema = checkSchema(options, `signal "${name}"`)
    return this.wait(name, [signalWay(sender, schema)], 'receive')
  }

  race<const Waits extends Readonly<Record<string, unknown>>>(waits: Waits & Raceable<Waits>): Wait<RaceResult<Waits>> {
    // Before anything is taken of waits that the body has made.
    this.outsideStep('race')
    checkWaits(waits, 'ctx.race')
    // What the compiler refused otherwise, and what was checked just now.
    const ways = Wait.tagged(waits as Readonly<Record<string, Wait<unknown>>>)
    if (ways.length === 0 || new Set(ways.map(({ tag }) => tag)).size < ways.length) {
      throw new HoldfastError('INVALID_OPTION', 'ctx.race needs at least one wait, and a name of its own for each.')
    }
    return this.wait('race', ways, 'race')
  }

  all(waits: readonly Wait<unknown>[] | Readonly<Record<string, Wait<unknown>>>): Promise<never> {
    return this.promised('all', null, () => {
      this.outsideStep('all')
      checkWaits(waits, 'ctx.all')
      if (Array.isArray(waits)) return Promise.all(waits) as Promise<never>
      const entries = Object.entries(waits as Readonly<Record<string, Wait<unknown>>>)
      const values = Promise.all(entries.map(([, wait]) => wait))
      return values.then((all) => Object.fromEntries(entries.map(([key], at) => [key, all[at]]))) as Promise<never>
    })
  }

  waitFor<Output>(run: string | { readonly id: string }): Wait<RunOutcome<Output>> {
    const id: unknown = typeof run === 'string' ? run : (run as { readonly id?: unknown } | null)?.id
    if (typeof id !== 'string' || !isRunId(id)) {
      throw new HoldfastError('INVALID_OPTION', `ctx.waitFor needs a run, by its id or its handle. Got ${shown(run)}.`)
    }
    return this.wait('run', [runWay(id)], 'waitFor')
  }

  child<Output>(workflow: Definition, input?: unknown, options?: ChildOptions): Wait<Output> {
    const ask = childAsk('child', workflow, input, options)
    return this.wait(workflow.type, [childWay(ask)], 'child')
  }

  start(workflow: Definition, input?: unknown, options?: ChildOptions): Promise<{ readonly id: string }> {
    return this.promised('start', null, () => {
      const ask = childAsk('start', workflow, input, options)
      return this.wait<{ readonly id: string }>(workflow.type, [startWay(ask)], 'start').then()
    })
  }

  token<Payload>(options: ReceiveOptions<Payload> = {}): TokenWait<Payload> {
    const { stage } = this
    const schema = checkSchema(options, 'token')
    const owner = this.waitOwner('token', 'token')
    const issued = issueToken(stage, this.scope.next('value', 'token'), (entry) => this.read(entry))
    const ways = [signalWay(tokenSignal(issued.seq), schema)]
    return new TokenWait(tokenText(issued), ways, owner)
  }

  expose(name: string, value: unknown): void {
    const { stage } = this
    checkName(name, 'What ctx.expose shows')
    const call = this.note('expose')
    if (call === null) return
    const data = encodeNote(this.stage, value, (error) => error, 'exposed', name)
    stage.writer.append({ kind: 'exposed', name, meta: { call }, data })
    stage.stir()
  }

  until<Result>(
    name: string,
    check: (step: StepTools) => Result | PromiseLike<Result>,
    options: UntilOptions = {},
  ): Promise<Exclude<Awaited<Result>, Falsy>> {
    return this.promised('until', name, () => {
      this.outsideStep('until')
      return until(this, name, check, untilMs(name, options, this.stage.host))
    })
  }

  now(): Date {
    return new Date(this.record('now', () => this.stage.host.now()))
  }

  random(): number {
    return this.record('random', () => randomFraction(this.stage.host.ports.random))
  }

  uuid(): string {
    return this.record('uuid', () => randomUuid(this.stage.host.ports.random))
  }

  log(message: string, data?: unknown): void {
    const { stage } = this
    if (typeof message !== 'string') throw new HoldfastError('INVALID_OPTION', 'ctx.log needs a text as its message.')
    const name = this.note('log')
    if (name === null) return
    const line = data === undefined ? { message } : { message, data }
    const cut = (error: HoldfastError): unknown => ({ message: message.slice(0, 1_000), error })
    const written = encodeNote(this.stage, line, cut, 'logged', name)
    stage.writer.append({ kind: 'logged', name, meta: null, data: written })
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
    const data = text === undefined ? null : encodeNote(this.stage, text, (error) => error.message, 'progressed', name)
    stage.writer.append({ kind: 'progressed', name, meta: { fraction }, data })
    stage.stir()
  }

  withResource<Resource, Result>(
    acquire: () => Resource | Promise<Resource>,
    release: (resource: Resource) => unknown,
    use: (resource: Resource) => Promise<Result>,
  ): Promise<Result> {
    return this.promised('withResource', null, () => {
      this.outsideStep('withResource')
      const { ports } = this.stage.host
      const body = (resource: Resource): Promise<Result> => callBody(ports, this.run.type, () => use(resource))
      return this.stage.admits() ? this.stage.resources.use(acquire, release, body) : never()
    })
  }

  patched(id: string): boolean {
    checkName(id, 'A change')
    this.outsideStep('patched')
    return this.stage.patched(id)
  }

  continueAsNew(...[input]: InputOf<Input>): Promise<never> {
    return this.begin(null, input)
  }

  continueAs<Other>(workflow: TypedDefinition<Other, unknown>, ...[input]: InputOf<Other>): Promise<never> {
    const { type, validate }: Partial<Definition> = workflow ?? {}
    if (typeof type === 'string' && typeof validate === 'function') return this.begin(workflow, input)
    return this.promised('continueAs', null, () => Promise.reject(notAWorkflow('ctx.continueAs')))
  }

  private begin(target: Definition | null, input: unknown): Promise<never> {
    const method = target === null ? 'continueAsNew' : 'continueAs'
    return this.promised(method, null, () => {
      this.outsideStep(method)
      return this.stage.admits() ? this.stage.continueAs(target, input) : never()
    })
  }

  /** What a call of the body gives back: it rejects and never throws, and if it fails unheard, that is said. */
  private promised<Value>(method: keyof Context, name: unknown, make: () => Promise<Value>): Promise<Value> {
    const { stage } = this
    const what = typeof name === 'string' ? `ctx.${method} "${name}"` : `ctx.${method}`
    stage.places.note<Context>('other', what, 1, this, method)
    return rejecting(make, (promise, error) => {
      stage.unheard({ promise, what, place: stage.places.placeOf({ kind: 'other', name: what }), error })
    })
  }

  private wait<Value>(name: string, ways: readonly Way[], method: keyof Context): Wait<Value> {
    return new Wait<Value>(ways, this.waitOwner(name, method))
  }

  private waitOwner(name: string, method: keyof Context): WaitOwner {
    this.outsideStep(method)
    const { stage, scope } = this
    const place = stage.sites?.find<Context>(this, method) ?? null
    // Its identity is taken when it is made: when it begins may depend on what the body awaits of its own.
    const identity = scope.next('wait', name)
    stage.places.note<Context>('wait', identity, scope.nth, this, method)
    const made = (ways: readonly Way[]): NewWait => ({ name: identity, ways, place })
    return {
      // A step that returns a wait has it awaited when it is not being called any more.
      refusal: () => this.refusal(method),
      // Code that goes on beside a body that has ended begins nothing.
      made: (wait) => {
        if (!stage.hasBodyEnded) stage.made(wait)
      },
      offered: () => stage.offered({ kind: 'wait', name: identity, place }),
      taken: () => stage.taken(identity),
      begin: (ways) => beginWait(stage, made(ways)),
      await: (ways, begun) => {
        if (!stage.admits() || stage.hasBodyEnded) return never()
        return begun === null ? registerWait(stage, made(ways)) : awaitBegun(stage, begun)
      },
    }
  }

  /** Every call takes the next identity of its kind, so one that a replay will not make would shift all that follow. */
  private outsideStep(method: string): void {
    const refusal = this.refusal(method)
    if (refusal !== null) throw refusal
  }

  private refusal(method: string): Error | null {
    const { inside } = this.stage
    return inside === null ? null : insideStep(`ctx.${method}`, inside)
  }

  private read(entry: Extract<Entry, { kind: 'recorded' | 'issued' }>): unknown {
    try {
      return this.stage.decode(entry.data, entry)
    } catch (error) {
      this.stage.unreadable(error, entry)
      throw error
    }
  }

  private record<Value>(name: string, make: () => Value): Value {
    const { stage } = this
    this.outsideStep(name)
    const identity = this.scope.next('value', name)
    const recorded = stage.history.value(identity)
    if (recorded !== undefined) return this.read(recorded) as Value
    const value = make()
    if (stage.admits() && stage.isWriting) {
      const data = stage.encode(value, 'recorded', identity)
      stage.writer.append({ kind: 'recorded', name: identity, meta: null, data })
      stage.stir()
    }
    return value
  }

  /** The identity of a note that is not in the journal yet; null if it is, or if nobody is there to read it. */
  private note(name: 'expose' | 'log' | 'progress'): string | null {
    this.outsideStep(name)
    const identity = this.scope.next('note', name)
    const { history, isWriting } = this.stage
    return history.hasNote(identity) || !this.stage.admits() || !isWriting ? null : identity
  }
}

knowing(FunctionContext.prototype, contextMethods, (called) => called instanceof FunctionContext)
