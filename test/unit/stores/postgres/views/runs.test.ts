// The views `runs`: their tables, columns and words, over rows that stand in our tables.

import { describe, expect, it } from 'vitest'
import { addEntries, addRun, at, idOf, installed, statuses, type EntryRow } from './place.ts'

describe('the views of runs', () => {
  it('have their tables and columns (SW-S1)', async () => {
    const { columnsOf } = await installed('runs')
    expect(await columnsOf('workflow_run')).toEqual(
      (
        'id type status priority idempotency_key payload result error last_error attempt max_attempts run_at lease_until ' +
        'leased_by created_at updated_at deleted_at delete_reason'
      ).split(' '),
    )
    expect(await columnsOf('workflow_event')).toEqual(['id', 'workflow_id', 'event_type', 'data', 'created_at'])
    expect(await columnsOf('outbox_event')).toEqual(['id', 'aggregate_id', 'event_type', 'payload', 'published_at'])
  })

  it('have their words for where a run stands, and every status has one (SW-S1)', async () => {
    const place = await installed('runs')
    for (const [index, status] of statuses.entries()) await addRun(place, index, { status })
    const found = await place.look('workflow_run', 'order by id')
    expect(found.map((row) => row['status'])).toEqual([
      'pending',
      'leased',
      'pending',
      'pending',
      'pending',
      'succeeded',
      'failed',
      'cancelled',
    ])
  })

  it('show what a run was given, how it ended and who holds it (SW-S1)', async () => {
    const place = await installed('runs')
    const { look, quoted, rows } = place
    await rows(`insert into ${quoted}.sessions (shard, id, opened_at, alive_until) values (0, 'here', 1, 9000)`)
    const held = { session: 'here', rank: -7, idempotency_key: 'once', deadline: null, token: 1 }
    await addRun(place, 1, { status: 'running', more: held })
    await addRun(place, 2, { status: 'failed', more: { ended_at: 3000, deleted_at: 4000, delete_reason: 'old' } })
    await addRun(place, 3, { status: 'succeeded', more: { due: 5000 } })
    await addEntries(place, 1, [
      ['started', null, { maxAttempts: 4 }, '"in"'],
      ['attempt-failed', null, { attempt: 1, ms: 1, delayMs: 1 }, '"first"'],
    ])
    await addEntries(place, 2, [
      ['started', null, null, '"in"'],
      ['attempt-failed', null, { attempt: 1, ms: 1, delayMs: 1 }, '"first"'],
      ['retried', null, { note: null }, null],
      ['failed', null, null, '"last"'],
    ])
    await addEntries(place, 3, [
      ['started', null, null, '"in"'],
      ['succeeded', null, null, '"out"'],
    ])
    const [first, second, third] = await look('workflow_run', 'order by id')
    expect(first).toMatchObject({
      priority: 7,
      idempotency_key: 'once',
      payload: '"in"',
      result: null,
      last_error: '"first"',
      attempt: 1,
      max_attempts: 4,
      leased_by: 'here',
      lease_until: at(9000),
      created_at: at(1000),
      updated_at: at(2000),
    })
    expect(second).toMatchObject({
      error: '"last"',
      attempt: 1,
      max_attempts: null,
      deleted_at: at(4000),
      delete_reason: 'old',
    })
    expect(third).toMatchObject({ result: '"out"', error: null, last_error: null, attempt: 0, run_at: at(5000) })
  })

  it('show what happened, in the order in which it did (SW-S1)', async () => {
    const place = await installed('runs')
    const { look, quoted, rows } = place
    await addRun(place, 1, {})
    await addRun(place, 2, {})
    const two: readonly EntryRow[] = [
      ['started', null, null, '"in"'],
      ['attempt-failed', null, { attempt: 1, ms: 1, delayMs: 1 }, '"no"'],
    ]
    await addEntries(place, 1, [...two, ['succeeded', null, null, '"out"']])
    await addEntries(place, 2, two)
    await rows(`insert into ${quoted}.feed (shard, number, runs, firsts, lasts, position) values
      (0, 1, array['${idOf(2)}']::uuid[], array[1], array[1], 1),
      (0, 2, array['${idOf(1)}', '${idOf(2)}']::uuid[], array[1, 2], array[2, 2], 4),
      (0, 3, array['${idOf(1)}']::uuid[], array[3], array[3], null)`)
    const found = await look('workflow_event', 'order by id nulls last')
    expect(found.map(({ id, workflow_id, event_type }) => [id, workflow_id, event_type])).toEqual([
      ['1', idOf(2), 'created'],
      ['2', idOf(1), 'created'],
      ['3', idOf(1), 'retried'],
      ['4', idOf(2), 'retried'],
      [null, idOf(1), 'succeeded'],
    ])
    expect(found[0]).toMatchObject({ data: '"in"', created_at: at(1100) })
    expect(await look('outbox_event')).toEqual([])
  })
})
