// Random commands about projections, sensible ones and wrong ones: every store answers as the memory store does, and has the
// same rows afterwards.

import { describe, expect, it, onTestFinished } from 'vitest'
import { createVirtualClock, type VirtualClock } from '../../src/testing/index.ts'
import { MemoryStore } from '../../src/stores/memory/store.ts'
import { openPostgresStore } from '../../src/stores/postgres/index.ts'
import { openSqliteStore } from '../../src/stores/sqlite/index.ts'
import type { ProjectionAnswer, ProjectionCommand, ProjectionRow, StoreProjections } from '../../src/store.ts'
import { createReadCommittedStore } from '../read-committed/store.ts'
import { Chances } from '../support/chances.ts'
import { migratedSchema } from '../support/postgres-shared.ts'

const names = ['orders', 'Orders'] as const
const sessions = ['one', 'two'] as const

/** Mostly by the holder, as the rows say. */
function drawnCommand(chances: Chances, rows: readonly ProjectionRow[]): ProjectionCommand {
  const name = chances.pick(names)
  const part = chances.weighted([
    [3, 'live'],
    [2, 'rebuild'],
  ] as const)
  const row = rows.find((one) => one.name === name && one.part === part)
  const isWrong = chances.oneIn(6)
  const held = row?.session ?? null
  const session = held === null || isWrong ? chances.pick(sessions) : held
  const holder = { name, part, session, token: (row?.token ?? 1) + (isWrong ? 1 : 0) }
  const position = row?.position ?? 0
  const definition = chances.oneIn(6) ? 'v2' : (row?.definition ?? 'v1')
  const failure = {
    position: position + 1,
    id: 'run:1',
    type: 'Paid',
    of: 'order',
    instance: null,
    attempts: 8,
    error: 'é"\n',
  }
  return chances.weighted([
    [6, { name, part, kind: 'claim', session, leaseMs: 1_000, definition, startAt: chances.below(3) }],
    [2, { ...holder, kind: 'beat', leaseMs: 1_000 }],
    [8, { ...holder, kind: 'advance', from: position, to: position + chances.below(part === 'live' ? 8 : 3) }],
    [2, { ...holder, kind: 'park', failure }],
    [1, { ...holder, kind: 'release' }],
    [4, { ...holder, kind: 'begin' }],
    [4, { ...holder, kind: 'swap' }],
    [1, { name, part, kind: 'pause' }],
    [2, { name, part, kind: 'claim', session: chances.pick(sessions), leaseMs: 1_000, definition, startAt: 0 }],
    [3, { name, part, kind: 'resume' }],
    [2, { name, part, kind: 'skip', position: row?.failure?.position ?? 1 }],
    [2, { name, part: 'live', kind: 'rebuild', definition: chances.maybe(3, ['v1', 'v2']) }],
    [1, { name, part, kind: 'remove' }],
  ] as readonly (readonly [number, ProjectionCommand])[])
}

/** The time in a row of the database is its own. */
function withoutTimes({ outcome, row }: ProjectionAnswer): unknown {
  return { outcome, row: row === null ? null : timeless(row) }
}

function timeless(row: ProjectionRow): unknown {
  const { createdAt: _created, updatedAt: _updated, aliveUntil, skipped, ...rest } = row
  return { ...rest, isLeased: aliveUntil !== null, skipped: skipped.map(({ skippedAt: _at, ...event }) => event) }
}

type Open = (clock: VirtualClock) => Promise<StoreProjections & { migrate(): Promise<void> }>

const stores: readonly (readonly [name: string, open: Open, hasOwnTime: boolean])[] = [
  ['SQLite', (clock) => openSqliteStore({ path: ':memory:', clock }), false],
  [
    'the plan at READ COMMITTED',
    async (clock) => createReadCommittedStore({ clock, schedule: async () => undefined }),
    false,
  ],
  [
    'Postgres',
    async () => {
      const { url, schema } = await migratedSchema()
      const store = await openPostgresStore({ url, schema, listen: false })
      onTestFinished(() => store.close())
      return store
    },
    true,
  ],
]

describe.each(stores)('%s', (_name, open, hasOwnTime) => {
  it('answers every command about a projection as the memory store does', { timeout: 60_000 }, async () => {
    const outcomes = new Set<string>()
    const clock = createVirtualClock()
    const [subject, oracle] = [await open(clock), new MemoryStore({ clock })]
    await subject.migrate()
    for (let seed = 1; seed <= 30; seed += 1) {
      const chances = new Chances(seed)
      for (let step = 0; step < 40; step += 1) {
        const command = drawnCommand(chances, await oracle.projections())
        // Leases run out where the test owns the time.
        if (!hasOwnTime && chances.oneIn(8)) await clock.advance(600)
        const expected = await oracle.commandProjection(command)
        const answer = await subject.commandProjection(command)
        expect({ seed, step, command, ...(withoutTimes(answer) as object) }).toEqual({
          seed,
          step,
          command,
          ...(withoutTimes(expected) as object),
        })
        outcomes.add(expected.outcome)
      }
      expect((await subject.projections()).map(timeless)).toEqual((await oracle.projections()).map(timeless))
    }
    expect([...outcomes].toSorted()).toEqual([
      'behind',
      'different',
      'done',
      'held',
      'lost',
      'not-found',
      'not-parked',
      'stopped',
    ])
  })
})
