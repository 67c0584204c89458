// Children that their parent must outlast: it does not end in any way before they have. It is notified of their ends in any
// case. A run whose body has returned waits for them as for anything; one that fails or is being cancelled begins nothing any
// more, not even a wait, so it polls.

import { registerWait } from './register-wait.ts'
import { endNameOf } from '../api/call-identity.ts'
import { runCase } from './wait-case.ts'
import type { Waits } from './waits.ts'

/**
 * How long a run that cannot wait is left alone. Each look costs it an entry, so looks become rarer: an eighth of the time
 * that it has waited, and a second at least. A child of a day costs 90 entries, one of a month 120, and the run ends an
 * eighth of the time later than its child at most.
 */
const [shortestMs, part] = [1_000, 8]

export class OutlastedChildren {
  private readonly waits: Waits
  /** Those whose ends the run waits for at its own. */
  private requested: Set<string> | null = null
  /** Called when no child is left. */
  private next: (() => void) | null = null

  constructor(waits: Waits) {
    this.waits = waits
  }

  /** The body is over. True if there are children to wait for: then `next` is called when none is left. */
  outlast(next: () => void): boolean {
    const { outlasted } = this.waits
    if (outlasted.size === 0 && this.next === null) return false
    const isWaiting = this.next !== null
    this.next = next
    const requests: Promise<unknown>[] = []
    for (const id of outlasted) if (this.requested?.has(id) !== true) requests.push(this.spec(id))
    if (requests.length === 0 && !isWaiting) {
      this.next = null
      return false
    }
    if (!isWaiting) void Promise.all(requests).then(() => this.goOn())
    return true
  }

  private spec(id: string): Promise<unknown> {
    this.requested ??= new Set()
    this.requested.add(id)
    const { read: _, ...waitCase } = runCase(id)
    return registerWait(this.waits, { name: endNameOf(id), cases: [{ ...waitCase, read: () => null }], place: null })
  }

  private goOn(): void {
    const { next } = this
    this.next = null
    if (this.waits.state.isWriting) next?.()
  }

  /** For how long a run that cannot wait is to be left alone; null if all have ended, undefined if that is not known yet. */
  lookAgainIn(since: number | null): number | null | undefined {
    const { state, mailbox, outlasted } = this.waits
    const { history, host } = state
    const open = [...outlasted].filter((id) => !history.has('wait', endNameOf(id)))
    if (open.length === 0) return null
    if (!mailbox.isCurrent(open)) {
      mailbox.read(open)
      return undefined
    }
    if (open.every((id) => mailbox.under([id]).length > 0)) return null
    const waited = since === null ? 0 : host.now() - since
    return Math.max(shortestMs, Math.ceil(waited / part))
  }

  /** Notes that the run waits for one of them. */
  note(): void {
    const { state, outlasted } = this.waits
    const { writer, history } = state
    const id = [...outlasted].find((one) => !history.has('wait', endNameOf(one))) ?? ''
    const conditions = [{ tag: 'run', kind: 'run', runId: id } as const]
    writer.append({ kind: 'waiting', name: endNameOf(id), meta: { conditions }, data: null })
  }
}
