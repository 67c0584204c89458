// What the frame offers to the parts that it is made of: the context that the body speaks to, the step runner and the
// resources. They know this and not the frame.

import type { Definition, Host } from '../core/definition.ts'
import type { RetryPolicy } from '../core/retry.ts'
import type { Call, CallOutcome, StepCall, WaitCall } from './call.ts'
import type { CallSites } from './call-site.ts'
import type { History, RecordedEntry } from './history.ts'
import type { Resources } from './resources.ts'
import type { Resting } from './resting.ts'
import type { Undoables } from './undoables.ts'
import type { Writer } from '../core/writer.ts'

export interface Stage {
  readonly host: Host
  readonly runId: string
  /** The workflow's own policy: the default of its steps. */
  readonly policy: RetryPolicy
  readonly history: History
  readonly writer: Writer
  readonly resting: Resting
  readonly resources: Resources
  readonly undoables: Undoables
  /** Takes note of a child that the run must outlast. */
  readonly dependants: { add(runId: string): void }
  /** Where calls are made from; null unless somebody wants to know. */
  readonly sites: CallSites | null
  /** Attempts that are running, or about to. */
  busy: number
  /** The step whose function is being called right now: the body must not be spoken for from inside it. */
  performing: string | null

  /** True while the run is held here and its body goes on, if only to tell how its steps are undone. */
  readonly isLive: boolean
  /** What the body says is written to the journal. */
  readonly isWriting: boolean
  /** The run is to be paused: nothing new is begun. */
  readonly isPausing: boolean
  /** The run is being cancelled. */
  readonly isCancelled: boolean
  /** Aborts when the body should stop. */
  readonly abortSignal: AbortSignal
  /** As `isLive`; says so once in the log when calls of the body no longer mean anything. */
  admits(): boolean
  /** Takes a step of the body: it settles when the journal has its outcome. */
  enterStep(call: StepCall): void
  /** Takes a wait of the body, which may not know yet what it waits on. */
  enterWait(call: WaitCall): void
  /** A wait of the body has been registered. Its relative times count from the commit of that. */
  openWait(call: WaitCall): void
  /** The journal has this, and the code does not ask for it. */
  stuckAt(recorded: RecordedEntry): void
  /** Gives the body the outcome of a call, whose entry has just been appended, as soon as its turn comes. */
  ripen(call: Call, outcome: CallOutcome): void
  /** Something happened: once the microtasks that follow from it have run out, see what comes next. */
  stir(): void

  /** Tells whether the code that came with that change is in effect in this run. */
  patched(id: string): boolean
  /** Lets the run begin anew; null for as what it is. Settles only if that cannot be. */
  continueAs(target: Definition | null, input: unknown): Promise<never>

  /** What was recorded cannot be read any more: the run fails. */
  unreadable(error: unknown): void

  encode(value: unknown, name: string | null): string
  encodeFailure(error: unknown, name: string | null): string
  decode(text: string, seq: number, name: string | null): unknown
}
