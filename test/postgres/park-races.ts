// The race that costs queues their wake-ups: a run decides to sleep while a message for it arrives. One process parks, another
// one delivers, both at the same moment as nearly as a pipe allows. Who comes first is watched, and the one that does too often
// is held back a little, so that most races are close.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import type { Committed } from '../../src/store.ts'
import type { PostgresStoreOptions } from '../../src/stores/postgres/index.ts'
import { commitOne } from '../../src/testing/contract/bench.ts'
import { childProgram } from '../support/child-program.ts'
import { migratedSchema } from '../support/postgres-shared.ts'
import { opened } from './proxied.ts'

export interface Tally {
  races: number
  /** The run was asleep, and the message woke it. */
  woken: number
  /** The message came first, and the run that wanted to park was answered so. */
  delivered: number
  /** A message lies in the mailbox of a run that sleeps on; or an answer said something else than what is. */
  readonly lost: string[]
}

const atOnce = 10
const wait = { kind: 'waiting', name: 'w', meta: { conditions: [] }, data: null } as const

/** Races `races` times; `parking` says over which connections the parking side goes, if not over its own. */
export async function raceParkings(
  races: number,
  parking: (url: string) => Pick<PostgresStoreOptions, 'url' | 'pool'> = (url) => ({ url }),
): Promise<Tally> {
  const { url, schema } = await migratedSchema()
  const { store, bench } = await opened({ url, schema })
  const { store: parker } = await opened({ ...parking(url), schema, connections: atOnce })
  const child = await startDeliverer(url, schema)
  const tally: Tally = { races: 0, woken: 0, delivered: 0, lost: [] }
  try {
    assert.equal(await child.said(), 'ready')
    let headStartMs = 1
    while (tally.races < races) {
      const held = await Promise.all(Array.from({ length: atOnce }, () => bench.hold()))
      const parks = held.map((one) =>
        bench.transition(one, { append: [wait], status: 'waiting', parkIf: { inbox: 0 } }),
      )
      child.say(JSON.stringify(held.map(({ runId }) => bench.message(runId))))
      assert.equal(await child.said(), 'loaded')
      child.say('go')
      // Neither too early nor always the same: each race of a round begins a little later than the one before.
      const spread = headStartMs * 2 * Math.random()
      const parked = await Promise.all(
        parks.map((park, index) => later(spread + index * 0.05, () => commitOne(parker, park, { mayWait: true }))),
      )
      const outcomes = JSON.parse(await child.said()) as readonly string[]
      const rows = await store.get(held.map(({ runId }) => runId))
      let woken = 0
      for (const [index, row] of rows.entries()) {
        const answer = parked[index] as Extract<Committed, { outcome: 'committed' }>
        const facts = [answer.released, outcomes[index], row?.status, row?.readiness, row?.inbox, row?.session === null]
        const seen = JSON.stringify(facts)
        if (seen === '[true,"delivered","waiting","ready",1,true]') woken += 1
        else if (seen === '[false,"queued","running","leased",1,false]' && answer.inbox === 1) tally.delivered += 1
        else tally.lost.push(seen)
      }
      tally.races += atOnce
      tally.woken += woken
      if (woken > atOnce / 2) headStartMs = Math.min(20, headStartMs * 1.2)
      else headStartMs = Math.max(0.05, headStartMs / 1.2)
    }
    return tally
  } finally {
    await child.end()
  }
}

/** Begins after so many milliseconds, to the microsecond: a timer would be too coarse. */
async function later<Answer>(ms: number, act: () => Promise<Answer>): Promise<Answer> {
  for (const begin = performance.now() + ms; performance.now() < begin;) await new Promise(setImmediate)
  return act()
}

async function startDeliverer(url: string, schema: string) {
  const program = await childProgram('test/postgres/deliver-child.ts')
  const child = spawn(process.execPath, [program, url, schema], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const exited = new Promise((resolve) => child.once('exit', resolve))
  return {
    say: (line: string) => void child.stdin.write(`${line}\n`),
    async said(): Promise<string> {
      const line = (await lines.next()) as IteratorResult<string, undefined>
      if (line.done === true) throw new Error('The process that delivers has ended.')
      return line.value
    },
    async end(): Promise<void> {
      child.stdin.end()
      await exited
    },
  }
}
