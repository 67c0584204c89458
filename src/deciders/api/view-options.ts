// The option `view`: how people see the states of a decider. It is for pictures and pages alone; nothing is decided by it.

/** A state, as people see it. */
export interface StateInfoOption {
  /** The name of the state in the state machine: `open`. */
  readonly status: string
  /** What else is worth showing. @default nothing */
  readonly fields?: Readonly<Record<string, unknown>>
  /** @default what `isTerminal` of the decider says */
  readonly isTerminal?: boolean
}

/** An input that may be accepted in a state, and what follows. */
export interface TransitionOption<Input extends string = string, Effect extends string = string> {
  readonly input: Input
  /** The status after it. */
  readonly to: string
  /** The types of the effects that it asks for. @default none */
  readonly effects?: readonly Effect[]
  /** The keys of the timers that it sets. @default none */
  readonly timers?: readonly string[]
  readonly description?: string
}

/** The state machine as a whole. */
export interface StateMachineOption<Input extends string = string, Effect extends string = string> {
  /** The status of the initial state. */
  readonly initial: string
  /** The statuses in which an instance is over. @default none */
  readonly terminal?: readonly string[]
  readonly transitions: readonly (TransitionOption<Input, Effect> & { readonly from: string })[]
}

export interface ViewOption<State, Input extends string = string, Effect extends string = string> {
  /** A state in words. It is pure. */
  readonly stateInfo: (state: State) => StateInfoOption
  /** What may follow from a state. It is pure. @default the transitions of `definition` that begin in its status */
  readonly transitions?: (state: State) => readonly TransitionOption<Input, Effect>[]
  /** The whole state machine: it can be drawn without an instance. @default only what instances have done can be drawn */
  readonly definition?: StateMachineOption<Input, Effect>
}
