// The context that the body of a function gets. Every call here is recorded under its identity, so that a replay of the body
// gets the recorded outcome; a call that was not recorded yet happens now.

import type { Transaction } from '../../core/definition/transactions.ts'
import type { DeciderTypes, Executed, TypedDecider } from '../../core/definition/decider-model.ts'
import type { Topic } from '../../core/definition/declared-topic.ts'
import type { Isolation, TypedDefinition } from '../../core/definition/definition.ts'
import type { Duration } from '../../core/definition/duration.ts'
import type { KeyScope } from '../../core/model/key.ts'
import type { Retry } from '../../core/definition/retry.ts'
import type { Schema } from '../../core/definition/schema.ts'
import type { Services } from '../../core/definition/services.ts'
import type { StepTools } from '../../core/runtime/attempt.ts'
import type { AllResult, Joinable, Raceable, RaceResult, TokenWait, Wait } from '../waits/wait.ts'
import type { OnParentEnd, RunOutcome, SleepResult } from '../waits/wait-case.ts'

/**
 * `Known` is the argument of the undo function: the result of a step may be unknown, that of a committed transaction never
 * is.
 */
export interface StepOptions<Result = unknown, Known = Result | undefined> {
  /** How often, and after which delays, a failing step is tried again. @default the workflow's */
  readonly retry?: Retry
  /** How long one attempt may take. @default no limit */
  readonly timeout?: Duration
  /**
   * Undoes the effects of the step, if the run fails or is cancelled later. It gets the result of the step, and is tried as
   * often and as long as the step. The undos of a run happen in the reverse order of its steps, each at least once until it
   * has succeeded or given up.
   *
   * A step whose outcome is unknown is undone, too, with `undefined`: its last attempt timed out, or was aborted and then
   * threw or did not end within `abortGrace`. Identify its effects by the values that you gave it: `step.idempotencyKey` is
   * its own followed by `:undo`. The undo of a transaction always gets the result.
   *
   * @example
   * await ctx.step('book', (step) => book(42, { key: step.idempotencyKey }), { undo: (booking) => unbook(booking?.id ?? 42) })
   */
  readonly undo?: (result: Known, step: StepTools) => unknown
}

/** The options of a step that is a transaction. Its `timeout` counts from when the transaction has begun. */
export interface TransactionStepOptions<Result = unknown> extends StepOptions<Result, Result> {
  /**
   * `serializable`: as if no other transaction of this isolation took place at the same time. One that conflicts with another
   * (SQLSTATE 40001 or 40P01) is rolled back and tried again soon, up to 50 times, and does not count against `retry`.
   * @default READ COMMITTED on Postgres; SQLite has none but serializable
   */
  readonly isolation?: Isolation
}

/**
 * An input that may be left out need not be given. The workflow alone says what its input is: were it inferred from the
 * argument, too, an argument with a field too few would pass.
 */
export type InputOf<Input> = undefined extends Input ? [input?: NoInfer<Input>] : [input: NoInfer<Input>]

export interface ReceiveOptions<Payload> {
  /** Checks the payload when it is received; one that does not fit is INVALID_INPUT. Any Standard Schema library. */
  readonly schema?: Schema<unknown, Payload>
}

export interface MessageOptions<Payload> extends ReceiveOptions<Payload> {
  /** The result is a `Message`, which the body can answer. */
  readonly message: true
}

/** A message that can be answered, once: `holdfast.ask` gets the answer. */
export interface Message<Payload = unknown> {
  /** The id with which it was sent. */
  readonly id: string
  readonly value: Payload
  /** Answers, with the commit that records it. Throws ALREADY_ANSWERED the second time. */
  reply(value?: unknown): Promise<void>
  /** Answers with an error: the caller of `holdfast.ask` gets ASK_REFUSED, with that error as its cause. */
  refuse(error: unknown): Promise<void>
}

export interface ChildOptions {
  /**
   * What happens to the child when this run ends first: it is cancelled, or left alone, or this run does not end before it
   * has.
   * @default 'cancel' for `ctx.child`, 'abandon' for `ctx.start`
   */
  readonly onParentEnd?: OnParentEnd
  /** The business key: a live run that has it keeps this one from starting (CHILD_REFUSED). */
  readonly key?: string
  readonly scope?: KeyScope
  readonly idempotencyKey?: string
  /** Which version of the workflow. @default the one that is given */
  readonly version?: number
  readonly tags?: readonly string[]
  readonly metadata?: Readonly<Record<string, unknown>>
  readonly maxAttempts?: number
  /** Higher goes first. @default 0 */
  readonly priority?: number
  /** Not begun before this point in time. @default at once */
  readonly runAt?: Date
  /** Not begun before this much time has passed, by the store's clock. Not together with `runAt`. @default none */
  readonly delay?: Duration
  readonly timeout?: Duration
  readonly expiresIn?: Duration
}

/** The arguments of `ctx.child` and `ctx.start` after the workflow. */
type ChildArguments<Input> = undefined extends Input
  ? [input?: NoInfer<Input>, options?: ChildOptions]
  : [input: NoInfer<Input>, options?: ChildOptions]

export interface UntilOptions {
  /** How long to wait between two checks. @default `untilInterval` of `createHoldfast`, 1 h */
  readonly every?: Duration
}

/** A run by its business key: the live one of that workflow that has it, else the one that had it last. */
export type KeyedTarget =
  | { readonly type: string; readonly key: string }
  | { readonly workflow: string | { readonly type: string }; readonly key: string }

/** The run that a signal is for: its id, its handle, or its key. */
export type SendTarget = string | { readonly id: string } | KeyedTarget

export interface SendOptions {
  /** No run gets the broadcast after that time, counted from the commit. @default never */
  readonly expiresIn?: Duration
}

export type Falsy = false | 0 | 0n | '' | null | undefined

/**
 * The context that the body of a run gets. `Input` is the input of its workflow, as `start` takes it. Inside a step only
 * `run`, `services`, `abortSignal` and `isCancelled` may be used: a replay does not call the functions of recorded steps, and
 * would miss any other call.
 */
export interface Context<Input = unknown> {
  /** The run that this is. */
  readonly run: { readonly id: string; readonly type: string; readonly version: number }
  readonly services: Services
  /** Aborts when the run is being cancelled, fails or has no time left, when it has ended, and when it goes on elsewhere. */
  readonly abortSignal: AbortSignal
  /** True once the run is being cancelled: for bodies that do their work without steps. */
  isCancelled(): boolean

  /**
   * Runs `perform` once and records its result; from then on, and on every replay, this call returns the recorded result.
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
   * A step whose writes to your own tables and whose result are committed together, exactly once: `tx` is a transaction of
   * the database that holds the runs. It is committed when the function has returned, and rolled back when it throws; then it
   * is tried again like any step. Await every query that uses `tx`, and leave its end to Holdfast. When its timeout is over
   * it is rolled back and its connection closed, even while the function is running.
   *
   * @example
   * await ctx.transaction('book', async (tx) => {
   *   await tx.query('insert into bookings (order_id) values ($1)', [order.id])
   * })
   */
  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- a workflow that declares nothing may still name a type here
  transaction<Result, Tx = Transaction>(
    name: string,
    perform: (tx: Tx, step: StepTools) => Result | PromiseLike<Result>,
    options?: TransactionStepOptions<NoInfer<Awaited<Result>>>,
  ): Promise<Result>

  /**
   * Has an input decided by the instance of a decider that it names, exactly once: it is a step, whose idempotency key is the id
   * of the command. The state in the answer is recorded with it.
   *
   * @example
   * const answer = await ctx.execute(order, { type: 'Pay', orderId: '42', amount: 99 })
   */
  execute<Types extends DeciderTypes>(decider: TypedDecider<Types>, input: Types['input']): Promise<Executed<Types>>

  /** Runs part of the body in a scope of its own, so that its calls keep their identity regardless of calls beside it. */
  branch<Result>(name: string, body: (ctx: Context<Input>) => Result | PromiseLike<Result>): Promise<Result>

  /**
   * Waits for a time, which counts from when this was called, whether it is awaited at once or later. The run holds no slot
   * and no lease meanwhile, and survives any restart.
   */
  sleep(duration: Duration): Wait<SleepResult>
  sleepUntil(time: Date | number): Wait<SleepResult>

  /**
   * Waits for a signal of that name, or for a broadcast to that topic. Earlier messages are found: first the oldest that was
   * sent to this run, otherwise the oldest that the topic delivered. No message is taken before this is awaited. It waits for
   * as long as it takes: for a timeout, race it with `ctx.sleep`.
   *
   * @example
   * const { by } = await ctx.receive('approved', { schema: z.object({ by: z.string() }) })
   * const question = await ctx.receive<string>('ask', { message: true }) // of holdfast.ask(run, 'ask', 'how much?')
   * await question.reply(42)
   */
  receive<Sent>(sender: Topic<Sent>): Wait<Sent>
  receive<Sent>(sender: Topic<Sent>, options: MessageOptions<Sent>): Wait<Message<Sent>>
  receive<Payload>(sender: string | Topic, options: MessageOptions<Payload>): Wait<Message<Payload>>
  receive<Payload>(sender: Topic, options: ReceiveOptions<Payload>): Wait<Payload>
  // The last: a call that fits none is explained by this one.
  receive<Payload = unknown>(sender: string, options?: ReceiveOptions<Payload>): Wait<Payload>

  /**
   * Waits for the first of these that comes true. Of messages of one millisecond the one that arrived first wins; equal times
   * go to the one that is named first. The others are withdrawn: their messages stay for the next wait, and a child goes on.
   * Steps cannot be raced, because they run to their end.
   *
   * @example
   * const { tag, value } = await ctx.race({ approved: ctx.receive('approved'), late: ctx.sleep('2 days') })
   */
  race<const Waits extends object>(waits: Waits & Raceable<Waits>): Wait<RaceResult<Waits>>

  /** Waits for all of these, a list or an object, and fails with the first that does. For steps there is `Promise.all`. */
  all<const Waits extends readonly unknown[] | Readonly<Record<string, unknown>>>(
    waits: Waits & Joinable<Waits>,
  ): Promise<AllResult<Waits>>

  /** Waits for the end of a run of any workflow, and says how it ended. An unknown run is RUN_NOT_FOUND. */
  waitFor<Output = unknown>(run: string | { readonly id: string }): Wait<RunOutcome<Output>>

  /**
   * Starts a run of a workflow, once, and waits for its result. It is started by this call, with the next commit, also if it
   * is awaited later or never. If the child fails, this rejects with CHILD_FAILED and the child's error as the cause;
   * CHILD_CANCELLED and CHILD_REFUSED say why there is no result.
   *
   * @example
   * const invoice = await ctx.child(makeInvoice, { order: 42 }, { onParentEnd: 'wait' })
   */
  child<Input, Output>(workflow: TypedDefinition<Input, Output>, ...rest: ChildArguments<Input>): Wait<Output>

  /** Starts a run of a workflow, once, and goes on without it. */
  start<Input>(
    workflow: TypedDefinition<Input, unknown>,
    ...rest: ChildArguments<Input>
  ): Promise<{ readonly id: string }>

  /**
   * A wait that an external system completes, once, with `holdfast.complete(token, value)` and the completion token of the wait.
   *
   * @example
   * const approval = ctx.token({ schema: z.boolean() })
   * await ctx.step('ask', () => mail(`https://example.com/approve/${approval.token}`))
   * const isApproved = await approval
   */
  token<Payload = unknown>(options?: ReceiveOptions<Payload>): TokenWait<Payload>

  /**
   * Sends a signal to another run, or to this one, with the commit that records this call: once, however often the body is
   * replayed. Resolves when it is recorded. A target that does not exist or has ended fails nothing; one whose mailbox is full
   * gets the signal when there is room.
   *
   * @example
   * await ctx.signal({ type: 'shop.parcel', key: order.id }, 'paid', { by: 'Ada' })
   */
  signal<Payload>(target: SendTarget, topic: Topic<Payload>, payload: Payload): Promise<void>
  signal(target: SendTarget, name: string, payload?: unknown): Promise<void>

  /** Sends to a topic in the same way: to every run that waits on it, or to one, as the topic says. */
  broadcast<Payload>(topic: Topic<Payload>, payload: Payload, options?: SendOptions): Promise<void>

  /**
   * Publishes a value: `holdfast.query(run, name)` returns the last one, also after the end of the run. If a value cannot be
   * stored, the reason is shown instead.
   */
  expose(name: string, value: unknown): void

  /**
   * Polls until a condition is true: `check` is a step, and its result is the result of the call if it is truthy. It is
   * checked again at an interval, and at once when a signal of that name comes.
   *
   * @example
   * const file = await ctx.until('file-there', () => findFile('/in/orders.csv'), { every: '10 min' })
   */
  until<Result>(
    name: string,
    check: (step: StepTools) => Result | PromiseLike<Result>,
    options?: UntilOptions,
  ): Promise<Exclude<Awaited<Result>, Falsy>>

  /** The time, the same on every replay. */
  now(): Date
  /** A number in [0, 1), the same on every replay. */
  random(): number
  /** A random id, the same on every replay. */
  uuid(): string

  /**
   * Writes a line to the run's journal and to the logger, once, however often the body is replayed. Of data that cannot be
   * stored the reason is written instead.
   */
  log(message: string, data?: unknown): void
  /** Reports how far the run is, from 0 to 1. */
  progress(fraction: number, text?: string): void

  /**
   * True if the code that came with that change is to run here: in every run that has not yet come past this point. Keep
   * both ways in the code until no run needs the old one.
   *
   * @example
   * if (ctx.patched('check-stock')) await ctx.step('check', () => check(order))
   */
  patched(id: string): boolean

  /**
   * Ends the body, as `return` does, and begins the run anew, under the same id, with a new input and without its history.
   * Every step that the body has called takes place before. Steps of the time before are not undone any more: `undo` covers the
   * steps since the last `continueAsNew`.
   */
  continueAsNew(...input: InputOf<Input>): Promise<never>
  /** As `continueAsNew`, but as a run of another workflow. */
  continueAs<Other>(workflow: TypedDefinition<Other, unknown>, ...input: InputOf<Other>): Promise<never>

  /**
   * Lends a resource to `use`: acquired anew on every replay, released also when the run is parked meanwhile. A release that
   * takes longer than 10 s is not waited for any longer, and logged as an error.
   */
  withResource<Resource, Result>(
    acquire: () => Resource | Promise<Resource>,
    release: (resource: Resource) => unknown,
    use: (resource: Resource) => Promise<Result>,
  ): Promise<Result>
}

/** The methods of a context. */
export const contextMethods: readonly (keyof Context)[] = [
  'isCancelled',
  'step',
  'transaction',
  'branch',
  'sleep',
  'sleepUntil',
  'receive',
  'race',
  'all',
  'waitFor',
  'child',
  'start',
  'token',
  'signal',
  'broadcast',
  'execute',
  'expose',
  'until',
  'now',
  'random',
  'uuid',
  'log',
  'progress',
  'withResource',
  'patched',
  'continueAsNew',
  'continueAs',
]
