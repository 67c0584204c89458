// Row-level security on the tables of a store: a process that opens it under a role that policies apply to gets a warning, a run whose journal
// they hide is left alone more and more, and rescues that they refuse are said.

import { Client } from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { workflow } from 'holdfast'
import { openPostgresStore } from 'holdfast/postgres'
import { createContractBench } from '../../src/testing/contract/bench.ts'
import { until } from '../support/until.ts'
import { keepLines } from '../holdfast/open.ts'
import { underRole } from './under-role.ts'

const echo = workflow('security.echo', (ctx, n: number) => ctx.step('echo', () => n))
const patient = workflow('security.patient', (ctx) => ctx.receive<string>('word'))
const workflows = [echo, patient]

type Kept = ReturnType<typeof keepLines>

const messagesOf = ({ lines }: Kept, level: string, part: string): readonly string[] =>
  lines.filter((line) => line.level === level && line.message.includes(part)).map(({ message }) => message)

/** What is said when a store is opened at this address. */
async function warningsAt(store: string): Promise<readonly string[]> {
  const logger = keepLines()
  const opened = await openPostgresStore({ url: store, listen: false, logger })
  await opened.close()
  return messagesOf(logger, 'warn', 'Row-level security')
}

describe('a store whose tables have policies', { timeout: 60_000 }, () => {
  it('says so when it is opened under a role that they apply to, once and with the tables', async () => {
    const { logger, ask, schema, store } = await underRole(workflows)
    expect(messagesOf(logger, 'warn', 'Row-level security')).toEqual([])
    expect(await warningsAt(store)).toEqual([])
    await ask(...['messages', 'runs'].map((table) => `alter table ${schema}.${table} enable row level security`))
    const [warning, ...others] = await warningsAt(store)
    expect(others).toEqual([])
    expect(warning).toContain(`on ${schema}.messages, ${schema}.runs.`)
    expect(warning).toContain('BYPASSRLS')
  })

  it('says nothing to a superuser, to a role that bypasses them, and to an owner on whom they are not forced', async () => {
    const { ask, role, schema, store } = await underRole(workflows)
    await ask(`alter table ${schema}.runs enable row level security`)
    expect(await warningsAt(store)).toHaveLength(1)
    await ask(`alter role ${role} bypassrls`)
    expect(await warningsAt(store)).toEqual([])
    await ask(`alter role ${role} nobypassrls`, `alter table ${schema}.runs owner to ${role}`)
    expect(await warningsAt(store)).toEqual([])
    await ask(`alter table ${schema}.runs force row level security`)
    expect(await warningsAt(store)).toHaveLength(1)
    await ask(`alter role ${role} superuser`)
    expect(await warningsAt(store)).toEqual([])
    await ask(`alter role ${role} nosuperuser`)
  })
})

describe('a run that a policy refuses to every claim', { timeout: 60_000 }, () => {
  it('stops no claim that begins behind the runs that others hold', async () => {
    const { store: url, schema, ask } = await underRole([], 1)
    const store = await openPostgresStore({ url, listen: false, connections: 4 })
    onTestFinished(() => store.close())
    const bench = createContractBench({ store, clock: { now: () => Date.now(), advance: () => undefined } })
    const start = (count: number) => store.start(Array.from({ length: count }, () => bench.newRun()))
    await start(330)
    await bench.start({ key: 'forbidden' })
    await start(300)
    await ask(
      `alter table ${schema}.runs enable row level security`,
      `create policy refusing on ${schema}.runs using (true) with check (coalesce(key, '') <> 'forbidden')`,
    )
    const address = new URL(url)
    address.search = ''
    const user = new Client({ connectionString: String(address) })
    await user.connect()
    onTestFinished(() => user.end())
    await user.query('begin')
    await user.query(
      `select 1 from (select id, row_number() over (order by due, id) as nth from ${schema}.runs) as first
      inner join ${schema}.runs as run on run.id = first.id where nth <= 300 and nth % 3 > 0 for update of run`,
    )
    let leased = 0
    for (let claims = 0; claims < 50; claims += 1) leased += (await bench.claim({ limit: 10 })).runs.length
    expect(leased).toBe(430)
  })
})

describe('a run whose journal a policy hides', { timeout: 60_000 }, () => {
  it('is claimed less and less often, is said once, holds up no other, and goes on when it is shown', async () => {
    const { holdfast, logger, ask, schema, store } = await underRole(workflows)
    const run = await holdfast.start(echo, 41)
    const other = await openPostgresStore({ url: store, listen: false })
    onTestFinished(() => other.close())
    // The claim of a run that nobody has begun brings its first entry along; a later one reads it.
    const session = 'another worker'
    await other.beat({ session, leaseMs: 60_000 })
    const { runs } = await other.claim({ session, selectors: [{ type: echo.type, version: 1 }], limit: 1 })
    await other.release(runs.map(({ id, token }) => ({ runId: id, session, token })))
    const tokenOf = async (): Promise<number> => (await other.get([run.id]))[0]?.token ?? 0
    const before = await tokenOf()
    await ask(
      `alter table ${schema}.journal enable row level security`,
      `create policy hiding on ${schema}.journal using (coalesce(data, '') not like '%41%') with check (true)`,
    )
    await holdfast.work({ shutdownTimeout: '1s' })
    await until('it was claimed several times', async () => (await tokenOf()) >= before + 3)
    const [since, seen] = [performance.now(), await tokenOf()]
    // By now it is kept for 400 ms and then for 800 ms, half as long at least.
    await until('it was claimed twice more', async () => (await tokenOf()) >= seen + 2)
    expect(performance.now() - since).toBeGreaterThan(200)
    const shown = await holdfast.start(echo, 7)
    expect(await shown.result({ timeout: '30s' })).toBe(7)
    expect(await tokenOf()).toBeLessThan(before + 10)
    const logged = messagesOf(logger, 'error', run.id)
    expect(logged).toEqual([expect.stringContaining('shows 0 of the 1 entries of the journal')])
    await ask(`alter table ${schema}.journal disable row level security`)
    expect(await run.result({ timeout: '30s' })).toBe(41)
  })
})

describe('a rescue that a policy refuses', { timeout: 60_000 }, () => {
  it.each([
    ['runs', 'UPDATE', `with check (coalesce(key, '') not like 'forbidden%')`],
    ['journal', 'INSERT', `with check (kind <> 'failed')`],
  ])('is said once with the table, the right and how many runs: %s', async (table, right, check) => {
    const { holdfast, ask, schema, store } = await underRole(workflows)
    const starts = [1, 2].map((n) => holdfast.start(patient, undefined, { key: `forbidden ${n}`, timeout: '1s' }))
    await Promise.all(starts)
    await ask(
      `alter table ${schema}.${table} enable row level security`,
      `create policy refusing on ${schema}.${table} using (true) ${check}`,
    )
    const logger = keepLines()
    const own = await openPostgresStore({ url: store, listen: false, logger })
    onTestFinished(() => own.close())
    const failures = { crashed: '"crashed"', 'timed-out': '"timed-out"', expired: '"expired"' }
    const rescue = () => own.rescue({ limit: 500, maxCrashes: 5, workflows: [], failures })
    const logged = (): readonly string[] => messagesOf(logger, 'error', 'whose worker died or whose time is over')
    await until('both are over time and refused', async () => {
      expect((await rescue()).ended).toEqual([])
      return logged().length > 0
    })
    for (let looks = 0; looks < 3; looks += 1) expect((await rescue()).ended).toEqual([])
    expect(logged()).toHaveLength(1)
    expect(logged()[0]).toMatch(new RegExp(`refuses ${right} on "${schema}"\\.${table} for [12] runs?`))
    await ask(`alter table ${schema}.${table} disable row level security`)
    const ended: unknown[] = []
    await until(
      'both have come to their end, once they are tried again',
      async () => ended.push(...(await rescue()).ended) === 2,
      30_000,
    )
  })

  it.each([
    ['3 in front of 300', 3, (n: number) => n < 3, 303],
    ['every second of 120', 60, (n: number) => n % 2 === 0, 120],
  ])('keeps none of those from being rescued that stand behind it: %s', async (_what, refused, isRefused, count) => {
    const { holdfast, ask, schema, store } = await underRole(workflows)
    for (let n = 0; n < count; n += 1) {
      const key = isRefused(n) ? `forbidden ${n}` : `order ${n}`
      const start = holdfast.start(patient, undefined, { key, timeout: '1s' })
      // Those in front have less time left.
      if (isRefused(n)) await start
      else void start
    }
    await until('all are there', async () => (await holdfast.count()).count === count)
    await ask(
      `alter table ${schema}.runs enable row level security`,
      `create policy refusing on ${schema}.runs using (true) with check (key not like 'forbidden%')`,
    )
    const logger = keepLines()
    const own = await openPostgresStore({ url: store, listen: false, logger })
    onTestFinished(() => own.close())
    const failures = { crashed: '"crashed"', 'timed-out': '"timed-out"', expired: '"expired"' }
    const ended = new Set<string>()
    await until('all others have come to their end', async () => {
      const rescued = await own.rescue({ limit: 500, maxCrashes: 5, workflows: [], failures })
      for (const { runId } of rescued.ended) ended.add(runId)
      return ended.size === count - refused
    })
    expect((await holdfast.count({ status: 'failed' })).count).toBe(count - refused)
  })
})
