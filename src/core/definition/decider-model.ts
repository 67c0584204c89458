// The interface between the decider style and the engine: how the journal of an instance is folded, and what follows from
// inputs. All of it is pure and synchronous; it writes nothing. The engine reads the journal, offers inputs, commits what was
// decided, and says whether that was committed. It knows nothing else of the style.
//
// An instance may have several batches that are decided and not committed: they were decided one after the other, and are
// committed in that order, or all of them are rolled back.
//
//   decide → pending    the entries of the batch are folded, but have no time yet: no timer of theirs is due
//   pending → durable   `committed`: the first pending batch has its time
//   pending → forgotten `rollBack`: the store has refused it, and with it all that were decided on top of it

import type { HoldfastError } from '../errors/error.ts'
import type { Due } from '../model/due.ts'
import type { AttemptMeta, Draft, Entry, EventMeta, InputMeta } from '../model/entry.ts'
import type { NewRun } from '../model/new-run.ts'
import type { Payloads } from '../payload/payload.ts'
import type { Ports } from '../runtime/ports.ts'
import type { Definition, Host } from './definition.ts'
import type { RetryPolicy } from './retry.ts'
import type { Services } from './services.ts'
import type { DeciderView } from './state-machine.ts'

/** A workflow whose runs are instances of a decider. */
export interface DeciderDefinition extends Definition {
  readonly style: 'decider'
  readonly model: DeciderModel
}

/** The types of a decider. */
export interface DeciderTypes {
  readonly state: unknown
  /** What callers pass: inputs that name an instance, as they are before they are checked. */
  readonly input: unknown
  /** What `decide` takes: also what comes from timers and effects. */
  readonly anyInput: unknown
  readonly event: unknown
  readonly effect: unknown
  readonly rejection: unknown
}

/** A decider whose types the compiler knows. */
export interface TypedDecider<Types extends DeciderTypes = DeciderTypes> extends DeciderDefinition {
  /** Only for the compiler; there is no such value. */
  readonly types?: Types & { readonly output: Types['state'] }
}

/** What became of an input. */
export type Executed<Types extends DeciderTypes = DeciderTypes> =
  /** These events followed. `state` is the state after them; of a repeated command, the state now. */
  | { readonly outcome: 'accepted'; readonly events: readonly Types['event'][]; readonly state: Types['state'] }
  | { readonly outcome: 'rejected'; readonly rejection: Types['rejection'] }
  /** The instance was over before: nothing was decided. */
  | { readonly outcome: 'already-completed' }

export function isDecider(definition: Definition): definition is DeciderDefinition {
  return definition.style === 'decider' && 'model' in definition
}

/** A decider, as the engine sees it. */
export interface DeciderModel {
  readonly type: string
  /** The id of the instance that an input is for. Throws INVALID_INPUT. */
  idOf(input: unknown): string
  /** The business key of an instance that begins with this input; null if it has none. Throws INVALID_INPUT. */
  uniqueKeyOf(input: unknown): string | null
  /** How a type of effect is performed; undefined if it is not. */
  effect(type: string): EffectModel | undefined
  /** The types of effects that it performs. */
  readonly effectTypes: readonly string[]
  /** How people see its states; null if its author does not say. */
  readonly view: DeciderView | null
  /** What an event type that was written is called now; null if it is retired. */
  presentType(written: string): string | null
  /** An event as `evolve` gets it; null if its type is retired, which is not even read. Throws EVENT_UNREADABLE. */
  readEvent(event: RecordedEvent, instanceId: string): { readonly event: unknown } | null
  /** The `stateVersion` of this code. */
  readonly stateVersion: number
  /** The state in the value of a snapshot; null if it is none. */
  snapshotState(value: unknown): { readonly state: unknown } | null
  /** A state of that version as this code has it; null if it is meant to be another. Throws what an upcaster throws. */
  presentState(state: unknown, stateVersion: number): { readonly state: unknown } | null
  /** An instance of which nothing is known yet: its journal is applied, or its first input offered. */
  open(options: InstanceOptions): DeciderInstance
}

/** What is left of an event whose data subject was erased. */
export interface ErasedEvent {
  readonly type: string
  readonly erased: true
}

/** An event as its entry has it. */
export interface RecordedEvent {
  readonly seq: number
  /** The type under which it was written. */
  readonly name: string | null
  readonly meta: EventMeta | null
  /** Throws if its text cannot be read. */
  readonly read: () => unknown
}

/** How effects of one type are performed. */
export interface EffectModel {
  readonly policy: RetryPolicy
  readonly timeoutMs: number | null
  /** Calls the handler. Its result is the input that follows; undefined if there is none. */
  perform(effect: unknown, tools: EffectTools): unknown
}

/** The second argument of the handler of an effect. */
export interface EffectTools {
  /** The same on every attempt. */
  readonly effectId: string
  readonly workflow: { readonly type: string; readonly id: string }
  /** 1 for the first. */
  readonly attempt: number
  readonly isRetry: boolean
  /** `type:id:effectId`, the same on every attempt: pass it to the services that you call. */
  readonly idempotencyKey: string
  /** When the effect was asked for. */
  readonly createdAt: Date
  readonly abortSignal: AbortSignal
  /** Says that the attempt is alive: its timeout and its lease count anew. Throws if the attempt was aborted. */
  heartbeat(): void
  readonly services: Services
}

export interface InstanceOptions {
  readonly runId: string
  /** The id of the instance, as its inputs name it. */
  readonly id: string
  readonly payloads: Payloads
  readonly ports: Pick<Ports, 'digest' | 'random' | 'bodies'>
  /** Checks and encodes the runs that decisions start. @default they are not checked: for tests and replays */
  readonly prepare?: Host['prepare']
}

export interface DeciderInstance {
  /** The number of the last entry that was folded, pending ones included; 0 while there is none. */
  readonly seq: number
  /** The fold of its events. */
  readonly state: unknown
  /** Its first input was accepted. */
  readonly hasBegun: boolean
  /** Its end is recorded, or its state is terminal: no input is decided any more. */
  readonly isOver: boolean
  /** The timers that are armed, without order. */
  readonly timers: readonly ArmedTimer[]
  /** The effects that have no outcome yet, in the order in which they were asked for. */
  readonly effects: readonly PendingEffect[]
  /** The name of the pending effect that a run performs, or that has given up and may be tried again; null if none is. */
  effectOf(runId: string): string | null
  /**
   * Folds entries whose texts are at hand (`Payloads.fetch`), in order, from the base or from after the last that was folded.
   * `stale`: they begin with a snapshot that other code has made, and nothing was folded: read from the first entry. Throws
   * EVENT_UNREADABLE; the instance is of no use after that.
   */
  apply(entries: readonly Entry[]): 'folded' | 'stale'
  /** Decides inputs in order, and the timers that are due among them. */
  decide(offers: readonly Offer[], options: { readonly now: number }): Decided
  /** The first pending batch is committed, at that store time. */
  committed(at: number): void
  /** No pending batch will be committed. */
  rollBack(): void
  /** The command that was decided under this id; null if it is not known. */
  find(command: string): KnownCommand | null
  /** The answer to the repetition of a known command, from the entries of its first decision: from `seq` on. */
  recall(known: KnownCommand, entries: readonly Entry[]): Accepted | Rejected | Failed
}

/** An input for an instance, or the outcome of an effect. */
export type Offer =
  /** A client wants it decided now. `command` makes its repetition harmless; null if there is no id. */
  | { readonly kind: 'call'; readonly input: unknown; readonly command: string | null }
  /** It came into the mailbox at that time; its id is the id of its command. `read` throws if it cannot be read. */
  | { readonly kind: 'message'; readonly id: string; readonly at: number; readonly read: () => unknown }
  /** A side effect was performed, and returned this. `message` is the id of the message that reports it, if one does. */
  | {
      readonly kind: 'performed'
      readonly name: string
      readonly message?: string
      readonly meta: AttemptMeta
      readonly result: unknown
    }
  /** A side effect gave up, with the error of its last attempt. */
  | {
      readonly kind: 'gave-up'
      readonly name: string
      readonly message?: string
      readonly meta: AttemptMeta
      readonly error: unknown
    }

export interface Accepted {
  readonly outcome: 'accepted'
  readonly events: readonly unknown[]
  /** The state after them; of a repeated command, the state now. */
  readonly state: unknown
}

export interface Rejected {
  readonly outcome: 'rejected'
  readonly rejection: unknown
}

/** `decide` or `evolve` threw, or what was decided cannot be recorded. */
export interface Failed {
  readonly outcome: 'failed'
  readonly error: HoldfastError
}

/** What became of an offer. */
export type Answer =
  | Accepted
  | Rejected
  | Failed
  | { readonly outcome: 'already-completed' }
  /** Its command is known. `first` is the answer to it; null if that is to be read from the journal: `recall`. */
  | { readonly outcome: 'duplicate'; readonly of: KnownCommand; readonly first: Accepted | Rejected | Failed | null }
  /** The outcome of an effect is recorded, and no input follows from it. */
  | { readonly outcome: 'settled' }
  /** The effect has its outcome already: nothing is recorded. */
  | { readonly outcome: 'unknown-effect' }

/** A command that was decided. */
export interface KnownCommand {
  /** The number of its input entry. */
  readonly seq: number
  readonly outcome: InputMeta['outcome']
}

/** A batch that was decided. */
export interface Decided {
  /** One answer for each of the first offers, in order; the others did not fit into one transition: offer them again. */
  readonly answers: readonly Answer[]
  /** What became of the input that the run was started with, if it was decided now. */
  readonly begun: Answer | null
  /** What became of the timers that were due. */
  readonly fired: readonly { readonly name: string; readonly answer: Answer }[]
  /** A timer that is due did not fit in, or an offer: there is more to decide at once. */
  readonly isCut: boolean
  /** The entries after the last pending one, with the texts of the codec. Nothing is to be committed if there are none. */
  readonly append: readonly Draft[]
  /** Ids of the messages that were decided. */
  readonly takes: readonly string[]
  /** Names of the effects whose outcome is recorded. */
  readonly settles: readonly string[]
  readonly effects: readonly EffectRequest[]
  readonly starts: readonly StartRequest[]
  readonly signals: readonly SignalRequest[]
  /** When its next timer is due, pending ones counted from this commit; null if there is none. */
  readonly due: Due | null
  /** The instance is over with this batch: the last entry says so. */
  readonly end: 'succeeded' | 'failed' | null
  /** The number of the snapshot among the entries, to which `base` may move; null if there is none. */
  readonly snapshotAt: number | null
}

export interface EffectRequest {
  /** The number of its entry. It is its identity within the instance. */
  readonly seq: number
  /** `charge#17`. */
  readonly name: string
  readonly type: string
  readonly idempotencyKey: string
  readonly effect: unknown
  /** Effects of an instance with the same order key are performed one after the other; null if the order does not matter. */
  readonly order: string | null
}

export interface StartRequest {
  /** The number of the entry that records it. */
  readonly seq: number
  readonly workflow: Definition | string
  readonly input: unknown
  readonly options: Readonly<Record<string, unknown>>
  /** The run, checked; a promise while its input is being offloaded. Null if nothing can be started here. */
  readonly run: NewRun | Promise<NewRun> | null
}

export interface SignalRequest {
  /** The number of the entry that records it. */
  readonly seq: number
  readonly to: string | { readonly workflow: Definition | string; readonly key: string }
  readonly name: string
  readonly payload: unknown
}

export interface ArmedTimer {
  /** Its key, or `#17`. */
  readonly name: string
  readonly key: string | null
  /** In store time; null while the commit that armed it is pending and it counts from that. */
  readonly dueAt: number | null
  /** How often its input could not be decided. */
  readonly failures: number
}

export interface PendingEffect {
  readonly name: string
  readonly type: string
  /** The number of its entry. */
  readonly seq: number
  /** The time of the commit that asked for it; null while that is pending. */
  readonly createdAt: number | null
}
