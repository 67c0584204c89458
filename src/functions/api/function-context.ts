// The context of one run: each call takes its identity from its scope and goes to the frame. It checks its arguments, and
// decides nothing else.

import type { Topic } from '../../core/definition/declared-topic.ts'
import type { Definition, TypedDefinition } from '../../core/definition/definition.ts'
import type { Duration } from '../../core/definition/duration.ts'
import { HoldfastError } from '../../core/errors/error.ts'
import { callBody, randomFraction, randomUuid } from '../../core/runtime/ports.ts'
import type { Run } from '../../core/model/run.ts'
import { inspected } from '../../core/text/inspect.ts'
import { completionSignal, completionTokenText } from '../../core/completion/completion-token.ts'
import type { Services } from '../../core/definition/services.ts'
import type { StepTools } from '../../core/runtime/attempt.ts'
import { StepCall, type Perform } from '../frame/body-call.ts'
import {
  contextMethods,
  type ChildOptions,
  type Context,
  type Falsy,
  type InputOf,
  type ReceiveOptions,
  type SendOptions,
  type SendTarget,
  type StepOptions,
  type TransactionStepOptions,
  type UntilOptions,
} from './context.ts'
import { completionTokenOfNothing, issueCompletionToken } from './issue-completion-token.ts'
import { insideStep, notAFunction, noTransactions } from './misuse.ts'
import { checkFraction, checkResourceFunctions, checkRun, checkWorkflow } from './call-checks.ts'
import { checkSchema, childSpec, stepSpec } from './call-options.ts'
import { bindMethods } from './bound-methods.ts'
import { leaveBodyDuring } from './leave-body.ts'
import { writeExposed, writeLogged, writeProgress } from './notes.ts'
import { never, rejecting } from './call-promise.ts'
import { waitFrameOf, type CallIdentity } from '../waits/wait-frame.ts'
import { checkName, type Scope } from './call-identity.ts'
import type { FrameParts } from '../frame/frame-parts.ts'
import { encodeNext } from '../replay/journal-text.ts'
import { readRecorded } from '../replay/recorded-value.ts'
import { executeStep } from '../steps/execute-step.ts'
import type { DeciderTypes, Executed, TypedDecider } from '../../core/definition/decider-model.ts'
import { until, untilMs } from './until.ts'
import { send } from '../sends/send-call.ts'
import { broadcastOf, signalContent, signalNameOf } from '../sends/contents.ts'
import type { SendSpec } from '../sends/contents.ts'
import { failedWait } from '../waits/failed-wait.ts'
import { allOf, childOf, raceOf, receiveOf, sleepOf, sleepUntilOf, type WaitSpec } from '../waits/wait-spec.ts'
import { TokenWait, Wait, type WaitFrame } from '../waits/wait.ts'
import type { RunOutcome, SleepResult } from '../waits/wait-case.ts'
import { runCase, signalCase, startCase } from '../waits/wait-case.ts'
import { quotedText } from '../../core/text/printable.ts'

export function createContext(frame: FrameParts, scope: Scope, run: Run): Context {
  const ctx = new FunctionContext<unknown>(frame, scope, { id: run.id, type: run.type, version: run.version })
  return leaveBodyDuring(ctx, contextMethods, frame.state.host.ports)
}

class FunctionContext<Input> implements Context<Input> {
  readonly run: Context['run']
  private readonly frame: FrameParts
  private readonly scope: Scope

  constructor(frame: FrameParts, scope: Scope, run: Context['run']) {
    this.frame = frame
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
    return this.frame.state.host.services as Services
  }

  get abortSignal(): AbortSignal {
    return this.frame.drain.abortSignal
  }

  isCancelled(): boolean {
    return this.frame.state.isCancelled
  }

  step<Result>(
    name: string,
    perform: (step: StepTools) => Result | PromiseLike<Result>,
    options?: StepOptions<NoInfer<Awaited<Result>>>,
  ): Promise<Result> {
    try {
      checkName(name, 'A step')
      if (typeof perform !== 'function') throw notAFunction(`Step ${quotedText(name)}`)
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
      if (typeof perform !== 'function') throw notAFunction(`Transaction ${quotedText(name)}`)
      if (this.frame.state.host.transact === null) throw noTransactions(name)
      const inTransaction: Perform = (step, tx) => perform(tx as never, step)
      return this.enter(name, inTransaction, options as TransactionStepOptions | undefined, true) as Promise<Result>
    })
  }

  private enter(
    name: string,
    perform: Perform,
    options: TransactionStepOptions | undefined,
    isTransaction: boolean,
  ): Promise<unknown> {
    const { state, steps } = this.frame
    const method = isTransaction ? 'transaction' : 'step'
    this.outsideStep(method)
    if (!state.admits()) return never()
    const { policy, places } = state.body
    const spec = options === undefined ? { policy, isTransaction } : stepSpec(name, options, policy, isTransaction)
    const { scope } = this
    const call = new StepCall(scope.next('step', name), name, perform, spec)
    places.note<Context>('step', call.name, scope.nth, this, method)
    if (state.sites !== null) call.place = state.sites.find<Context>(this, method)
    steps.enter(call)
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
    if (typeof body !== 'function') throw notAFunction(`Branch ${quotedText(name)}`)
    this.outsideStep('branch')
    const { ports } = this.frame.state.host
    const ctx = new FunctionContext<Input>(this.frame, this.scope.child(name), this.run)
    return callBody(ports, this.run.type, () => body(leaveBodyDuring(ctx, contextMethods, ports)))
  }

  sleep(duration: Duration): Wait<SleepResult> {
    return this.wait('sleep', () => sleepOf(duration))
  }

  sleepUntil(time: Date | number): Wait<SleepResult> {
    return this.wait('sleepUntil', () => sleepUntilOf(time))
  }

  receive(sender: string | Topic, options: ReceiveOptions<unknown> = {}): Wait<never> {
    const answer = (make: () => SendSpec): Promise<void> => this.send(null, make)
    return this.wait('receive', () => receiveOf(sender, options, answer))
  }

  race(waits: object): Wait<never> {
    return this.wait('race', () => {
      // Checked before any wait of the body is taken.
      this.outsideStep('race')
      return raceOf(waits)
    })
  }

  all(waits: object): Promise<never> {
    return this.promised('all', null, () => {
      this.outsideStep('all')
      return allOf(waits) as Promise<never>
    })
  }

  waitFor<Output>(run: string | { readonly id: string }): Wait<RunOutcome<Output>> {
    return this.wait('waitFor', () => ({ name: 'run', cases: [runCase(checkRun(run, 'ctx.waitFor'))] }))
  }

  child<Output>(workflow: Definition, input?: unknown, options?: ChildOptions): Wait<Output> {
    return this.wait('child', () => childOf(workflow, input, options))
  }

  start(workflow: Definition, input?: unknown, options?: ChildOptions): Promise<{ readonly id: string }> {
    return this.promised('start', null, () => {
      const spec = childSpec('start', workflow, input, options)
      return new Wait<{ readonly id: string }>([startCase(spec)], this.waitFrame(workflow.type, 'start')).then()
    })
  }

  token<Payload>(options: ReceiveOptions<Payload> = {}): TokenWait<Payload> {
    const { state } = this.frame
    try {
      const schema = checkSchema(options, null)
      const frame = this.waitFrame('token', 'token')
      const issued = issueCompletionToken(state, this.scope.next('value', 'token'), (entry) =>
        readRecorded(state, entry),
      )
      const cases = [signalCase(completionSignal(issued.seq), schema)]
      return new TokenWait(completionTokenText(issued), cases, frame)
    } catch (error) {
      return new TokenWait(completionTokenText(completionTokenOfNothing(state)), [], this.failedFrame('token', error))
    }
  }

  expose(name: string, value: unknown): void {
    checkName(name, 'The exposed value')
    const call = this.note('expose')
    if (call !== null) writeExposed(this.frame.state, call, name, value)
  }

  signal(target: SendTarget, named: string | Topic, payload?: unknown): Promise<void> {
    return this.send('signal', () => {
      const name = signalNameOf(named)
      return { name, prepare: (state) => signalContent(state, target, named, payload) }
    })
  }

  broadcast(topic: Topic, payload?: unknown, options: SendOptions = {}): Promise<void> {
    return this.send('broadcast', () => broadcastOf(topic, payload, options))
  }

  execute<Types extends DeciderTypes>(decider: TypedDecider<Types>, input: Types['input']): Promise<Executed<Types>> {
    return this.promised('execute', null, () => {
      this.outsideStep('execute')
      return executeStep<Types>(this, this.frame.state.host, decider, input)
    })
  }

  /** `method` is null for an answer, which is a method of its message. */
  private send(method: 'signal' | 'broadcast' | null, make: () => SendSpec): Promise<void> {
    return this.promised(method ?? 'receive', null, () => {
      this.outsideStep(method ?? 'receive: the answer to its message')
      const { name, ...spec } = make()
      const { state, waits } = this.frame
      if (!state.admits() || state.hasBodyEnded) return never()
      return send(waits, { ...this.identify('send', name, method), ...spec })
    })
  }

  until<Result>(
    name: string,
    check: (step: StepTools) => Result | PromiseLike<Result>,
    options: UntilOptions = {},
  ): Promise<Exclude<Awaited<Result>, Falsy>> {
    return this.promised('until', name, () => {
      checkName(name, 'ctx.until')
      this.outsideStep('until')
      return until(this, name, check, untilMs(name, options, this.frame.state.host))
    })
  }

  now(): Date {
    return new Date(this.record('now', () => this.frame.state.host.now()))
  }

  random(): number {
    return this.record('random', () => randomFraction(this.frame.state.host.ports.random))
  }

  uuid(): string {
    return this.record('uuid', () => randomUuid(this.frame.state.host.ports.random))
  }

  log(message: string, data?: unknown): void {
    if (typeof message !== 'string') throw new HoldfastError('INVALID_OPTION', 'ctx.log needs a text as its message.')
    const name = this.note('log')
    if (name !== null) writeLogged(this.frame.state, name, message, data)
  }

  progress(fraction: number, text?: string): void {
    checkFraction(fraction)
    const name = this.note('progress')
    if (name !== null) writeProgress(this.frame.state, name, fraction, text)
  }

  withResource<Resource, Result>(
    acquire: () => Resource | Promise<Resource>,
    release: (resource: Resource) => unknown,
    use: (resource: Resource) => Promise<Result>,
  ): Promise<Result> {
    return this.promised('withResource', null, () => {
      checkResourceFunctions({ acquire, release, use })
      this.outsideStep('withResource')
      const { ports } = this.frame.state.host
      const body = (resource: Resource): Promise<Result> => callBody(ports, this.run.type, () => use(resource))
      return this.frame.state.admits() ? this.frame.resources.use(acquire, release, body) : never()
    })
  }

  patched(id: string): boolean {
    checkName(id, 'A change')
    this.outsideStep('patched')
    return this.frame.patches.has(id)
  }

  continueAsNew(...[input]: InputOf<Input>): Promise<never> {
    return this.begin('continueAsNew', null, input)
  }

  continueAs<Other>(workflow: TypedDefinition<Other, unknown>, ...[input]: InputOf<Other>): Promise<never> {
    return this.begin('continueAs', workflow, input)
  }

  /** Without a target the run goes on as its own workflow. */
  private begin(method: keyof Context, target: Definition | null, input: unknown): Promise<never> {
    return this.promised(method, null, () => {
      if (method === 'continueAs') checkWorkflow(target, 'ctx.continueAs')
      this.outsideStep(method)
      return this.frame.state.admits() ? this.frame.exit.continueAs(target, input) : never()
    })
  }

  /** The promise of a call: it rejects and never throws, and a rejection that the body does not await is reported. */
  private promised<Value>(method: keyof Context, name: unknown, make: () => Promise<Value>): Promise<Value> {
    const { state, settler } = this.frame
    const { places } = state.body
    const what = typeof name === 'string' ? `ctx.${method} ${quotedText(name)}` : `ctx.${method}`
    places.note<Context>('other', what, 1, this, method)
    return rejecting(make, (promise, error) => {
      settler.unheard({ promise, what, place: places.placeOf({ kind: 'other', name: what }), error })
    })
  }

  /** A wait, like a promise, rejects instead of throwing: in a callback an error that is thrown would end the process. */
  private wait<Value>(method: keyof Context, make: () => WaitSpec): Wait<Value> {
    try {
      const { name, cases } = make()
      return new Wait<Value>(cases, this.waitFrame(name, method))
    } catch (error) {
      return new Wait<Value>([], this.failedFrame(method, error))
    }
  }

  private failedFrame(method: keyof Context, error: unknown): WaitFrame {
    // The function of a step is being called, so this throw ends its attempt, also if it would not await the wait.
    if (this.frame.state.performing !== null) throw error
    return failedWait(error, (make) => this.promised(method, null, make))
  }

  private waitFrame(name: string, method: keyof Context): WaitFrame {
    this.outsideStep(method)
    // The identity is taken when the wait is made: when it begins may depend on promises of the body's own.
    const call = this.identify('wait', name, method)
    // A step that returns a wait has it awaited when it is not being called any more.
    return waitFrameOf(this.frame, call, () => this.refusal(method, 'awaited'))
  }

  /** The next identity of a call, and its place in the code where that is asked for. */
  private identify(kind: 'wait' | 'send', called: string, method: keyof Context | null): CallIdentity {
    const { state } = this.frame
    const name = this.scope.next(kind, called)
    if (method === null) return { name, place: null }
    state.body.places.note<Context>(kind, name, this.scope.nth, this, method)
    return { name, place: state.sites?.find<Context>(this, method) ?? null }
  }

  /** Every call takes the next identity of its kind, so one that a replay will not make would shift all that follow. */
  private outsideStep(method: string): void {
    const refusal = this.refusal(method)
    if (refusal !== null) throw refusal
  }

  private refusal(method: string, verb: 'called' | 'awaited' = 'called'): Error | null {
    const { caller } = this.frame
    return caller === null ? null : insideStep(`ctx.${method}`, caller, verb)
  }

  private record<Value>(name: string, make: () => Value): Value {
    const { state } = this.frame
    this.outsideStep(name)
    const identity = this.scope.next('value', name)
    const recorded = state.history.value(identity)
    if (recorded !== undefined) return readRecorded(state, recorded) as Value
    const value = make()
    if (state.admits() && state.isWriting) {
      const data = encodeNext(state, value, 'recorded', identity)
      state.writer.append({ kind: 'recorded', name: identity, meta: null, data })
      state.scheduleTurn()
    }
    return value
  }

  /** The identity of a note that is not in the journal yet; null if it is, or if this frame does not write. */
  private note(name: 'expose' | 'log' | 'progress'): string | null {
    this.outsideStep(name)
    const identity = this.scope.next('note', name)
    const { state } = this.frame
    const { history, isWriting } = state
    return history.hasNote(identity) || !state.admits() || !isWriting ? null : identity
  }
}

bindMethods(FunctionContext.prototype, contextMethods, (called) => called instanceof FunctionContext)
