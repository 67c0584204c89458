// Reads mailboxes of runs that are held here. Those that are asked for in the same turn are read together: a topic may wake
// thousands at once.

import { mailAtOnce, type Message } from '../core/message.ts'
import type { Ports } from '../core/ports.ts'
import type { LoadRequest, Store } from '../store.ts'

interface Asked {
  readonly request: LoadRequest
  readonly resolve: (messages: readonly Message[]) => void
  readonly reject: (error: unknown) => void
}

export class MailReader {
  private readonly store: Pick<Store, 'load'>
  private readonly ports: Pick<Ports, 'turns'>
  private asked: Asked[] = []

  constructor(store: Pick<Store, 'load'>, ports: Pick<Ports, 'turns'>) {
    this.store = store
    this.ports = ports
  }

  read(runId: string, names: readonly string[] | null): Promise<readonly Message[]> {
    return new Promise((resolve, reject) => {
      if (this.asked.push({ request: mailRequest(runId, names), resolve, reject }) === 1)
        this.ports.turns.next(() => void this.load())
    })
  }

  private async load(): Promise<void> {
    const { asked } = this
    this.asked = []
    try {
      const loaded = await this.store.load(asked.map(({ request }) => request))
      asked.forEach(({ resolve }, at) => resolve(loaded[at]?.messages ?? []))
    } catch (error) {
      for (const { reject } of asked) reject(error)
    }
  }
}

/** Asks for messages under these names, or under any, and for no entries. */
export function mailRequest(runId: string, names: readonly string[] | null): LoadRequest {
  const request = { runId, after: 0, limit: 0 }
  return names === null ? request : { ...request, mail: { names, limit: mailAtOnce } }
}
