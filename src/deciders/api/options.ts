// The options of a decider. The compiler infers all of it from three functions: the state from `initial`, the events from the
// annotation of `evolve`, and from `decide` its inputs (annotated) and what it returns. Functions that use what another one
// says stand after it: the compiler reads them in the order in which they are written.

import type { EffectTools } from '../../core/definition/decider-model.ts'
import type { Duration } from '../../core/definition/duration.ts'
import type { Retry } from '../../core/definition/retry.ts'
import type { Schema } from '../../core/definition/schema.ts'
import type { Typed } from './decision.ts'
import type { IdChecked, IdLike, IdOption } from './identity.ts'
import type { EffectOf, EventOf, InputLiteral, StateLiteral, TimerInputOf } from './outcome-types.ts'
import type { ErasedEvent } from '../../core/definition/decider-model.ts'
import type { ViewOption } from './view-options.ts'
import type { RenamedOption, UpcastChecked, UpcastStateChecked, UpcastStateLike, UpcastLike } from './past-options.ts'

/** All that `decide` may know besides its state and its input. */
export interface DecideTools {
  /** The time of the store in milliseconds since 1970: never later than it is there. */
  readonly now: number
}

/** A timer, as the one who set it knows it. */
export interface DeadTimer<Input extends Typed = Typed> {
  readonly key: string | null
  readonly input: Input
}

/** Repetitions are recognised by the content of an input: the last so many within so much time. */
export interface DedupOptions {
  /** How many inputs are remembered, at most 10,000. */
  readonly last: number
  /** For how long. */
  readonly within: Duration
}

/** How one type of effect is performed. */
export type EffectOption<Effect extends Typed, Input extends Typed> =
  | EffectHandler<Effect, Input>
  | {
      readonly perform: EffectHandler<Effect, Input>
      /** How often a failing effect is tried again. @default that of the decider */
      readonly retry?: Retry
      /** How long one attempt may take. @default no limit */
      readonly timeout?: Duration
      /**
       * Effects of an instance with the same text are performed one after the other, in the order in which they were asked
       * for, also if their types differ. @default null, the order does not matter
       */
      readonly orderBy?: (effect: Effect) => string | null
    }

/** Performs an effect: at least once, with the same idempotency key on every attempt. It may return an input. */
export type EffectHandler<Effect extends Typed, Input extends Typed> = (
  effect: Effect,
  tools: EffectTools,
) => NoInfer<Input> | InputLiteral | void | Promise<NoInfer<Input> | InputLiteral | void>

/** A handler for each type of effect that is asked for. */
export type EffectOptions<Effect extends Typed, Input extends Typed> = {
  readonly [Type in Effect['type']]: EffectOption<Extract<Effect, { readonly type: Type }>, Input>
}

/** All options besides those that the compiler checks in a way of their own. */
interface OwnOptions<State, Input extends Typed, Event extends Typed, Outcome> {
  /** The state of an instance of which nothing has happened yet. */
  readonly initial: () => State
  /**
   * The state after an event. It is pure, and knows every event that `decide` may return or has ever returned: undefined means
   * that it does not.
   */
  readonly evolve: (state: State, event: Event) => NoInfer<State> | StateLiteral
  /** What follows from an input: a `decision`, or a rejection. It is pure: `now` is all that it may know besides. */
  readonly decide: (state: State, input: Input, tools: DecideTools) => Outcome
  /** Whether the instance is over. Its timers are cancelled then, and effects that were asked for are still performed. @default never */
  readonly isTerminal?: (state: State) => boolean
  /**
   * A business key of an instance, read from its first input: only one live instance has it. Null if it needs none.
   * @default none
   */
  readonly uniqueKey?: (input: NoInfer<Input>) => string | null
  /** How each type of effect is performed. */
  readonly effects?: EffectOptions<EffectOf<Outcome>, Input>
  /** How failing effects and timers are tried again. @default 'patient', five attempts */
  readonly retry?: Retry
  /** The input that reports an effect that gave up. @default none, it is only a failed run */
  readonly onDeadLetter?: (effect: EffectOf<Outcome>, error: unknown) => NoInfer<Input> | InputLiteral | void
  /** The input that reports a timer whose input could not be decided. @default none, it is only a dead letter */
  readonly onDeadTimer?: (timer: DeadTimer<Input>, error: unknown) => NoInfer<Input> | InputLiteral | void
  /** Recognises repeated inputs that have no command id of their own. @default only command ids are known */
  readonly dedup?: DedupOptions
  /** Checks events when they are decided and when they are read. Its checks are synchronous. */
  readonly event?: Schema<unknown, Event>
  /** Instances keep the version that they began with. @default 1 */
  readonly version?: number
  /**
   * A number to raise when functions that `evolve` calls change what it makes of the same events: snapshots with another
   * number are not used. The text of `evolve` and `initial` themselves is compared. @default 1
   */
  readonly stateVersion?: number
  /** What event types that were written under another name are called now: `{ Charged: 'Paid' }`. @default none */
  readonly renamed?: RenamedOption<NoInfer<Event>>
  /** After how many entries a snapshot is written; null for never. @default 200 */
  readonly snapshotEvery?: number | null
  /** Each of its instances has these. */
  readonly tags?: readonly string[]
  /**
   * The state after an event whose data subject was erased: only its type is known. It is pure. @default the state before it
   */
  readonly onErased?: (state: State, event: ErasedEvent) => NoInfer<State> | StateLiteral
  /** How people see its states, in pictures and in `inspect`. @default they see the whole state, and no picture */
  readonly view?: ViewOption<State, Input['type'], EffectOf<Outcome>['type']>
}

export interface DeciderOptions<State, Input extends Typed, Event extends Typed, Outcome> extends OwnOptions<
  State,
  Input,
  Event,
  Outcome
> {
  /**
   * Reads events of older forms: for each event type a function for each older version, which makes of it what the next version
   * would have written. What is written has the version after the last of them. @default each event has version 1
   */
  readonly upcast?: UpcastLike
  /** The same for the states in snapshots, by `stateVersion`. @default snapshots of other code are passed over */
  readonly upcastState?: UpcastStateLike
  /** Event types that journals may have and that mean nothing any more: the fold passes over them. @default none */
  readonly retired?: readonly string[]
  /** Which instance an input is for: the name of its field, a function, or one of these for each type of input. */
  readonly id: NoInfer<IdOption<Input>>
  /** Checks the inputs of callers; the decider gets the output of the schema. Any Standard Schema library. */
  readonly input?: Schema<unknown, Input>
}

/** The same, as the compiler infers types from it. The id may be missing at first: it is asked for when `decide` was read. */
interface InferredOptions<State, Input extends Typed, Event extends Typed, Outcome, Sent> extends OwnOptions<
  State,
  Input,
  Event,
  Outcome
> {
  /** Which instance an input is for: the name of its field, a function, or one of these for each type of input. */
  readonly id?: NoInfer<IdLike<Input>>
  /** Checks the inputs of callers; the decider gets the output of the schema. Any Standard Schema library. */
  readonly input?: Schema<Sent, Input>
}

/**
 * What the compiler checks between the options. It checks them once before it has read `decide`: then every event, effect and
 * input is possible, and nothing is wrong.
 */
type Unread = Typed

type HandlersChecked<Outcome> = [EffectOf<Outcome>] extends [never]
  ? { readonly effects?: { readonly [type: string]: 'decide asks for no effect of this type' } }
  : Unread extends EffectOf<Outcome>
    ? unknown
    : { readonly effects: Readonly<Record<EffectOf<Outcome>['type'], unknown>> }

type EventsChecked<Event, Outcome> =
  Unread extends EventOf<Outcome>
    ? unknown
    : [EventOf<Outcome>] extends [Event]
      ? unknown
      : {
          readonly decide: {
            readonly 'decide returns an event that evolve does not take': Exclude<EventOf<Outcome>, Event>
          }
        }

type TimersChecked<Input, Outcome> =
  Unread extends TimerInputOf<Outcome>
    ? unknown
    : [TimerInputOf<Outcome>] extends [Input]
      ? unknown
      : {
          readonly decide: {
            readonly 'a timer brings an input that decide does not take': Exclude<TimerInputOf<Outcome>, Input>
          }
        }

type IdCheckedLate<Input extends Typed, Outcome, Id> = Unread extends EventOf<Outcome> ? unknown : IdChecked<Input, Id>

/** What earlier code wrote. */
export interface PastTypes {
  readonly upcast: unknown
  readonly upcastState: unknown
  readonly retired: string
}

type PastChecked<State, Event extends Typed, Outcome, Past extends PastTypes> =
  Unread extends EventOf<Outcome>
    ? unknown
    : UpcastChecked<Event, Past['upcast']> &
        UpcastStateChecked<State, Past['upcastState']> & {
          readonly retired?: readonly Exclude<Past['retired'], Event['type']>[]
        }

/** The options, and what does not fit between them. `Id` is unknown if there is none. */
export type CheckedOptions<
  State,
  Input extends Typed,
  Event extends Typed,
  Outcome,
  Sent,
  Id,
  Past extends PastTypes,
> = InferredOptions<State, Input, Event, Outcome, Sent> & { readonly id?: Id } & IdCheckedLate<Input, Outcome, Id> &
  HandlersChecked<Outcome> &
  EventsChecked<Event, Outcome> &
  TimersChecked<Input, Outcome> & {
    readonly upcast?: Past['upcast']
    readonly upcastState?: Past['upcastState']
    readonly retired?: readonly Past['retired'][]
  } & PastChecked<State, Event, Outcome, Past>
