// The options that say how events and states of earlier code are read, as the compiler checks them: the functions of a chain
// fit together, and the last one returns what `evolve` takes.

import type { Typed } from './decision.ts'
import type { Literal } from './outcome-types.ts'

/** Makes of an event of one version what the next version would have written. Annotate `old`: without it is unknown. */
type EventUpcaster = { call(old: unknown): Typed | Literal<'an event of the next version'> }['call']

/** For each event type that has changed, a function for each older version: `{ Paid: { 1: …, 2: … } }`. */
export interface UpcastLike {
  readonly [type: string]: { readonly [version: number]: EventUpcaster }
}

type StateUpcaster = { call(old: unknown): unknown }['call']

/** A function for each older `stateVersion`: `{ 1: …, 2: … }`. */
export interface UpcastStateLike {
  readonly [version: number]: StateUpcaster
}

/** The version after each of these. */
type Next = readonly [
  1,
  ...(readonly [
    2,
    3,
    4,
    5,
    6,
    7,
    8,
    9,
    10,
    11,
    12,
    13,
    14,
    15,
    16,
    17,
    18,
    19,
    20,
    21,
    22,
    23,
    24,
    25,
    26,
    27,
    28,
    29,
  ]),
  ...(readonly [30, 31, 32, 33]),
]

type Returned<Step> = Step extends (...given: never[]) => infer Result ? Result : never
type Taken<Step> = Step extends (old: infer Old) => unknown ? Old : never

/** The older versions that a function of a chain leads to nothing with: what it returns does not fit the next one. */
type Misfit<Chain, Last> = {
  [Version in keyof Chain]: Version extends keyof Next & number
    ? Next[Version] extends keyof Chain
      ? Returned<Chain[Version]> extends Taken<Chain[Next[Version]]>
        ? never
        : Version
      : Returned<Chain[Version]> extends Last
        ? never
        : Version
    : never
}[keyof Chain]

type ChainChecked<Chain, Last> = [Misfit<Chain, Last>] extends [never]
  ? unknown
  : {
      readonly [Version in Misfit<Chain, Last> & PropertyKey]: {
        readonly 'does not fit the next version, or evolve': Version
      }
    }

/** What is wrong with the upcasters, as an option that nothing fits. */
export type UpcastChecked<Event extends Typed, Upcast> = {
  readonly upcast?: {
    readonly [Type in keyof Upcast]: Type extends Event['type']
      ? ChainChecked<Upcast[Type], Extract<Event, { readonly type: Type }>>
      : { readonly 'no event has this type now': Type }
  }
}

export type UpcastStateChecked<State, Chain> = { readonly upcastState?: ChainChecked<Chain, State> }

/** Types of events that were, and no longer are. */
export type RenamedOption<Event extends Typed> = Readonly<Record<string, Event['type']>>
