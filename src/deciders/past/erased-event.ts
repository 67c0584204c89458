// What readers get in place of an event that nobody can read any more.

/** What is left of an event whose data subject was erased. */
export interface ErasedEvent {
  readonly type: string
  readonly erased: true
}
