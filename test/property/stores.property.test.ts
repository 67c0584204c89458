// The memory store is the oracle: whatever is done to it and to SQLite in the same order has the same answers and leaves
// the same state. The operations are drawn at random from what the oracle holds, and then bent: wrong tokens, old journals,
// repetitions, unknown ids, ended sessions, time that jumps.

import { expect, it } from 'vitest'
import type { Random } from '../../src/core/ports.ts'
import type { Run } from '../../src/core/run.ts'
import type { NextStatus, Transition } from '../../src/core/transition.ts'
import type { NewMessage, NewRun, Store, StoreAdmin } from '../../src/store.ts'
import { MemoryStore } from '../../src/stores/memory/store.ts'
import { openSqliteStore } from '../../src/stores/sqlite/index.ts'
import { createContractBench, createSeededRandom, createVirtualClock } from '../../src/testing/index.ts'

type AnyStore = Store & StoreAdmin
type Operation = (store: AnyStore) => Promise<unknown>

const sessions = ['a', 'b', 'c']
const types = [
  { type: 'x', version: 1, leaseMs: 40 },
  { type: 'x', version: 2, leaseMs: null },
  { type: 'y', version: 1 },
]
const failures = { crashed: '"crashed"', 'timed-out': '"timed out"', expired: '"expired"' }
const endings: readonly NextStatus[] = ['succeeded', 'failed', 'cancelled', 'paused', 'pending', 'waiting']

class Generator {
  private readonly random: Random
  private readonly newRun: (changes: Partial<NewRun>) => NewRun
  private readonly unique: (what: string) => string
  private readonly sentRuns: NewRun[] = []
  private readonly sentTransitions: Transition[] = []
  private readonly sentMessages: NewMessage[] = []
  /** Sessions end; new ones take their place. */
  private generation = 0

  constructor(seed: number, bench: ReturnType<typeof createContractBench>) {
    this.random = createSeededRandom(seed)
    this.newRun = bench.newRun
    this.unique = bench.unique
  }

  next(rows: readonly Run[]): Operation {
    switch (this.below(9)) {
      case 0:
      case 1:
        return this.start()
      case 2:
      case 3:
        return this.claim()
      case 4:
      case 5:
        return this.commit(rows)
      case 6:
        return this.deliver(rows)
      case 7:
        return this.beat(rows)
      default:
        return this.chance(3) ? this.release(rows) : this.rescue()
    }
  }

  below(limit: number): number {
    return this.random.uint32() % limit
  }

  private chance(oneIn: number): boolean {
    return this.below(oneIn) === 0
  }

  private pick<Item>(items: readonly Item[]): Item {
    return items[this.below(items.length)] as Item
  }

  private session(): string {
    if (this.chance(25)) this.generation += 1
    return `${this.pick(sessions)}${this.generation - (this.chance(10) ? 1 : 0)}`
  }

  private maybe(ms: number, oneIn: number): number | null {
    return this.chance(oneIn) ? this.below(ms) : null
  }

  private start(): Operation {
    const made = Array.from({ length: 1 + this.below(4) }, () => {
      if (this.sentRuns.length > 0 && this.chance(8)) return this.pick(this.sentRuns)
      const { type, version } = this.pick(types)
      const run = this.newRun({
        type,
        version,
        priority: this.below(3),
        due: this.chance(3) ? { at: null, afterMs: this.below(60) } : null,
        timeoutMs: this.maybe(300, 4),
        expiresInMs: this.maybe(100, 4),
        lease: this.chance(3) ? { session: this.session(), token: 1 } : null,
        leaseMs: this.maybe(80, 2),
      })
      this.sentRuns.push(run)
      return run
    })
    return (store) => store.start(made)
  }

  private claim(): Operation {
    const request = { session: this.session(), selectors: types.slice(this.below(3)), limit: this.below(5) }
    return (store) => store.claim(request)
  }

  private commit(rows: readonly Run[]): Operation {
    const batch = new Map<string, Transition>()
    const held = rows.filter((run) => run.session !== null)
    for (let count = 1 + this.below(4); count > 0 && rows.length > 0; count -= 1) {
      const again = this.sentTransitions.length > 0 && this.chance(6)
      const transition = again
        ? this.pick(this.sentTransitions)
        : this.transition(this.pick(held.length > 0 && !this.chance(4) ? held : rows))
      batch.set(transition.runId, transition)
    }
    this.sentTransitions.push(...batch.values())
    return (store) => store.commit([...batch.values()])
  }

  private transition(run: Run): Transition {
    const status = this.chance(2) ? null : this.pick(endings)
    const draft = { kind: 'logged', name: 'n', meta: null, data: `"${this.below(100)}"` } as const
    const length = status === 'waiting' ? this.below(3) : 1 + this.below(3)
    return {
      id: this.unique('t'),
      runId: this.chance(30) ? this.unique('nobody') : run.id,
      guard: {
        seq: run.seq - (this.chance(8) ? 1 : 0),
        lease: { session: run.session ?? this.session(), token: run.token - (this.chance(8) ? 1 : 0) },
      },
      append: Array.from({ length }, () => draft),
      status,
      due: this.chance(2) ? { at: null, afterMs: this.below(60) } : null,
      parkIf: status === 'waiting' ? { inbox: run.inbox - (this.chance(5) ? 1 : 0) } : null,
    }
  }

  private deliver(rows: readonly Run[]): Operation {
    const messages = Array.from({ length: 1 + this.below(3) }, (): NewMessage => {
      if (this.sentMessages.length > 0 && this.chance(5)) return this.pick(this.sentMessages)
      const runId = rows.length === 0 ? this.unique('nobody') : this.pick(rows).id
      const message = { id: this.unique('m'), runId, name: 'go', data: '1' }
      this.sentMessages.push(message)
      return message
    })
    return (store) => store.deliver(messages)
  }

  private beat(rows: readonly Run[]): Operation {
    const session = this.session()
    const held = rows.filter((run) => run.session !== null && this.chance(3))
    const extend = held.map(({ id, token }) => ({ runId: id, token, ms: this.below(200) }))
    const request = { session, leaseMs: 50 + this.below(200), extend, end: this.chance(10) }
    return (store) => store.beat(request)
  }

  private release(rows: readonly Run[]): Operation {
    const leases = rows.filter(() => this.chance(4)).map(({ id, session, token }) => ({ runId: id, session, token }))
    const given = leases.map((lease) => ({ ...lease, session: lease.session ?? this.session() }))
    return (store) => store.release(given)
  }

  private rescue(): Operation {
    const request = { limit: 1_000, maxCrashes: 2, failures }
    return async (store) => {
      const { takenOver, failed, ...rest } = await store.rescue(request)
      const byRun = (a: { readonly runId: string }, b: { readonly runId: string }): number =>
        a.runId < b.runId ? -1 : 1
      return { ...rest, takenOver: [...takenOver].sort(byRun), failed: [...failed].sort(byRun) }
    }
  }
}

/** When a timed run that has come due is called ready is a store's own affair. */
function settled(value: unknown, now: number): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((item) => settled(item, now))
  const members = Object.entries(value).map(([key, member]) => [key, settled(member, now)] as const)
  const object: Record<string, unknown> = Object.fromEntries(members)
  if (object['readiness'] === 'timed' && Number(object['due']) <= now) object['readiness'] = 'ready'
  return object
}

/** Everything that a store holds, but for the order in which one rescue wrote. */
async function snapshot(store: AnyStore): Promise<unknown> {
  const runs = await store.find({ limit: 10_000 })
  const loaded = await store.load(runs.map(({ id }) => ({ runId: id, after: 0, limit: 10_000 })))
  const changes = (await store.changes(0, 100_000)).map(({ runId, entry }) => `${entry.at} ${runId} ${entry.seq}`)
  return { runs, loaded, changes: changes.toSorted() }
}

/** Which states the oracle went through, over all seeds: a run that met none of them proves nothing. */
const seen = new Set<string>()

it.each([1, 2, 3, 4, 5, 6, 7, 8])('SQLite and the memory store do the same, seed %i', async (seed) => {
  const clock = createVirtualClock()
  const memory = new MemoryStore({ clock })
  const sqlite = await openSqliteStore({ path: ':memory:', clock })
  await sqlite.migrate()
  const generator = new Generator(seed, createContractBench({ store: memory, clock }))
  const compare = async (when: string): Promise<void> => {
    const state = settled(await snapshot(memory), clock.now())
    expect({ when, state: settled(await snapshot(sqlite), clock.now()) }).toEqual({ when, state })
  }
  for (let count = 0; count < 250; count += 1) {
    const rows = await memory.find({ limit: 1_000 })
    for (const { status, readiness } of rows) seen.add(`${status} ${readiness}`)
    const operation = generator.next(rows)
    const expected = settled(await operation(memory), clock.now())
    expect(settled(await operation(sqlite), clock.now()), `operation ${count}`).toEqual(expected)
    if (count % 10 === 0) await compare(`after operation ${count}`)
    if (generator.below(3) === 0) await clock.advance(generator.below(40))
  }
  await compare('at the end')
  await sqlite.close()
})

it('the operations led runs through every state', () => {
  const states = ['pending ready', 'pending timed', 'running leased', 'waiting idle', 'waiting ready', 'waiting timed']
  const ends = ['paused idle', 'succeeded idle', 'failed idle', 'cancelled idle']
  expect([...seen]).toEqual(expect.arrayContaining([...states, ...ends]))
})
