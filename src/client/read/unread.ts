// The messages of a run that it has not read, summed up by name. A signal whose name is misspelt is accepted, and no wait ever
// takes it: here it can be seen. Reads one page of the mailbox and a bounded part of the journal, however long these are.

import type { Entry } from '../../core/model/entry.ts'
import { messagesAtOnce, type Message } from '../../core/model/message.ts'
import { isTerminal, type Run } from '../../core/model/run.ts'
import { completionPrefix } from '../../core/completion/completion-token.ts'
import { messageNameOf } from '../../core/model/wait-condition.ts'
import { didYouMean, shown } from '../../core/text/suggest.ts'
import type { Engine } from '../../engine/engine.ts'
import { messagesRequest } from '../../engine/batch/mailbox-reader.ts'
import { loadJournal } from '../../engine/store/journal-pages.ts'
import type { Store } from '../../store.ts'
import { idOf, runNotFound, type RunReference } from '../run-reference.ts'

/** The unread messages of one name. */
export interface UnreadName {
  /** The name of the signal or of the topic. */
  readonly name: string
  readonly count: number
  /** When the oldest of them arrived. */
  readonly since: Date
  /** A wait of the run has asked for this name, now or earlier, since it last continued as new; or its journal is too long to say. */
  readonly isAwaited: boolean
}

export interface UnreadMessages {
  /** In the order in which their oldest message arrived, twenty at most. */
  readonly names: readonly UnreadName[]
  /** There are more: only the first messages of the mailbox were counted. */
  readonly isCapped: boolean
}

const mostNames = 20
/** Payloads are not shown: a page ends when they take this much. */
const mostBytes = 1024 * 1024
/** And so do pages of the journal. Of so many waits are looked for. */
const mostPages = 16

/** Signals and broadcasts that the run has not read; none if it has ended. Throws RUN_NOT_FOUND. @internal */
export async function unreadMessages(engine: Engine, reference: RunReference): Promise<UnreadMessages> {
  const runId = idOf(reference)
  engine.assertOpen()
  const { store } = engine
  const [run] = await store.get([runId])
  if (run === undefined) throw runNotFound(runId)
  if (isTerminal(run.status)) return { names: [], isCapped: false }
  const [page] = await store.load([messagesRequest(runId, null)], mostBytes)
  const messages = page?.messages ?? []
  const byName = new Map<string, { count: number; readonly at: number }>()
  for (const { name, at } of messages.filter(isSent)) {
    const known = byName.get(name)
    if (known === undefined) byName.set(name, { count: 1, at })
    else known.count += 1
  }
  const shown = [...byName].slice(0, mostNames)
  const names = shown.map(([name]) => name)
  const awaited = names.length === 0 ? new Set<string>() : await awaitedNames(store, run, names)
  return {
    names: shown.map(([name, { count, at }]) => ({ name, count, since: new Date(at), isAwaited: awaited.has(name) })),
    isCapped: page?.cut === true || messages.length >= messagesAtOnce || byName.size > mostNames,
  }
}

/** A sentence about messages that no wait has asked for, whose names may be misspelt; nothing if there are none. */
export function unreadText(unread: readonly UnreadName[], awaited: readonly string[] = []): string {
  const names = unread.filter(({ isAwaited }) => !isAwaited).map(({ name }) => name)
  if (names.length === 0) return ''
  const meant = names.map((name) => didYouMean(name, awaited)).find((text) => text !== '') ?? ''
  return ` It has been sent ${names.map(shown).join(', ')}, and no wait of it has asked for that: misspelt?${meant}`
}

/** Others come from the engine: ends of runs, refusals, and completions of `ctx.token()`. */
function isSent({ kind, name }: Message): boolean {
  return kind !== 'ended' && kind !== 'refused' && !name.startsWith(completionPrefix)
}

/** Those of the names for which waits have asked; all, if the journal is too long to know of each. */
async function awaitedNames(
  store: Pick<Store, 'load'>,
  run: Run,
  names: readonly string[],
): Promise<ReadonlySet<string>> {
  const missing = new Set(names)
  const awaited = new Set<string>()
  let pages = 0
  for await (const { entries } of loadJournal(store, run.id, { after: run.base - 1, mostBytes })) {
    for (const entry of entries) for (const name of namesIn(entry)) if (missing.delete(name)) awaited.add(name)
    pages += 1
    if (missing.size === 0) break
    if (pages === mostPages) return new Set(names)
  }
  return awaited
}

function namesIn(entry: Entry): readonly string[] {
  if (entry.kind === 'woken') return entry.meta.by === undefined ? [] : [entry.meta.by.name]
  if (entry.kind !== 'waiting') return []
  return entry.meta.conditions.map(messageNameOf).filter((name) => name !== null)
}
