// Children that their parent must outlast: it does not end in any way before they have. It is notified of their ends in any
// case. A run whose body has returned waits for them as for anything; one that fails or is being cancelled begins nothing any
// more, not even a wait, so it polls.

import type { Host } from '../../core/definition/definition.ts'
import type { Run } from '../../core/model/run.ts'
import type { History } from '../replay/history.ts'
import type { Mailbox } from './mailbox.ts'
import { registerWait } from './register-wait.ts'
import { endNameOf } from '../api/call-identity.ts'
import type { FrameApi } from '../frame/frame-api.ts'
import { runCase } from './wait-case.ts'

interface OutlastedChildrenDeps extends FrameApi {
  readonly host: Host
  readonly run: Run
  readonly history: History
  readonly mailbox: Mailbox
}

/**
 * How long a run that cannot wait is left alone. Each look costs it an entry, so looks become rarer: an eighth of the time
 * that it has waited, and a second at least. A child of a day costs 90 entries, one of a month 120, and the run ends an
 * eighth of the time later than its child at most.
 */
const [shortestMs, part] = [1_000, 8]

const noIds: Set<string> = new Set()

export class OutlastedChildren {
  private readonly deps: OutlastedChildrenDeps
  private ids: Set<string> = noIds
  /** Those whose ends the run waits for at its own. */
  private requested: Set<string> | null = null
  /** Called when no child is left. */
  private next: (() => void) | null = null

  constructor(deps: OutlastedChildrenDeps) {
    this.deps = deps
    if (deps.history.outlastedChildren.size > 0) this.ids = new Set(deps.history.outlastedChildren)
  }

  add(runId: string): void {
    if (this.ids === noIds) this.ids = new Set()
    this.ids.add(runId)
  }

  /** There is none that the run must outlast. */
  get areOver(): boolean {
    return this.ids.size === 0
  }

  has(runId: string): boolean {
    return this.ids.has(runId)
  }

  ended(runId: string): void {
    if (this.ids !== noIds) this.ids.delete(runId)
  }

  /** The body is over. True if there are children to wait for: then `next` is called when none is left. */
  outlast(next: () => void): boolean {
    if (this.ids.size === 0 && this.next === null) return false
    const isWaiting = this.next !== null
    this.next = next
    const requests: Promise<unknown>[] = []
    for (const id of this.ids) if (this.requested?.has(id) !== true) requests.push(this.spec(id))
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
    return registerWait(this.deps, { name: endNameOf(id), cases: [{ ...waitCase, read: () => null }], place: null })
  }

  private goOn(): void {
    const { next } = this
    this.next = null
    if (this.deps.isWriting) next?.()
  }

  /** For how long a run that cannot wait is to be left alone; null if all have ended, undefined if that is not known yet. */
  lookAgainIn(since: number | null): number | null | undefined {
    if (this.ids.size === 0) return null
    const { history, mailbox, host } = this.deps
    const open = [...this.ids].filter((id) => !history.has('wait', endNameOf(id)))
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
    const { writer, history } = this.deps
    const id = [...this.ids].find((one) => !history.has('wait', endNameOf(one))) ?? ''
    const conditions = [{ tag: 'run', kind: 'run', runId: id } as const]
    writer.append({ kind: 'waiting', name: endNameOf(id), meta: { conditions }, data: null })
  }
}
