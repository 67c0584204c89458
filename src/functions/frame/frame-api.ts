// The interface of the frame for its parts: the context that the body calls, the step runner and the resources. They depend
// on this and not on the frame.

import type { Definition, Host } from '../../core/definition/definition.ts'
import type { Entry, EntryKind, FoundCall } from '../../core/model/entry.ts'
import type { RetryPolicy } from '../../core/definition/retry.ts'
import type { Run } from '../../core/model/run.ts'
import type { Call, CallOutcome, StepCall, WaitCall } from './body-call.ts'
import type { CallPlaces, CallSites } from '../replay/call-site.ts'
import type { UnhandledFailure } from '../api/call-promise.ts'
import type { History, RecordedEntry, RecordedPlace } from '../replay/history.ts'
import type { Resources } from '../steps/resources.ts'
import type { IdleCalls } from '../waits/idle-calls.ts'
import type { Undoables } from '../steps/undoables.ts'
import type { Wait } from '../waits/wait.ts'
import type { JournalWriter } from '../../core/runtime/journal-writer.ts'

export interface FrameApi {
  readonly host: Host
  readonly runId: string
  readonly run: Run
  /** The workflow's own policy: the default of its steps. */
  readonly policy: RetryPolicy
  readonly history: History
  readonly writer: JournalWriter
  readonly idleCalls: IdleCalls
  readonly resources: Resources
  readonly undoables: Undoables
  /** Takes note of a child that the run must outlast. */
  readonly outlastedChildren: { add(runId: string): void }
  /** Where calls of the workflow stand in the code. */
  readonly places: CallPlaces
  /** Where calls are made from; null unless the places of calls are wanted. */
  readonly sites: CallSites | null
  /**
   * Waits whose children are being prepared: an input is checked, or put elsewhere. Until they are registered, nothing but the
   * memory of this frame knows of them, so the run neither parks, ends nor begins anew.
   */
  preparing: number
  /** One of those is ready: calls what registers or refuses it, now or when the run goes on. */
  prepared(begin: () => void): void
  /** The body has made waits that have not begun: the frame takes a turn when they have. */
  readonly isMaking: boolean
  /** The step whose function is being called right now. */
  performing: string | null
  /**
   * The step from inside which the context is being called, also after an `await` in its function; null if the body itself
   * calls. A replay does not call the functions of recorded steps, so they must not make calls of the body.
   */
  readonly inside: string | null

  /** True while the run is held here and its body goes on, if only to tell how its steps are undone. */
  readonly isLive: boolean
  /** Calls of the body are written to the journal. */
  readonly isWriting: boolean
  /** The run is to be paused or given back: nothing new is begun. */
  readonly isHalting: boolean
  /** The run fails or is being cancelled: errors of its attempts are not reported. */
  readonly isEnding: boolean
  /** The run is being cancelled. */
  readonly isCancelled: boolean
  /** Aborts when the body should stop. */
  readonly abortSignal: AbortSignal
  /** As `isLive`; logs once when calls of the body no longer mean anything. */
  admits(): boolean
  /** Takes a step of the body: it settles when the journal has its outcome. */
  enterStep(call: StepCall): void
  /** The body has returned or thrown. */
  readonly hasBodyEnded: boolean
  /** Takes a wait of the body, whose conditions may not be known yet. */
  enterWait(call: WaitCall): void
  /** A wait of the body has just been registered. Its relative times count from the commit of that. */
  registered(call: WaitCall): void
  /** The body awaits it, and its conditions are known. */
  openWait(call: WaitCall): void
  /** Takes note of a wait that the body has made: it begins when the turn is over, whether it is awaited or not. */
  made(wait: Wait<unknown>): void
  /** Takes note of a wait that the body has made and not awaited yet. */
  offered(call: FoundCall): void
  /** The body has awaited the wait of that name. */
  taken(name: string): void
  /** A call has failed before the body asked for its outcome. */
  unheard(failure: UnhandledFailure): void
  /** The journal has this, and the code does not ask for it. */
  stuckAt(recorded: RecordedEntry): void
  /** Gives the body the outcome of a call, whose entry has just been appended, as soon as its turn comes. */
  markReady(call: Call, outcome: CallOutcome): void
  /** An event happened: takes a turn once the microtasks that follow from it have run. */
  scheduleTurn(): void

  /** Whether the code that came with that change is in effect in this run. */
  patched(id: string): boolean
  /** Lets the run begin anew; null for the same workflow. Settles only if that is not possible. */
  continueAs(target: Definition | null, input: unknown): Promise<never>

  /**
   * The payload of that entry cannot be read: with PAYLOAD_CORRUPT the run is paused. With any other error, or if `at` is
   * null, it could not be fetched here: the run is given up by this process. Going on without the payload could repeat work,
   * and undo work that succeeded.
   */
  unreadable(error: unknown, at: RecordedPlace | null): void

  encode(value: unknown, kind: EntryKind, name: string | null): string
  encodeFailure(error: unknown, kind: EntryKind, name: string | null): string
  decode(text: string, entry: Pick<Entry, 'seq' | 'kind' | 'name'>): unknown
}
