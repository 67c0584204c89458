// Reads mailboxes of runs that are held here. Requests of one turn are read together: a topic may wake thousands at once. So
// many bytes are read at a time; a request that has got no message of a name by then is read again, because a wait for that
// name must know whether there is one, but not all of them.

import type { MailboxRead } from '../../core/definition/definition.ts'
import { messagesAtOnce, type Message } from '../../core/model/message.ts'
import type { Ports } from '../../core/runtime/ports.ts'
import type { Loaded, LoadRequest, Store } from '../../store.ts'
import { kept } from '../store/bounded-store.ts'

/** How many bytes of entries, and of messages, are read at once for all runs that are read together. */
export const bytesAtOnce = 16 * 1024 * 1024

interface PendingLoad {
  readonly runId: string
  /** The names that are still to be read; null for any name. */
  readonly names: readonly string[] | null
  readonly messages: readonly Message[]
  readonly isCut: boolean
  readonly resolve: (read: MailboxRead) => void
  readonly reject: (error: unknown) => void
}

const nothing: Loaded = { entries: [], messages: [] }

export class MailboxReader {
  private readonly store: Pick<Store, 'load'>
  private readonly ports: Pick<Ports, 'turns'>
  private pending: PendingLoad[] = []

  constructor(store: Pick<Store, 'load'>, ports: Pick<Ports, 'turns'>) {
    this.store = store
    this.ports = ports
  }

  read(runId: string, names: readonly string[] | null): Promise<MailboxRead> {
    return new Promise((resolve, reject) => {
      const first: PendingLoad = { runId, names, messages: [], isCut: false, resolve, reject }
      if (this.pending.push(first) === 1) this.ports.turns.next(() => void this.load())
    })
  }

  private async load(): Promise<void> {
    let left = this.pending
    this.pending = []
    while (left.length > 0) {
      let loaded: readonly Loaded[]
      try {
        loaded = await this.store.load(
          left.map(({ runId, names }) => messagesRequest(runId, names)),
          bytesAtOnce,
        )
      } catch (error) {
        for (const { reject } of left) reject(kept(error))
        return
      }
      left = left.map((one, at) => learn(one, loaded[at] ?? nothing, at === 0)).filter((more) => more !== null)
    }
  }
}

/** Takes in a reading; null if that is enough. The first of a load gets at least one message, if there is one. */
function learn(pending: PendingLoad, { messages: found, cut }: Loaded, isFirst: boolean): PendingLoad | null {
  const messages = pending.messages.length === 0 ? found : [...pending.messages, ...found]
  const isCut = cut === true && (found.length > 0 || !isFirst)
  const names = isCut ? unknownOf(pending.names, found) : []
  if (names?.length !== 0) return { ...pending, names, messages, isCut: true }
  pending.resolve({ messages: pending.isCut ? inOrder(messages) : messages, isCut: isCut || pending.isCut })
  return null
}

/** The names of which nothing is known yet. */
function unknownOf(names: readonly string[] | null, found: readonly Message[]): readonly string[] | null {
  if (names === null) return found.length === 0 ? null : []
  const known = new Set(found.map(({ name }) => name))
  return names.filter((name) => !known.has(name))
}

function inOrder(messages: readonly Message[]): readonly Message[] {
  return messages.toSorted((one, other) => one.position - other.position)
}

/** Asks for messages under these names, or under any, and for no entries. */
export function messagesRequest(runId: string, names: readonly string[] | null): LoadRequest {
  const request = { runId, after: 0, limit: 0 }
  return names === null ? request : { ...request, messages: { names, limit: messagesAtOnce } }
}
