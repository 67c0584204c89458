// A database that is away, silent, or there and refusing: callers get an error in time that says what to do, and a worker goes on by
// itself when it is repaired.

import { describe, expect, it, onTestFinished } from 'vitest'
import { createHoldfast, isHoldfastError, topic, workflow, type HoldfastError } from 'holdfast'
import { openPostgresStore } from 'holdfast/postgres'
import { until } from '../support/until.ts'
import { keepLines } from '../holdfast/open.ts'
import { freshSchema } from '../support/postgres-shared.ts'
import { holdfastAt, proxied } from './proxied.ts'
import { startOwnPostgres } from './restarts.ts'
import { execute, underRole } from './under-role.ts'

// The feed lists it: a role needs the sequence of that for nothing else.
const echo = workflow('refused.echo', { feed: true }, (ctx, n: number) => ctx.step('echo', () => n))
const patient = workflow('refused.patient', (ctx) => ctx.receive<string>('word'))
// Its input is not what a policy forbids, its result may be.
const notify = workflow('refused.notify', (ctx, text: string) => ctx.step('notify', () => text.replace('-', '')))
const workflows = [echo, patient, notify]

async function refusalOf(call: Promise<unknown>): Promise<HoldfastError> {
  const error: unknown = await call.then(
    () => 'It was answered.',
    (reason: unknown) => reason,
  )
  if (!isHoldfastError(error)) throw new Error(String(error))
  return error
}

describe('a database that is away', { timeout: 60_000 }, () => {
  it('is waited for no longer than the storage timeout, and what was unanswered is repeated by its id', async () => {
    const cluster = await startOwnPostgres()
    const store = await openPostgresStore({ url: cluster.url, schema: 'away', storageTimeout: '1s' })
    onTestFinished(() => store.close())
    const holdfast = await holdfastAt({ store, workflows })
    await holdfast.work({ shutdownTimeout: '1s' })
    const waiting = await holdfast.start(patient)
    await cluster.stop('fast')
    const [start, signal, cancel, get] = await Promise.all(
      [
        holdfast.start(echo, 7, { key: 'order-7' }),
        waiting.signal('word', 'hello'),
        holdfast.cancel(waiting),
        holdfast.get(waiting),
      ].map(refusalOf),
    )
    for (const error of [start, signal, cancel, get]) expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE' })
    await cluster.start()
    const id = start?.details['runId'] as string
    const again = await once(() => holdfast.start(echo, 7, { key: 'order-7', id }))
    expect(again.id).toBe(id)
    await once(() => waiting.signal('word', 'hello', { id: signal?.details['signalId'] as string }))
    expect(await again.result({ timeout: '30s' })).toBe(7)
    expect(await waiting.result({ timeout: '30s' })).toBe('hello')
    expect((await holdfast.count()).count).toBe(2)
  })

  it('keeps neither stop() nor close() from ending, nor leaves anybody waiting', async () => {
    const cluster = await startOwnPostgres()
    const holdfast = await holdfastAt({ store: `${cluster.url}?schema=away`, workflows })
    await holdfast.work({ shutdownTimeout: '1s' })
    const waiting = await holdfast.start(patient)
    await cluster.stop('immediate')
    const asked = [holdfast.start(echo, 7), waiting.signal('word'), waiting.result()].map(refusalOf)
    await holdfast.close()
    expect((await Promise.all(asked)).map(({ code }) => code)).toEqual(['CLOSED', 'CLOSED', 'CLOSED'])
  })
})

/** Repeats what a caller would repeat: the server is up, but connections of before break first. */
async function once<Answer>(call: () => Promise<Answer>): Promise<Answer> {
  for (;;) {
    try {
      return await call()
    } catch (error) {
      if (!isHoldfastError(error, 'STORE_UNAVAILABLE')) throw error
    }
  }
}

it('a network that falls silent keeps nobody waiting for longer than a lease allows', { timeout: 60_000 }, async () => {
  const { proxy, through } = await proxied()
  const holdfast = await holdfastAt({ store: through, workflows })
  await holdfast.work({ lease: '5s', shutdownTimeout: '1s' })
  const waiting = await holdfast.start(patient)
  proxy.delay(60_000)
  const calls = [holdfast.start(echo, 7), waiting.signal('word'), waiting.cancel()]
  // The storage timeout of 14 s is lowered to what a second heartbeat needs.
  for (const error of await Promise.all(calls.map(refusalOf))) {
    expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE', details: { sent: true } })
    expect(error.message).toContain('1.5 s')
  }
  await holdfast.close()
})

it('a start with a key is repeated by its id in a store of several shards, too', async () => {
  const { url, schema } = await freshSchema()
  const holdfast = await holdfastAt({ store: `${url}?schema=${schema}&shards=16`, workflows })
  const runs = await Promise.all(Array.from({ length: 8 }, (_, n) => holdfast.start(echo, n, { key: `order-${n}` })))
  for (const [n, { id }] of runs.entries()) {
    const again = await holdfast.start(echo, n, { key: `order-${n}`, id })
    expect([again.id, again.created]).toEqual([id, false])
  }
  // An id that was made for another key names another shard, but for one in sixteen.
  const others = await Promise.allSettled(runs.map(({ id }, n) => holdfast.start(echo, n, { key: `other-${n}`, id })))
  const codes = others.map((one) =>
    one.status === 'rejected' ? (one.reason as HoldfastError).code : 'the run of that id',
  )
  expect(codes).toContain('INVALID_OPTION')
  expect((await holdfast.count()).count).toBe(8)
})

const errorsOf = ({ lines }: ReturnType<typeof keepLines>): readonly string[] =>
  lines.filter(({ level }) => level === 'error').map(({ message }) => message)

describe('a right that is missing', { timeout: 60_000 }, () => {
  it('is reported at once, with the right and the table', async () => {
    const { holdfast, ask, role, schema } = await underRole(workflows)
    const waiting = await holdfast.start(patient)
    await ask(`revoke insert on ${schema}.runs, ${schema}.messages from ${role}`)
    const start = await refusalOf(holdfast.start(echo, 7))
    expect(start).toMatchObject({ code: 'STORE_REFUSED', details: { sqlState: '42501' } })
    expect(start.message).toContain(`lacks INSERT on ${schema}.runs: grant insert on ${schema}.runs to "${role}"`)
    expect(start.message).toContain('permission denied for table runs')
    expect(start.details).toMatchObject({ missing: [`insert on ${schema}.runs`] })
    const signal = await refusalOf(waiting.signal('word'))
    expect(signal).toMatchObject({ code: 'STORE_REFUSED', details: { sqlState: '42501' } })
    expect(signal.message).toContain(`lacks INSERT on ${schema}.messages`)
    expect(signal.message).toContain('permission denied for table messages')
    await ask(`revoke all on all tables in schema ${schema} from ${role}`)
    const calls = [holdfast.get(waiting), holdfast.find(), waiting.cancel(), holdfast.work()]
    for (const error of await Promise.all(calls.map(refusalOf))) {
      expect(error).toMatchObject({ code: 'STORE_REFUSED', details: { sqlState: '42501' } })
    }
  })

  it.each([
    ['usage on the sequence', 'revoke all on sequence S.feed_number from R', 'usage on S.feed_number'],
    ['usage on the schema', 'revoke usage on schema S from R', 'usage on schema S'],
    ['update, which a lock needs, too', 'revoke update on S.topics from R', 'update on S.topics'],
  ])('is named, whatever it is: %s', async (_what, revoke, missing) => {
    const { holdfast, ask, role, schema } = await underRole(workflows)
    const named = (text: string): string => text.replace(/\bS\b/, schema).replace(/\bR\b/, role)
    await ask(named(revoke))
    const call = missing.includes('topics')
      ? holdfast.broadcast(topic<string>('news'), 'text')
      : holdfast.start(echo, 7)
    const error = await refusalOf(call)
    expect(error).toMatchObject({ code: 'STORE_REFUSED', details: { sqlState: '42501', missing: [named(missing)] } })
    expect(error.message).toContain(`to "${role}"`)
  })

  it('is said once by a worker, which goes on when it is granted', async () => {
    const { holdfast, logger, ask, role, schema } = await underRole(workflows)
    await holdfast.work({ shutdownTimeout: '1s' })
    await ask(`revoke update on ${schema}.runs from ${role}`)
    const run = await holdfast.start(echo, 7)
    await until('the worker was refused several times', () => refusals(logger) > 3)
    const logged = errorsOf(logger)
    expect(new Set(logged).size).toBe(logged.length)
    expect(logged[0]).toContain('permission denied for table runs')
    await ask(`grant update on ${schema}.runs to ${role}`)
    expect(await run.result({ timeout: '30s' })).toBe(7)
  })

  it('is one of a database that became read-only, too', async () => {
    const { holdfast, ask, role } = await underRole(workflows)
    await holdfast.start(patient)
    await ask(
      `alter role ${role} set default_transaction_read_only = on`,
      `select pg_terminate_backend(pid) from pg_stat_activity where usename = '${role}'`,
    )
    // What was under way on a connection that was ended is away at first.
    await until('it is refused', async () => (await refusalOf(holdfast.start(echo, 7))).code === 'STORE_REFUSED')
    const error = await refusalOf(holdfast.start(echo, 7))
    expect(error).toMatchObject({ code: 'STORE_REFUSED', details: { sqlState: '25006' } })
    expect(error.message).toContain('read-only')
  })
})

describe('a policy that refuses two rows', { timeout: 60_000 }, () => {
  /** Nobody may write an entry that has this in it. */
  const forbid = (schema: string): readonly string[] => [
    `alter table ${schema}.journal enable row level security`,
    `create policy anything on ${schema}.journal using (true) with check (coalesce(data, '') not like '%forbidden%')`,
  ]

  it('rejects their starts at once, and holds up no other start', async () => {
    const { holdfast, ask, schema } = await underRole(workflows)
    await ask(...forbid(schema))
    const inputs = ['a', 'forbidden 1', 'b', 'c', 'forbidden 2', 'd']
    const settled = await Promise.allSettled(inputs.map((input) => holdfast.start(notify, input)))
    const codes = settled.map((one) => (one.status === 'fulfilled' ? 'started' : (one.reason as HoldfastError).code))
    const refused = 'STORE_REFUSED'
    expect(codes).toEqual(['started', refused, 'started', 'started', refused, 'started'])
    const [error] = settled.flatMap((one) => (one.status === 'rejected' ? [one.reason as HoldfastError] : []))
    expect(error?.message).toContain('A policy of row-level security refuses this row')
    expect((await holdfast.start(notify, 'later')).created).toBe(true)
  })

  it('holds up no commit of another run, is said once, and the two go on when it is changed', async () => {
    const { holdfast, logger, ask, schema } = await underRole(workflows)
    await ask(...forbid(schema))
    await holdfast.work({ shutdownTimeout: '1s' })
    const words = (n: number): string => (n % 5 === 0 ? `for-bidden ${n}` : `word ${n}`)
    const runs = await Promise.all(Array.from({ length: 10 }, (_, n) => holdfast.start(notify, words(n))))
    const others = runs.filter((_, n) => n % 5 !== 0)
    expect(await Promise.all(others.map((run) => run.result({ timeout: '30s' })))).toHaveLength(8)
    const later = await holdfast.start(notify, 'later')
    expect(await later.result({ timeout: '30s' })).toBe('later')
    const logged = errorsOf(logger)
    expect(logged.filter((message) => message.includes('row-level security'))).toHaveLength(1)
    await ask(`drop policy anything on ${schema}.journal`, `alter table ${schema}.journal disable row level security`)
    const held = runs.filter((_, n) => n % 5 === 0)
    expect(await Promise.all(held.map((run) => run.result({ timeout: '60s' })))).toEqual(['forbidden 0', 'forbidden 5'])
  })
})

describe('a policy that refuses to change two runs', { timeout: 60_000 }, () => {
  /** Nobody may write to a run that has such a key, whatever it is. */
  const forbid = (schema: string): readonly string[] => [
    `alter table ${schema}.runs enable row level security`,
    `create policy anything on ${schema}.runs using (true) with check (coalesce(key, '') not like 'forbidden%')`,
  ]
  const allow = (schema: string): readonly string[] => [
    `drop policy anything on ${schema}.runs`,
    `alter table ${schema}.runs disable row level security`,
  ]
  const keyOf = (n: number): string => (n % 5 === 0 ? `forbidden ${n}` : `order ${n}`)

  it.each([
    ['ready', 0],
    ['due a little later', 500],
  ])('keeps no claim from the others that are %s, names each once, and lets go of them', async (_what, delayMs) => {
    const { holdfast, logger, ask, schema } = await underRole(workflows)
    const when = delayMs === 0 ? {} : { runAt: new Date(Date.now() + delayMs) }
    const starts = Array.from({ length: 10 }, (_, n) => holdfast.start(echo, n, { ...when, key: keyOf(n) }))
    const runs = await Promise.all(starts)
    const two = runs.filter((_, n) => n % 5 === 0)
    await ask(...forbid(schema))
    await holdfast.work({ shutdownTimeout: '1s' })
    const others = runs.filter((run) => !two.includes(run))
    expect(await Promise.all(others.map((run) => run.result({ timeout: '30s' })))).toHaveLength(8)
    const logged = logger.lines.filter(({ message }) => message.includes('refuses to change run'))
    expect(logged.map(({ details }) => String(details['run'])).toSorted()).toEqual(two.map(({ id }) => id).toSorted())
    expect((await holdfast.start(echo, 11)).created).toBe(true)
    await ask(...allow(schema))
    expect(await Promise.all(two.map((run) => run.result({ timeout: '30s' })))).toEqual([0, 5])
  })

  it('keeps no heartbeat from moving the deadlines of others', async () => {
    const { holdfast, store, ask, schema } = await underRole(workflows)
    for (let n = 0; n < 10; n += 1) await holdfast.start(echo, n, { key: keyOf(n) })
    const own = await openPostgresStore({ url: store, listen: false })
    onTestFinished(() => own.close())
    const session = 'a session of its own'
    await own.beat({ session, leaseMs: 60_000 })
    const selectors = [{ type: 'refused.echo', version: 1, leaseMs: 30_000 }]
    const { runs } = await own.claim({ session, selectors, limit: 10 })
    await ask(...forbid(schema))
    const held = runs.map(({ id, token }) => ({ runId: id, token, extendMs: 3_600_000 }))
    const beat = await own.beat({ session, leaseMs: 60_000, held })
    const two = runs.filter(({ key }) => key?.startsWith('forbidden')).map(({ id }) => id)
    expect(beat).toMatchObject({ alive: true, lost: [] })
    expect(beat.busy?.toSorted()).toEqual(two.toSorted())
    const after = await own.get(runs.map(({ id }) => id))
    const moved = after.filter((run) => (run?.deadline ?? 0) > beat.now + 3_000_000)
    expect([two.length, moved.length]).toEqual([2, 8])
  })

  it('keeps no rescue from ending others whose time is over, and no bulk cancellation from the others', async () => {
    const { holdfast, ask, schema } = await underRole(workflows)
    const start = (n: number) => holdfast.start(patient, undefined, { key: keyOf(n), timeout: '1s' })
    await Promise.all(Array.from({ length: 10 }, (_, n) => start(n)))
    const calm = await Promise.all([20, 21, 22, 25].map((n) => holdfast.start(patient, undefined, { key: keyOf(n) })))
    await ask(...forbid(schema))
    await holdfast.work({ shutdownTimeout: '1s' })
    const timedOut = async (): Promise<number> => (await holdfast.count({ status: 'failed' })).count
    await until('eight have run out of time', async () => (await timedOut()) === 8)
    const ids = calm.map(({ id }) => id)
    expect(await holdfast.cancelMany({ ids })).toMatchObject({ matched: 4, changed: 2, skipped: 2 })
    expect((await holdfast.count({ status: 'cancelled' })).count).toBe(2)
    await ask(...allow(schema))
    // Each is left out for 5 s at first, and then for 10 s.
    await until('all ten have', async () => (await timedOut()) === 10, 30_000)
  })
})

function refusals({ lines }: ReturnType<typeof keepLines>): number {
  return lines.filter(({ details }) => isRefusal(details['error'])).length
}

function isRefusal(error: unknown): boolean {
  if (!isHoldfastError(error)) return false
  return error.code === 'STORE_REFUSED' || isHoldfastError(error.cause, 'STORE_REFUSED')
}

describe('a schema that is missing', { timeout: 60_000 }, () => {
  it('is reported at once, and a worker goes on when it was made', async () => {
    const { url, schema } = await freshSchema()
    const logger = keepLines()
    const store = `${url}?schema=${schema}`
    const holdfast = await holdfastAt({ store, workflows, logger })
    await holdfast.work({ shutdownTimeout: '1s' })
    await (await holdfast.start(echo, 1)).result()
    await execute(url, `drop schema ${schema} cascade`)
    const error = await refusalOf(holdfast.start(echo, 7))
    expect(error).toMatchObject({ code: 'STORE_REFUSED', details: { sqlState: '42P01' } })
    expect(error.message).toContain('holdfast migrate')
    expect(error.message).toContain('schema option')
    await until('the worker was refused several times', () => refusals(logger) > 3)
    const logged = errorsOf(logger)
    expect(logged.length).toBeGreaterThan(0)
    expect(new Set(logged).size).toBe(logged.length)
    const deployment = await createHoldfast({ store, migrate: true, logger: keepLines() })
    await deployment.close()
    const run = await holdfast.start(echo, 7)
    expect(await run.result({ timeout: '30s' })).toBe(7)
  })

  it.each([
    ['a database that is not there', '3D000', (url: URL) => void (url.pathname = '/nowhere')],
    ['a wrong password', '28P01', (url: URL) => void (url.password = 'wrong')],
    ['a user who is not there', '28P01', (url: URL) => void (url.username = 'nobody_of_that_name')],
  ])('and so is %s', async (_what, sqlState, change) => {
    const url = new URL((await freshSchema()).url)
    change(url)
    const error = await refusalOf(createHoldfast({ store: url.href, logger: keepLines() }))
    expect(error).toMatchObject({ code: 'STORE_REFUSED', details: { sqlState } })
    expect(error.message).toContain('address')
  })
})
