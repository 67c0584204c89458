// A worker that is a test: it claims runs and writes what it likes into their journals. So what others send meets a run in
// exactly the state that a test means, whatever style of workflow could bring it there.

import type { Store } from 'holdfast'
import type { Draft } from '../../src/core/model/entry.ts'
import type { Topic } from '../../src/core/definition/declared-topic.ts'
import type { Lease } from '../../src/core/model/run.ts'
import type { Transition } from '../../src/core/model/transition.ts'
import type { Message } from '../../src/store.ts'

let sessions = 0

/** A run that this worker holds. */
export class HandHeld {
  readonly id: string
  private readonly store: Store
  private readonly lease: Lease
  private seq: number
  private transitions = 0

  constructor(store: Store, { id, seq }: { readonly id: string; readonly seq: number }, lease: Lease) {
    this.id = id
    this.store = store
    this.seq = seq
    this.lease = lease
  }

  /** Appends, and goes on holding it. Gives back the `seq` of the last entry. */
  async append(...append: Draft[]): Promise<number> {
    await this.commit({ append })
    return this.seq
  }

  /** Waits for something that is sent to this topic, or for whatever comes. True if there is nothing to look at yet. */
  async park(topic?: Topic): Promise<boolean> {
    const [run] = await this.store.get([this.id])
    const conditions =
      topic === undefined ? [] : [{ tag: 'topic', kind: 'signal', name: topic.name, topic: topic.rules } as const]
    const watches = topic === undefined ? [] : [{ kind: 'topic' as const, ...topic.rules }]
    return this.commit({
      append: [{ kind: 'waiting', name: `wait#${this.seq}`, meta: { conditions }, data: null }],
      status: 'waiting',
      parkIf: { inbox: run?.inbox ?? 0 },
      outbound: { starts: [], watches, unwatches: [] },
    })
  }

  /** Ends well, without having looked into its mailbox. */
  async succeed(data = 'null'): Promise<void> {
    await this.commit({ append: [{ kind: 'succeeded', name: null, meta: null, data }], status: 'succeeded' })
  }

  /** Begins anew under the same id. */
  async continueAnew(type: string): Promise<void> {
    const meta = { type, version: 1 }
    await this.commit({
      append: [{ kind: 'continued', name: null, meta, data: '"again"' }],
      continues: { ...meta, feed: false },
    })
  }

  async fail(): Promise<void> {
    const data = JSON.stringify({ $error: { name: 'Error', message: 'No' } })
    await this.commit({ append: [{ kind: 'failed', name: null, meta: null, data }], status: 'failed' })
  }

  private async commit(what: Partial<Transition> & Pick<Transition, 'append'>): Promise<boolean> {
    this.transitions += 1
    const [answer] = await this.store.commit([
      {
        id: `${this.lease.session}.${this.id}.${this.transitions}`,
        runId: this.id,
        guard: { seq: this.seq, lease: this.lease },
        status: null,
        due: null,
        parkIf: null,
        undo: null,
        continues: null,
        takes: [],
        ...what,
      },
    ])
    if (answer?.outcome !== 'committed') throw new Error(`This was refused: ${JSON.stringify(answer)}`)
    this.seq = answer.seq
    return answer.released
  }
}

/** Claims a run that is due; without an id, the only one of that type. */
export async function takeUp(store: Store, type: string, id?: string): Promise<HandHeld> {
  sessions += 1
  const session = `hand-${sessions}`
  await store.beat({ session, leaseMs: 3_600_000 })
  const { runs } = await store.claim({ session, selectors: [{ type, version: 1 }], limit: 100 })
  const run = runs.find((one) => id === undefined || one.id === id)
  if (run === undefined) throw new Error(`There is no such run of "${type}" to take up.`)
  const others = runs.filter((one) => one !== run)
  await store.release(others.map(({ id: runId, token }) => ({ session, token, runId })))
  return new HandHeld(store, run, { session, token: run.token })
}

/** What lies in a mailbox, first in first out. */
export async function messagesOf(store: Store, run: { readonly id: string }): Promise<readonly Message[]> {
  const [loaded] = await store.load([{ runId: run.id, after: 0, limit: 0 }])
  return loaded?.messages ?? []
}
