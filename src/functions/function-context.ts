// The context of one run: each call takes its identity from its scope and goes to the stage. It checks what it is given, and
// decides nothing else.

import { checkSignalName, isTopic, type Topic } from '../core/declared-topic.ts'
import type { Definition, TypedDefinition } from '../core/definition.ts'
import { toMs, type Duration } from '../core/duration.ts'
import type { Entry } from '../core/entry.ts'
import { HoldfastError } from '../core/error.ts'
import { isRunId } from '../core/id.ts'
import { randomFraction } from '../core/ports.ts'
import { retryPolicy } from '../core/retry.ts'
import type { Run } from '../core/run.ts'
import { isSchema, type Schema } from '../core/schema.ts'
import { checkOptions, didYouMean, shown } from '../core/suggest.ts'
import { newSecret, tokenSignal, tokenText } from '../core/token.ts'
import type { StepTools } from '../core/attempt.ts'
import { StepCall, type Perform, type Undo } from './call.ts'
import type {
  ChildOptions,
  Context,
  Falsy,
  InputOf,
  Services,
  ReceiveOptions,
  StepOptions,
  UntilOptions,
} from './context.ts'
import { insideStep, notAFunction, notAWait, notAWorkflow, noTransactions } from './misuse.ts'
import { registerWait } from './registering.ts'
import { checkName, type Scope } from './scope.ts'
import type { Stage } from './stage.ts'
import { until, untilMs } from './until.ts'
import { TokenWait, Wait, type Raced } from './wait.ts'
import {
  childWay,
  runWay,
  signalWay,
  startWay,
  timeWay,
  type ChildAsk,
  type OnParentEnd,
  type RunOutcome,
  type TimeReached,
  type Way,
} from './way.ts'

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
    return this.wait('sleep', [timeWay({ kind: 'delay', ms: toMs(duration, 'ctx.sleep') })], 'sleep')
  }

  sleepUntil(time: Date | number): Wait<TimeReached> {
    const at = typeof time === 'number' ? time : time.getTime()
    if (!Number.isFinite(at)) {
      throw new HoldfastError('INVALID_DURATION', 'ctx.sleepUntil needs a valid Date or milliseconds since 1970.')
    }
    return this.wait('sleep', [timeWay({ kind: 'time', at })], 'sleepUntil')
  }

  signal<Payload>(sender: string | Topic, options: ReceiveOptions<Payload> = {}): Wait<Payload> {
    const name = isTopic(sender) ? sender.name : checkSignalName(sender, 'A signal')
    const schema = checkSchema(options, `signal "${name}"`)
    return this.wait(name, [signalWay(sender, schema)], 'signal')
  }

  race<const Waits extends Readonly<Record<string, Wait<unknown>>>>(waits: Waits): Wait<Raced<Waits>> {
    checkWaits(waits, 'ctx.race')
    const ways = Wait.tagged(waits)
    if (ways.length === 0 || new Set(ways.map(({ tag }) => tag)).size < ways.length) {
      throw new HoldfastError('INVALID_OPTION', 'ctx.race needs at least one wait, and a name of its own for each.')
    }
    return this.wait('race', ways, 'race')
  }

  all(waits: readonly Wait<unknown>[] | Readonly<Record<string, Wait<unknown>>>): Promise<never> {
    checkWaits(waits, 'ctx.all')
    if (Array.isArray(waits)) return quietly(Promise.all(waits)) as Promise<never>
    const entries = Object.entries(waits as Readonly<Record<string, Wait<unknown>>>)
    const values = Promise.all(entries.map(([, wait]) => wait))
    const named = values.then((all) => Object.fromEntries(entries.map(([key], at) => [key, all[at]])))
    return quietly(named) as Promise<never>
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
    const ask = childAsk('start', workflow, input, options)
    return quietly(this.wait<{ readonly id: string }>(workflow.type, [startWay(ask)], 'start').then())
  }

  token<Payload>(options: ReceiveOptions<Payload> = {}): TokenWait<Payload> {
    const { stage } = this
    const schema = checkSchema(options, 'token')
    this.outsideStep('token')
    const { seq, secret } = this.issue()
    const ways = [signalWay(tokenSignal(seq), schema)]
    const token = tokenText({ runId: stage.runId, seq, secret })
    return new TokenWait(token, ways, this.registration('token', 'token'))
  }

  private issue(): { readonly seq: number; readonly secret: string } {
    const { stage } = this
    const identity = this.scope.next('value', 'token')
    const issued = stage.history.issued(identity)
    if (issued !== undefined) return { seq: issued.seq, secret: this.read(issued) as string }
    const secret = newSecret(stage.host.ports.random)
    if (stage.admits() && stage.isWriting) {
      const data = stage.encode(secret, identity)
      stage.writer.append({ kind: 'issued', name: identity, meta: null, data })
      stage.stir()
    }
    return { seq: stage.writer.seq, secret }
  }

  expose(name: string, value: unknown): void {
    const { stage } = this
    checkName(name, 'What ctx.expose shows')
    const call = this.note('expose')
    if (call === null) return
    stage.writer.append({ kind: 'exposed', name, meta: { call }, data: stage.encode(value, name) })
    stage.stir()
  }

  until<Result>(
    name: string,
    check: (step: StepTools) => Result | PromiseLike<Result>,
    options: UntilOptions = {},
  ): Promise<Exclude<Awaited<Result>, Falsy>> {
    return quietly(until(this, name, check, untilMs(name, options, this.stage.host)))
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
    throw notAWorkflow('ctx.continueAs')
  }

  private begin(target: Definition | null, input: unknown): Promise<never> {
    if (this.stage.performing !== null) throw insideStep('ctx.continueAsNew', this.stage.performing)
    return this.stage.admits() ? quietly(this.stage.continueAs(target, input)) : never()
  }

  private wait<Value>(name: string, ways: readonly Way[], method: keyof Context): Wait<Value> {
    return new Wait<Value>(ways, this.registration(name, method))
  }

  private registration(name: string, method: keyof Context): (ways: readonly Way[]) => Promise<unknown> {
    // A step that returns a wait would have it awaited when it is not being called any more.
    this.outsideStep(method)
    const place = this.stage.sites?.find<Context>(this, method) ?? null
    return (ways) => {
      const { stage } = this
      this.outsideStep(method)
      if (!stage.admits()) return never()
      return registerWait(stage, { name: this.scope.next('wait', name), ways, place })
    }
  }

  private outsideStep(method: string): void {
    const { performing } = this.stage
    if (performing !== null) throw insideStep(`ctx.${method}`, performing)
  }

  private read({ data, seq, name }: Extract<Entry, { kind: 'recorded' | 'issued' }>): unknown {
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

function checkSchema(options: ReceiveOptions<unknown>, where: string): Schema | undefined {
  checkOptions(options, ['schema'], where)
  const { schema } = options
  if (schema === undefined || isSchema(schema)) return schema
  throw new HoldfastError('INVALID_OPTION', `The schema of ${where} must be a Standard Schema, such as one of zod.`)
}

function checkWaits(waits: Readonly<Record<string, unknown>> | readonly unknown[], what: string): void {
  for (const [key, wait] of Object.entries(waits ?? {})) if (!(wait instanceof Wait)) throw notAWait(what, key, wait)
}

function childAsk(
  kind: ChildAsk['kind'],
  workflow: Definition,
  input: unknown,
  given: ChildOptions | undefined,
): ChildAsk {
  const { type, validate }: Partial<Definition> = workflow ?? {}
  if (typeof type !== 'string' || typeof validate !== 'function') throw notAWorkflow(`ctx.${kind}`)
  const { onParentEnd = kind === 'child' ? 'cancel' : 'abandon', ...options } = given ?? {}
  if (!endings.includes(onParentEnd)) {
    const told = `Got ${shown(onParentEnd)}.${didYouMean(onParentEnd, endings)}`
    throw new HoldfastError('INVALID_OPTION', `onParentEnd of ctx.${kind} is one of ${endings.join(', ')}. ${told}`)
  }
  return { kind, workflow, input, options, onParentEnd, prepared: null, runId: null }
}

const endings: readonly OnParentEnd[] = ['cancel', 'abandon', 'wait']

function randomUuid(uint32: () => number): string {
  const hex = (value: number): string => value.toString(16).padStart(8, '0')
  const [a, b, c, d] = [hex(uint32()), hex(uint32()), hex(uint32()), hex(uint32())]
  const variant = '89ab'[Number.parseInt(c.charAt(0), 16) & 3] ?? '8'
  return `${a}-${b.slice(0, 4)}-4${b.slice(5)}-${variant}${c.slice(1, 4)}-${c.slice(4)}${d}`
}
