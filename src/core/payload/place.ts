// Where a payload stands, as data. A codec that encrypts binds its text to all of it, so that no text can be read anywhere but
// where it was written. Whoever reads computes the place from what it asked for (its own run, the wait that it has open), and
// only the rest from the row that it found.
//
// An entry's payload stands in its journal. A message's stands where its sender wrote it: in the mailbox of one run, or at its
// topic, which passes the same text on to everybody. Who receives something writes it anew for its own entry.

import type { EntryKind } from '../model/entry.ts'
import { originOf, sentId, type Ended, type Message } from '../model/message.ts'

/** Where a payload stands. */
export interface Place {
  /** The name of the database: the schema on Postgres, empty where a store has none. */
  readonly namespace: string
  /** The run in whose journal or mailbox it stands; empty for what was sent to a topic. */
  readonly runId: string
  /** The number of the entry; 0 for a message. */
  readonly seq: number
  readonly kind: PlaceKind
  /** The name of the entry, the signal or the topic. */
  readonly name: string | null
  /** The id of the message; null for an entry, and `asked` for a note that is asked of the holder of a run. */
  readonly id: string | null
}

/** What an entry is, or a message with a payload of its own. */
export type PlaceKind = EntryKind | 'signal' | 'topic-signal' | 'broadcast'

/** For codecs that only look at values. */
export const nowhere: Place = { namespace: '', runId: '', seq: 0, kind: 'recorded', name: null, id: null }

/** The payload of something that is sent to a run. */
export function messagePlaceOf(
  namespace: string,
  { kind, runId, name, id }: Pick<Message, 'runId' | 'name' | 'id'> & { readonly kind: 'signal' | 'topic-signal' },
): Place {
  return { namespace, runId, seq: 0, kind, name, id }
}

/**
 * The payload of something that is sent to a topic: the same for everybody who gets it. What a run left unread and its topic
 * passes on stands where it was first written: its id tells.
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
  return messagePlaceOf(namespace, { kind: kind === 'topic-signal' ? kind : 'signal', runId, name, id })
}

/** The payload with which that run has ended: what its last entry holds. */
export function endPlace(
  namespace: string,
  runId: string,
  { status, seq }: Pick<Exclude<Ended, { status: 'not-found' }>, 'status' | 'seq'>,
): Place {
  return { namespace, runId, seq, kind: status, name: null, id: null }
}

/** A note of who asks the holder of a run to pause it, while the run stood at the entry before that number. */
export function askedPlace(namespace: string, runId: string, seq: number): Place {
  return { namespace, runId, seq, kind: 'paused', name: null, id: 'asked' }
}

/** The entries that hold a note of somebody who controls a run. Nobody needs its key to perform the run. */
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
  'undo-attempt-failed',
  'undo-failed',
  'failing',
  'failed',
])

/** The place in words. */
export function shownPlace({ runId, seq, kind, name, id }: Place): string {
  const quoted = name === null ? '' : ` (${JSON.stringify(name)})`
  if (holdsNote(kind)) return `note of entry ${seq} ("${kind}") of run ${runId}`
  if (id === null) return `entry ${seq}${quoted} of run ${runId}`
  const what = `${kind} ${JSON.stringify(id)}${quoted}`
  return runId === '' ? what : `${what} to run ${runId}`
}
