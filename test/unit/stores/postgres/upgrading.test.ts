// Old and new alive together: a deployment migrates the schema while workers of the version before go on, and sends them home
// when it no longer can do with them. On a real Postgres, with real runs.

import { describe, expect, it, onTestFinished } from 'vitest'
import { createHoldfast, workflow, type Holdfast, type HoldfastOptions } from 'holdfast'
import { openPostgresStore } from '../../../../src/stores/postgres/index.ts'
import { migrate } from '../../../../src/stores/postgres/schema/migrate.ts'
import { migrations, type Migration } from '../../../../src/stores/postgres/schema/schema.ts'
import { installViews, viewNames } from '../../../../src/stores/postgres/views.ts'
import { createRecordingLogger } from '../../../../src/testing/logger.ts'
import { gate } from '../../../holdfast/gate.ts'
import { emptyPlace, type Place } from './database.ts'

/** What the next version could be: it adds, and takes nothing away. */
const expanding: Migration = (schema) => `
  alter table ${schema}.runs add column colour text not null default 'blue';
  create index runs_colour on ${schema}.runs (shard, colour, id);
  create table ${schema}.colours (shard smallint not null, name text not null, primary key (shard, name))`
const newer = [...migrations, expanding]

const greet = workflow('greet', async (ctx, name: string) => {
  const greeting = await ctx.step('greet', () => `Hello ${name}`)
  await ctx.step('note', () => undefined)
  return greeting
})

async function open(place: Place, options: Partial<HoldfastOptions> = {}): Promise<Holdfast> {
  const { pool, schema } = place
  const store = await openPostgresStore({ pool, schema, listen: false })
  const logger = createRecordingLogger()
  const holdfast = await createHoldfast({ store, workflows: [greet], logger, ...options })
  onTestFinished(async () => {
    await holdfast.close()
    await store.close()
  })
  return holdfast
}

describe('a client of the version before', () => {
  it('starts, performs, finds and checks runs on the new schema', async () => {
    const place = await emptyPlace()
    await migrate(place.pool, { schema: place.schema, migrations: newer })
    const old = await open(place)
    await old.work({ signals: false })
    const runs = await Promise.all(['Ada', 'Grace', 'Alan'].map((name) => old.start(greet, name)))
    expect(await Promise.all(runs.map((run) => run.result()))).toEqual(['Hello Ada', 'Hello Grace', 'Hello Alan'])
    expect((await old.find({ type: 'greet' })).runs).toHaveLength(3)
    expect((await old.doctor()).filter(({ offenders }) => offenders.length > 0)).toEqual([])
    const kept = await place.rows(`select distinct colour from ${place.quoted}.runs`)
    expect(kept).toEqual([{ colour: 'blue' }])
  })

  it('goes on in the middle of its work when the schema is migrated under it', async () => {
    const place = await emptyPlace()
    const { passed, open: letGo } = gate()
    let begun = 0
    const slow = workflow('slow', async (ctx) => {
      await ctx.step('before', () => void (begun += 1))
      await ctx.step('wait', () => passed)
      return 'done'
    })
    const old = await open(place, { workflows: [slow] })
    await old.work({ signals: false })
    const runs = await Promise.all([1, 2, 3].map(() => old.start(slow)))
    await expect.poll(() => begun).toBe(3)
    expect(await migrate(place.pool, { schema: place.schema, migrations: newer })).toMatchObject({
      from: migrations.length,
      to: newer.length,
    })
    letGo()
    expect(await Promise.all(runs.map((run) => run.result()))).toEqual(['done', 'done', 'done'])
  })

  it('stops in good order when the schema admits it no more, and cannot be opened again', async () => {
    const place = await emptyPlace()
    const { passed, open: letGo } = gate()
    let begun = 0
    const slow = workflow('slow', async (ctx) => {
      await ctx.step('wait', () => {
        begun += 1
        return passed
      })
      return 'done'
    })
    const logger = createRecordingLogger()
    const old = await open(place, { workflows: [slow], logger })
    const worker = await old.work({ signals: false, lease: '3s', heartbeat: '50ms' })
    const run = await old.start(slow)
    await expect.poll(() => begun).toBe(1)
    await migrate(place.pool, { schema: place.schema, migrations: newer })
    await place.rows(
      `update ${place.quoted}.settings set value = '${newer.length}' where shard = 0 and name = 'min-client'`,
    )
    await expect.poll(() => logger.messages('error')).toHaveLength(1)
    letGo()
    expect(await worker.ended).toMatchObject({
      code: 'SCHEMA_TOO_NEW',
      details: { needed: newer.length, known: migrations.length },
    })
    expect(logger.messages('error')).toEqual([expect.stringContaining('This worker stops: The schema admits only')])
    // What it was doing was recorded, and nothing is held any more.
    expect((await old.get(run)).status).toBe('succeeded')
    expect(await place.rows(`select 1 from ${place.quoted}.runs where session is not null`)).toEqual([])
    expect(await place.rows(`select 1 from ${place.quoted}.sessions where ended_at is null`)).toEqual([])
    await expect(openPostgresStore({ pool: place.pool, schema: place.schema, listen: false })).rejects.toMatchObject({
      code: 'SCHEMA_TOO_NEW',
    })
  })
})

describe('the views', () => {
  it('show real runs as they are, each design in its words (PQ-S1, SW-S1, IF-S2, WC-S2)', async () => {
    const place = await emptyPlace()
    const { schema, rows, pool } = place
    const failing = workflow('failing', { retry: { maxAttempts: 1 } }, async (ctx) => {
      const fails = (): never => {
        throw new Error('No luck')
      }
      await ctx.step('fails', fails, { retry: { maxAttempts: 1 } })
    })
    const holdfast = await open(place, { workflows: [greet, failing] })
    await installViews(pool, { schema, views: viewNames, payloads: true })
    await holdfast.work({ signals: false })
    const good = await holdfast.start(greet, 'Ada', { key: 'ada' })
    const bad = await holdfast.start(failing)
    await good.result()
    await bad.result().catch(() => undefined)
    const view = (name: string): string => `"${schema}_${name}_payloads"`
    expect(
      await rows(
        `select id::text, status, payload, result, attempt from ${view('runs')}.workflow_run order by type desc`,
      ),
    ).toEqual([
      { id: good.id, status: 'succeeded', payload: '"Ada"', result: '"Hello Ada"', attempt: 0 },
      { id: bad.id, status: 'failed', payload: expect.any(String) as string, result: null, attempt: 1 },
    ])
    const errors = await rows(`select last_error from ${view('runs')}.workflow_run where status = 'failed'`)
    expect(errors[0]?.['last_error']).toContain('No luck')
    expect(
      await rows(
        `select workflow_id, completed_at is not null as completed from ${view('instances')}.workflow_instances order by 1`,
      ),
    ).toEqual(
      [
        { workflow_id: 'ada', completed: true },
        { workflow_id: bad.id, completed: true },
      ].sort((a, b) => (a.workflow_id < b.workflow_id ? -1 : 1)),
    )
    expect(
      await rows(
        `select sequence, event_type from ${view('instances')}.events where workflow_id = 'ada' order by sequence`,
      ),
    ).toEqual([
      { sequence: 1, event_type: 'started' },
      { sequence: 2, event_type: 'step-succeeded' },
      { sequence: 3, event_type: 'step-succeeded' },
      { sequence: 4, event_type: 'succeeded' },
    ])
    expect(await rows(`select status from ${view('waits')}.workflows order by 1`)).toEqual([
      { status: 'Failed' },
      { status: 'Succeeded' },
    ])
    expect(
      await rows(`select w.name, r.status, s.step_id, s.status as step, s.output from ${view('queues')}.workflow_runs r
        join ${view('queues')}.workflows w using (workflow_id)
        join ${view('queues')}.workflow_steps s using (run_id) order by s.step_id`),
    ).toEqual([
      { name: 'failing_v1', status: 'ERROR', step_id: 'fails', step: 'ERROR', output: null },
      { name: 'greet_v1', status: 'SUCCESS', step_id: 'greet', step: 'SUCCESS', output: '"Hello Ada"' },
      { name: 'greet_v1', status: 'SUCCESS', step_id: 'note', step: 'SUCCESS', output: expect.any(String) as string },
    ])
  })
})
