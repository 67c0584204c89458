// The memory store at READ COMMITTED: what a store on Postgres does when many call it at once, in one process and in an order
// that a test decides. Every method executes its statement plan; `schedule` is awaited before each statement and each
// commit, and the test that drives it lets others come in between. The reference for a single caller is still the memory store.

import { HoldfastError } from '../../src/core/errors/error.ts'
import { checkAll, checkExchange, report } from '../../src/core/invariants/check.ts'
import type { PageLimits } from '../../src/core/model/chore.ts'
import type { Clock } from '../../src/core/runtime/ports.ts'
import type { Store, StoreAdmin, StoreProjections } from '../../src/store.ts'
import type { StatementName } from './statement-plan.ts'
import { Hints } from '../../src/core/rules/messages/hints.ts'
import { doChores } from './chores.ts'
import { claimRuns } from './claim.ts'
import { commitTransitions } from './commit.ts'
import { Database } from './database/database.ts'
import { deliverMessages } from './deliver.ts'
import { batch, reading, transaction, type Parts } from './database/call.ts'
import { readChanges, readFeedEnd } from './feed.ts'
import { otherKeys, rewritePayloads } from './payloads.ts'
import { countRuns, findRuns, load, readDeadLetters, readRuns, readStates, settleDead } from './read.ts'
import { commandProjection, readProjections } from './projections.ts'
import { rescue } from './rescue.ts'
import { beat } from './sessions.ts'
import { startRuns } from './start.ts'
import { releaseRuns, controlRuns } from './control.ts'
import { createTables, type FeedRow } from './database/tables.ts'

export interface ReadCommittedStoreOptions {
  readonly clock: Pick<Clock, 'now'>
  /** Awaited before every statement, between two rows of one, and before every commit: who gives it decides who goes on. */
  readonly schedule: (statement: StatementName) => Promise<void>
  /** Planted errors, by name: see `mutations`. For tests that must find them. */
  readonly mutations?: ReadonlySet<string>
  /** The feed is spread over two machines, which make a commit visible one after the other. @default false */
  readonly isSpread?: boolean
  /** How much one transaction may write for others. @default `usualPages` */
  readonly pages?: PageLimits
}

export interface ReadCommittedStore extends Store, StoreAdmin, StoreProjections {
  /** Transactions that are open, and for whom each of them waits: to be named when nothing goes on. */
  waits(): readonly string[]
  /** What is committed, past every plan: for those who check what the store does. */
  readonly insides: Pick<Parts, 'db' | 'tables'>
}

export function createReadCommittedStore(options: ReadCommittedStoreOptions): ReadCommittedStore {
  const { clock, schedule, mutations = new Set(), isSpread = false, pages } = options
  const db = isSpread ? new Database(machineOf) : new Database()
  const hints = new Hints()
  const tables = createTables(!mutations.has('look-then-insert'))
  const parts: Parts = { db, tables, clock, schedule, mutations, hints, ...(pages && { pages }) }
  db.seed(tables.sequencer, { last: 0 })
  let closed = false

  /** A method of the port: refused once the store is closed. */
  const open =
    <Given extends readonly unknown[], Answer>(method: (...given: Given) => Promise<Answer>) =>
    async (...given: Given): Promise<Answer> => {
      if (closed) throw new HoldfastError('CLOSED', 'This store is closed. Open a new one to go on.')
      return method(...given)
    }

  return {
    capabilities: { notifies: true, multiProcess: false, projections: true },
    migrate: open(async () => undefined),
    start: open((runs) => batch(parts, 'start.commit', runs, startRuns)),
    claim: open((request) => transaction(parts, 'claim.commit', (x) => claimRuns(x, request))),
    load: open((requests, mostBytes) =>
      requests.length === 0 ? none() : reading(parts, (x) => load(x, requests, mostBytes)),
    ),
    commit: open((transitions) => commitTransitions(parts, transitions)),
    deliver: open((messages) => batch(parts, 'deliver.commit', messages, deliverMessages)),
    control: open((requests) => batch(parts, 'control.commit', requests, controlRuns)),
    beat: open((request) => beat(parts, request)),
    rescue: open((request) => rescue(parts, request)),
    release: open(async (leases) => {
      await batch(parts, 'release.commit', leases, releaseRuns)
      return []
    }),
    doChores: open(() => doChores(parts)),
    get: open((ids) => (ids.length === 0 ? none() : reading(parts, (x) => readRuns(x, ids)))),
    changes: open((after, limit) => readChanges(parts, after, limit)),
    projections: open(() => reading(parts, readProjections)),
    commandProjection: open((command) => transaction(parts, 'projection.commit', (x) => commandProjection(x, command))),
    feedEnd: open(() => readFeedEnd(parts)),
    find: open((filter, page) => reading(parts, (x) => findRuns(x, filter, page))),
    count: open((filter, atMost) => reading(parts, (x) => countRuns(x, filter, atMost))),
    deadLetters: open((filter, page) => reading(parts, (x) => readDeadLetters(x, filter, page))),
    settleDeadLetter: open((letter, fate) => transaction(parts, 'dead.commit', (x) => settleDead(x, letter, fate))),
    otherKeys: open((keys, atMost) => reading(parts, (x) => otherKeys(x, keys, atMost))),
    rewritePayloads: open((request) =>
      transaction(parts, 'rewritePayloads.commit', (x) => rewritePayloads(x, request)),
    ),
    doctor: open(async () => {
      const { states, exchange } = await reading(parts, readStates)
      const now = clock.now()
      return report([...checkAll(states, now), ...checkExchange(exchange, states, now)])
    }),
    listen: open(async (onHint) => hints.listen(onHint)),
    async close() {
      closed = true
      hints.close()
    },
    waits: () => db.waits(),
    insides: { db, tables },
  }
}

/**
 * Rows of the feed are on one of two machines, and the entries that they list are visible before them. The sequencer is on
 * every machine: none lets go of it before the last one does.
 */
function machineOf(table: string, row: unknown): number {
  if (table === 'feed') return 1 + ((row as FeedRow).number % 2)
  return table === 'sequencer' ? 3 : 0
}

async function none(): Promise<readonly never[]> {
  return []
}
