// The place of a payload, as data. A codec that encrypts binds its text to all of it, so that no text can be read at any
// other place than where it was written. A reader computes the place from its own request (its own run, the wait that it has
// open), and only the rest from the row that it found.
//
// The place of an entry's payload is in its journal. That of a message is where its sender wrote it: in the mailbox of one
// run, or at its topic, which delivers the same text to all subscribers. A receiver encodes the payload anew for its own
// entry.

import type { Draft, Entry, EntryKind } from '../model/entry.ts'
import {
  originOf,
  sentId,
  type Ended,
  type Message,
  sentMessageId,
  type BroadcastMeta,
  type SignalMeta,
} from '../model/message.ts'
import { quotedText } from '../text/printable.ts'

/** Where a payload stands. */
export interface Place {
  /** The name of the database: the schema on Postgres, empty where a store has none. */
  readonly namespace: string
  /** The run of its journal or mailbox; empty for a broadcast of a topic. */
  readonly runId: string
  /** The number of the entry; 0 for a message. */
  readonly seq: number
  readonly kind: PlaceKind
  /** The name of the entry, the signal or the topic. */
  readonly name: string | null
  /** The id of the message; null for an entry, and `asked` for a note that is asked of the holder of a run. */
  readonly id: string | null
}

/** The kind of an entry, or of a message with a payload of its own. */
export type PlaceKind = EntryKind | SignalKind | 'broadcast'

/** The kind of a message that a client sends to a run. */
type SignalKind = 'signal' | 'topic-signal' | 'failure'

/** For codecs that only look at values. */
export const nowhere: Place = { namespace: '', runId: '', seq: 0, kind: 'recorded', name: null, id: null }

/** The payload of a message to a run. */
export function messagePlaceOf(
  namespace: string,
  { kind, runId, name, id }: Pick<Message, 'runId' | 'name' | 'id'> & { readonly kind: SignalKind },
): Place {
  return { namespace, runId, seq: 0, kind, name, id }
}

/**
 * The payload of a broadcast: the same for all its receivers. A message that a run left unread and its topic passes on keeps
 * the place where it was first written: its id shows that.
 */
export function topicPlace(namespace: string, topic: string, id: string): Place {
  const { id: original, runId } = originOf(id)
  if (runId === null) return { namespace, runId: '', seq: 0, kind: 'broadcast', name: topic, id: original }
  return messagePlaceOf(namespace, { kind: 'topic-signal', runId, name: topic, id: original })
}

/** The payload of a signal or broadcast in a mailbox, or of a dead letter. */
export function messagePlace(namespace: string, message: Message): Place {
  const { kind, runId, name, id } = message
  if (kind === 'broadcast') return topicPlace(namespace, name, sentId(message))
  return messagePlaceOf(namespace, {
    kind: kind === 'topic-signal' || kind === 'failure' ? kind : 'signal',
    runId,
    name,
    id,
  })
}

/** The payload of an entry: that of a message which the run sends is read where it arrives. */
export function entryPlace(
  namespace: string,
  runId: string,
  seq: number,
  entry: Pick<Draft | Entry, 'kind' | 'name'> & { readonly meta: unknown },
): Place {
  const { kind, name, meta } = entry
  const id = sentMessageId(runId, seq)
  if (kind === 'broadcast-sent') return topicPlace(namespace, (meta as BroadcastMeta).topic.name, id)
  if (kind !== 'signal-sent' || meta === null) return { namespace, runId, seq, kind, name, id: null }
  const { to, signal, kind: sentAs } = meta as SignalMeta
  return messagePlaceOf(namespace, { kind: sentAs, runId: to, name: signal, id })
}

/** The payload with which that run has ended: that of its last entry. */
export function endPlace(
  namespace: string,
  runId: string,
  { status, seq }: Pick<Exclude<Ended, { status: 'not-found' }>, 'status' | 'seq'>,
): Place {
  return { namespace, runId, seq, kind: status, name: null, id: null }
}

/** The note of a request to pause a held run, made while the last entry of the run was the one before that number. */
export function controlRequestPlace(namespace: string, runId: string, seq: number): Place {
  return { namespace, runId, seq, kind: 'paused', name: null, id: 'requested' }
}

/** The entries that hold a note of a control command. Their key is not needed to perform the run. */
export function holdsNote(kind: PlaceKind): boolean {
  return kind === 'paused' || kind === 'resumed' || kind === 'retried'
}

/** The entries that hold an error: the engine may have written one of its own there, past the codec. */
export function holdsFailure(kind: PlaceKind): boolean {
  return failures.has(kind)
}

const failures: ReadonlySet<PlaceKind> = new Set<PlaceKind>([
  'attempt-failed',
  'step-failed',
  'effect-failed',
  'timer-failed',
  'input-failed',
  'undo-attempt-failed',
  'undo-failed',
  'failing',
  'failed',
])

/** The place in words. */
export function shownPlace({ runId, seq, kind, name, id }: Place): string {
  const quoted = name === null ? '' : ` (${quotedText(name)})`
  if (holdsNote(kind)) return `note of entry ${seq} ("${kind}") of run ${runId}`
  if (id === null) return `entry ${seq}${quoted} of run ${runId}`
  const what = `${kind} ${quotedText(id)}${quoted}`
  return runId === '' ? what : `${what} to run ${runId}`
}
