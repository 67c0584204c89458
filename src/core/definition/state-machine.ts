// What people see of a decider: the status of a state, and the state machine that it describes. All of it is declared by the
// author (`view`), and nothing is decided by it.

/** A state in the words of its author. */
export interface StateInfo {
  /** The name of the state in the state machine: `open`. */
  readonly status: string
  /** What else is worth showing. */
  readonly fields: Readonly<Record<string, unknown>>
  /** The instance is over. */
  readonly isTerminal: boolean
}

/** An input that may be accepted in a state, and what follows. */
export interface TransitionInfo {
  /** The type of the input. */
  readonly input: string
  /** The status after it. */
  readonly to: string
  /** Types of effects. */
  readonly effects: readonly string[]
  /** Keys of timers that are set. */
  readonly timers: readonly string[]
  readonly description: string | null
}

/** A transition with the status that it begins in. */
export type MachineTransition = TransitionInfo & { readonly from: string }

/** The whole state machine, as it is meant. */
export interface StateMachine {
  readonly initial: string
  readonly terminal: readonly string[]
  readonly transitions: readonly MachineTransition[]
}

/** The `view` of a decider, checked. Its functions throw INVALID_OPTION if the author's fail, or return something else. */
export interface DeciderView {
  stateInfo(state: unknown): StateInfo
  /** What may follow from this state. */
  transitions(state: unknown): readonly TransitionInfo[]
  /** Null if it is not declared as a whole. */
  readonly definition: StateMachine | null
}
