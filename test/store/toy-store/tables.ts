// What the toy store keeps: a map or a list for everything that a database would have a table for. Rows are never changed in
// place; a new one takes the place of the old one.

import {
  fedCount,
  Hints,
  hintsOf,
  longestFirst,
  type Broadcast,
  type ChoreRow,
  type DeliveryOutcome,
  type Draft,
  type Entry,
  type Fate,
  type Message,
  type PayloadRewrite,
  type Run,
  type RunState,
  type WaitRow,
} from 'holdfast/store'

/** A message as it is kept: what its sender was answered, which entry took it, and what became of it if none did. */
export interface StoredMessage {
  readonly message: Message
  readonly outcome: DeliveryOutcome
  readonly takenBy: number | null
  readonly fate: Fate | null
}

export interface Session {
  readonly aliveUntil: number
  readonly endedAt: number | null
}

export class Tables {
  readonly runs = new Map<string, Run>()
  /** By run: what it was when it was started. Its idempotency key belongs to that, also when it goes on as another type. */
  readonly startedAs = new Map<string, string>()
  readonly journals = new Map<string, Entry[]>()
  /** By run, then by the id of the message, in the order of their positions. */
  readonly mailboxes = new Map<string, Map<string, StoredMessage>>()
  /** By what is waited on, then by who waits and what for. */
  readonly waits = new Map<string, Map<string, WaitRow>>()
  /** By topic, in the order of their positions. */
  readonly broadcasts = new Map<string, Broadcast[]>()
  readonly topics = new Map<
    string,
    { readonly position: number; readonly retainMs: number | null; readonly lookAt: number }
  >()
  /** The highest position of all topics that are gone. */
  gonePosition = 0
  readonly chores = new Map<string, ChoreRow>()
  readonly sessions = new Map<string, Session>()
  /** Which entries the feed lists, in the order of their commits. */
  readonly feed: { readonly runId: string; readonly seq: number }[] = []
  readonly hints = new Hints()

  /** The row is this from here on, and its journal goes on with these entries. */
  write(run: Run, append: readonly Draft[], transition: string | null, now: number): void {
    const before = this.runs.get(run.id)
    const journal = listOf(this.journals, run.id)
    for (const [index, { kind, name, meta, data }] of append.entries()) {
      const seq = journal.length + 1
      journal.push({ kind, name, meta, data, seq, at: now, transition: index === 0 ? transition : null } as Entry)
    }
    this.runs.set(run.id, run)
    const fed = fedCount(before ?? run, run, append.length)
    for (let seq = journal.length - fed + 1; seq <= journal.length; seq += 1) this.feed.push({ runId: run.id, seq })
    for (const hint of hintsOf(before?.status, run, now)) this.hints.give(hint)
  }

  journal(runId: string): readonly Entry[] {
    return this.journals.get(runId) ?? []
  }

  mailbox(runId: string): Map<string, StoredMessage> {
    return mapOf(this.mailboxes, runId)
  }

  unread(runId: string): readonly Message[] {
    const messages = [...(this.mailboxes.get(runId)?.values() ?? [])]
    return messages.filter(({ takenBy }) => takenBy === null).map(({ message }) => message)
  }

  /** Those who wait on a run or a topic. */
  waitsOn({ kind, target }: Pick<WaitRow, 'kind' | 'target'>): Map<string, WaitRow> {
    return mapOf(this.waits, `${kind} ${target}`)
  }

  /** The same, the longest waiting ones first. */
  longestOn(kind: WaitRow['kind'], target: string): readonly WaitRow[] {
    return [...(this.waits.get(`${kind} ${target}`)?.values() ?? [])].sort(longestFirst)
  }

  sentTo(topic: string): Broadcast[] {
    return listOf(this.broadcasts, topic)
  }

  /** The same payloads under another key. */
  rewritePayloads(run: Run, { keyId, entries, messages }: PayloadRewrite): void {
    const texts = new Map(entries.map(({ seq, data }) => [seq, data]))
    const rewritten = (entry: Entry): Entry =>
      entry.data === null ? entry : { ...entry, data: texts.get(entry.seq) ?? entry.data }
    this.journals.set(run.id, this.journal(run.id).map(rewritten))
    const mailbox = this.mailbox(run.id)
    for (const { id, data } of messages) {
      const stored = mailbox.get(id)
      if (stored !== undefined) mailbox.set(id, { ...stored, message: { ...stored.message, data } })
    }
    this.runs.set(run.id, { ...run, keyId })
  }

  /** All that there is of a run, for the doctor. */
  stateOf(run: Run): RunState {
    const messages = [...this.mailbox(run.id).values()]
    const taken = messages.flatMap(({ message: { id, position }, takenBy }) =>
      takenBy === null ? [] : [{ id, position, takenBy }],
    )
    return { run, entries: this.journal(run.id), messages: this.unread(run.id), taken }
  }
}

function listOf<Item>(lists: Map<string, Item[]>, key: string): Item[] {
  const list = lists.get(key) ?? []
  lists.set(key, list)
  return list
}

function mapOf<Item>(maps: Map<string, Map<string, Item>>, key: string): Map<string, Item> {
  const map = maps.get(key) ?? new Map<string, Item>()
  maps.set(key, map)
  return map
}
