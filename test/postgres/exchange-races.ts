// Races between four processes on one Postgres: runs park, wake, time out and end while others send to them, broadcast, and
// end as their children. Whatever was accepted is found once: read by exactly one run, or unread exactly once.

import assert from 'node:assert/strict'
import { spawn, type ChildProcess } from 'node:child_process'
import { createInterface } from 'node:readline'
import { Client } from 'pg'
import { createHoldfast, type Holdfast } from '../../src/holdfast.ts'
import { openPostgresStore } from '../../src/stores/postgres/index.ts'
import { childProgram } from '../support/child-program.ts'
import { migratedSchema } from '../support/postgres-shared.ts'
import { racers, type Sending } from './exchange-racers.ts'

const processes = 4
const runsAtOnce = 40

export interface RaceTally {
  races: number
  /** Signals that were read, and that were found unread when their run ended. */
  read: number
  unread: number
  /** Jobs that a run took, and that nobody did. */
  taken: number
  open: number
  /** Parents whose child came in time, and that did not wait so long. */
  inTime: number
  late: number
  readonly wrong: string[]
}

export async function raceExchange(races: number): Promise<RaceTally> {
  const { url, schema } = await migratedSchema()
  const store = await openPostgresStore({ url, schema })
  const holdfast = await createHoldfast({ store, workflows: racers })
  const program = await childProgram('test/postgres/exchange-child.ts')
  const children = Array.from({ length: processes }, () => new Racer(program, url, schema))
  const client = new Client({ connectionString: url })
  await client.connect()
  const tally: RaceTally = { races: 0, read: 0, unread: 0, taken: 0, open: 0, inTime: 0, late: 0, wrong: [] }
  try {
    for (const child of children) assert.equal(await child.said(), 'ready')
    let patience = 1
    for (let round = 0; tally.races < races; round += 1) {
      const before = { ...tally }
      await raceOnce(holdfast, children, { round, patience }, tally)
      tally.races += runsAtOnce
      // How long a child takes is the machine's affair: parents wait for about so long, so that either may come first.
      if (tally.inTime === before.inTime) patience *= 2
      else if (tally.late === before.late) patience /= 2
    }
    await judge(client, schema, tally)
    const violations = (await store.doctor()).filter(({ offenders }) => offenders.length > 0)
    for (const { name, offenders } of violations) tally.wrong.push(`${name}: ${offenders.join()}`)
    return tally
  } finally {
    await Promise.all(children.map((child) => child.end()))
    await client.end()
    await holdfast.close()
    await store.close()
  }
}

async function raceOnce(
  holdfast: Holdfast,
  children: readonly Racer[],
  { round, patience }: { readonly round: number; readonly patience: number },
  tally: RaceTally,
): Promise<void> {
  const waitMs = 20 + (round % 5) * 20
  const msOf = (type: string): number => (type === 'race.parent' ? Math.ceil(waitMs * patience) : waitMs)
  const types = ['race.signalled', 'race.signalled', 'race.worker', 'race.reader', 'race.parent']
  const runs = await Promise.all(
    Array.from({ length: runsAtOnce }, (_, index) => {
      const type = types[index % types.length] as string
      return holdfast.start(type, msOf(type))
    }),
  )
  const near = (): number => Math.random() * waitMs * 3
  const sends: Sending[] = []
  for (const [index, { id }] of runs.entries()) {
    const name = `${round}.${index}`
    const type = types[index % types.length]
    if (type === 'race.signalled')
      sends.push({ to: id, id: `${name}.a`, afterMs: near() }, { to: id, id: `${name}.b`, afterMs: near() })
    if (type === 'race.worker') sends.push({ to: 'jobs', id: name, afterMs: near() })
    if (type === 'race.reader' && index < 5) sends.push({ to: 'news', id: name, afterMs: near() })
  }
  const shares = children.map((_, part) => sends.filter((_send, index) => index % processes === part))
  const answers = await Promise.all(children.map((child, part) => child.send(shares[part] ?? [])))
  const outcomes = new Map(
    shares.flatMap((share, part) => share.map(({ id }, index) => [id, answers[part]?.[index] ?? 'none'] as const)),
  )
  const results = await Promise.all(runs.map((run) => run.result({ timeout: '60s' })))
  for (const [index, result] of results.entries()) {
    if (types[index % types.length] === 'race.parent') {
      if (result === -1) tally.late += 1
      else tally.inTime += 1
    }
  }
  for (const [id, outcome] of outcomes) {
    if (!['delivered', 'queued', 'target-terminated'].includes(outcome)) tally.wrong.push(`${id}: ${outcome}`)
  }
}

/** What the tables say at the end: everything that was accepted lies somewhere, once. */
async function judge(client: Client, schema: string, tally: RaceTally): Promise<void> {
  const table = (name: string): string => `"${schema}".${name}`
  const { rows: messages } = await client.query<Record<string, string | number | null>>(
    `select m.run_id, m.id, m.kind, m.taken_by, m.fate,
       (select count(*)::int from ${table('journal')} as entry where entry.shard = m.shard and entry.run_id = m.run_id
         and entry.kind = 'woken' and entry.meta::json -> 'by' ->> 'id' = m.id) as wokes,
       r.status
     from ${table('messages')} as m join ${table('runs')} as r on r.shard = m.shard and r.id = m.run_id`,
  )
  for (const { id, kind, taken_by: takenBy, fate, wokes, status } of messages) {
    const isRead = wokes === 1 && takenBy !== null && fate === null
    const isUnread = wokes === 0 && takenBy !== null && fate !== null
    if (!isRead && !isUnread) tally.wrong.push(`${id}: ${wokes} times read, fate ${fate}, of a run that is ${status}`)
    if (kind !== 'signal') continue
    if (isRead) tally.read += 1
    else tally.unread += 1
  }
  const { rows: sent } = await client.query<Record<string, string | number | null>>(
    `select b.id, b.taken_by from ${table('broadcasts')} as b where b.topic = 'jobs'`,
  )
  const perJob = new Map<string, number>()
  for (const { id, kind, wokes } of messages) {
    if (kind === 'broadcast' && wokes === 1) {
      const job = String(id)
        .replace(/^jobs:/, '')
        .replace(/@.*$/, '')
      perJob.set(job, (perJob.get(job) ?? 0) + 1)
    }
  }
  for (const { id, taken_by: takenBy } of sent) {
    if (takenBy === null) tally.open += 1
    else tally.taken += 1
    const times = perJob.get(String(id).replace(/@.*$/, '')) ?? 0
    if (times > 1) tally.wrong.push(`job ${id} was read ${times} times`)
  }
}

class Racer {
  private readonly child: ChildProcess
  private readonly lines: AsyncIterator<string>
  private readonly exited: Promise<unknown>

  constructor(program: string, url: string, schema: string) {
    this.child = spawn(process.execPath, [program, url, schema], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    if (this.child.stdout === null) throw new Error('A racer has no output.')
    this.lines = createInterface({ input: this.child.stdout })[Symbol.asyncIterator]()
    this.exited = new Promise((resolve) => this.child.once('exit', resolve))
  }

  async send(sends: readonly Sending[]): Promise<readonly string[]> {
    this.child.stdin?.write(`${JSON.stringify(sends)}\n`)
    return JSON.parse(await this.said()) as readonly string[]
  }

  async said(): Promise<string> {
    const line = (await this.lines.next()) as IteratorResult<string, undefined>
    if (line.done === true) throw new Error('A process of the race has ended.')
    return line.value
  }

  async end(): Promise<void> {
    this.child.stdin?.end()
    await this.exited
  }
}
