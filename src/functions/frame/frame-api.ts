// What the frame offers to the parts that it is made of: the context that the body speaks to, the step runner and the
// resources. They know this and not the frame.

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
  /** Where calls are made from; null unless somebody wants to know. */
  readonly sites: CallSites | null
  /** Attempts that are running, or about to. */
  busy: number
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
   * The step from inside which the context is being called, also after its function has awaited something; null if it is the
   * body that calls. A replay does not call the functions of recorded steps, so the body must not be spoken for from there.
   */
  readonly inside: string | null

  /** True while the run is held here and its body goes on, if only to tell how its steps are undone. */
  readonly isLive: boolean
  /** What the body says is written to the journal. */
  readonly isWriting: boolean
  /** The run is to be paused or given back: nothing new is begun. */
  readonly isHalting: boolean
  /** The run fails or is being cancelled: what its attempts throw is no news. */
  readonly isEnding: boolean
  /** The run is being cancelled. */
  readonly isCancelled: boolean
  /** Aborts when the body should stop. */
  readonly abortSignal: AbortSignal
  /** As `isLive`; says so once in the log when calls of the body no longer mean anything. */
  admits(): boolean
  /** Takes a step of the body: it settles when the journal has its outcome. */
  enterStep(call: StepCall): void
  /** The body has returned or thrown. */
  readonly hasBodyEnded: boolean
  /** Takes a wait of the body, which may not know yet what it waits on. */
  enterWait(call: WaitCall): void
  /** A wait of the body has just been registered. Its relative times count from the commit of that. */
  registered(call: WaitCall): void
  /** The body awaits it, and it is known what it waits on. */
  openWait(call: WaitCall): void
  /** Takes note of a wait that the body has made: it begins when the turn is over, whether it is awaited or not. */
  made(wait: Wait<unknown>): void
  /** Takes note of a wait that the body has made and not awaited yet. */
  offered(call: FoundCall): void
  /** The body has awaited the wait of that name. */
  taken(name: string): void
  /** A call has failed, and nobody has asked what comes of it, or not yet. */
  unheard(failure: UnhandledFailure): void
  /** The journal has this, and the code does not ask for it. */
  stuckAt(recorded: RecordedEntry): void
  /** Gives the body the outcome of a call, whose entry has just been appended, as soon as its turn comes. */
  markReady(call: Call, outcome: CallOutcome): void
  /** Something happened: once the microtasks that follow from it have run out, see what comes next. */
  scheduleTurn(): void

  /** Tells whether the code that came with that change is in effect in this run. */
  patched(id: string): boolean
  /** Lets the run begin anew; null for as what it is. Settles only if that cannot be. */
  continueAs(target: Definition | null, input: unknown): Promise<never>

  /**
   * The payload of that entry cannot be read, or not be fetched here if that is null: the run is paused, or given back. Going
   * on without it could do work twice, and undo what is fine.
   */
  unreadable(error: unknown, at: RecordedPlace | null): void

  encode(value: unknown, kind: EntryKind, name: string | null): string
  encodeFailure(error: unknown, kind: EntryKind, name: string | null): string
  decode(text: string, entry: Pick<Entry, 'seq' | 'kind' | 'name'>): unknown
}
