// The state of an exported instance, for those who fold its journal later.

/** The state that an instance had when it was exported. */
export interface KeptState {
  /** The number of the last entry that it is folded of. */
  readonly seq: number
  /** The `stateVersion` of the code that folded it. */
  readonly stateVersion: number
  readonly state: unknown
}
