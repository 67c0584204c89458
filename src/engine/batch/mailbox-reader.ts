// Reads mailboxes of runs that are held here: a topic may wake thousands in one turn. A request that has got no message of a
// name is read again, because a wait for that name must know whether there is one, but not all of them.

import type { MailboxRead } from '../../core/definition/definition.ts'
import { messagesAtOnce, type Message } from '../../core/model/message.ts'
import type { Ports } from '../../core/runtime/ports.ts'
import type { Loaded, LoadRequest, Store } from '../../store.ts'
import { kept } from '../store/bounded-store.ts'
import { TurnLoads } from './turn-loads.ts'

interface PendingLoad {
  readonly runId: string
  /** The names that are still to be read; null for any name. */
  readonly names: readonly string[] | null
  readonly messages: readonly Message[]
  readonly isCut: boolean
  readonly resolve: (read: MailboxRead) => void
  readonly reject: (error: unknown) => void
}

export class MailboxReader {
  private readonly loads: TurnLoads<PendingLoad>

  constructor(store: Pick<Store, 'load'>, ports: Pick<Ports, 'turns'>) {
    this.loads = new TurnLoads<PendingLoad>(store, ports, {
      requestOf: ({ runId, names }) => messagesRequest(runId, names),
      learn,
      fail: ({ reject }, error) => reject(kept(error)),
    })
  }

  read(runId: string, names: readonly string[] | null): Promise<MailboxRead> {
    return new Promise((resolve, reject) =>
      this.loads.add({ runId, names, messages: [], isCut: false, resolve, reject }),
    )
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
