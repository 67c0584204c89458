// The views `queues`: their tables, columns and words, over rows that stand in our tables.

import { describe, expect, it } from 'vitest'
import { addEntries, addRun, at, idOf, installed, statuses } from './place.ts'

describe('the views of queues', () => {
  it('have their tables and columns (PQ-S1, PQ-S2)', async () => {
    const { columnsOf } = await installed('queues')
    expect(await columnsOf('queues')).toEqual(['queue_id', 'name', 'created_at'])
    expect(await columnsOf('workflows')).toEqual(['workflow_id', 'name', 'queue_id', 'created_at'])
    expect(await columnsOf('workflow_runs')).toEqual(
      'run_id workflow_id status input output error created_at started_at paused_at completed_at worker_id'.split(' '),
    )
    expect(await columnsOf('workflow_steps')).toEqual(
      'run_id step_id status input output error started_at completed_at'.split(' '),
    )
    expect(await columnsOf('workers')).toEqual(['worker_id', 'status', 'started_at', 'shutdown_at'])
  })

  it('have their words for where a run stands, and every status has one (PQ-S1)', async () => {
    const place = await installed('queues')
    for (const [index, status] of statuses.entries()) await addRun(place, index, { status })
    await addRun(place, 20, { more: { token: 3 } })
    const found = await place.look('workflow_runs', 'order by run_id')
    const words = found.map((row) => row['status'])
    expect(words).toEqual(['PENDING', 'RUNNING', 'PAUSED', 'PAUSED', 'RUNNING', 'SUCCESS', 'ERROR', 'ERROR', 'RUNNING'])
  })

  it('join as their tables do: steps to runs to workflows to queues (PQ-S1)', async () => {
    const place = await installed('queues')
    const { quoted, rows, look, view } = place
    await rows(`insert into ${quoted}.workflows (shard, type, version, style, queue, seen_at) values
      (0, 'shop.order', 2, 'function', null, 5000), (0, 'shop.refund', 1, 'function', 'slow', 6000)`)
    await rows(`insert into ${quoted}.sessions (shard, id, opened_at, alive_until, ended_at) values
      (0, 'here', 1, 9000, null), (0, 'gone', 1, 2, 3)`)
    await addRun(place, 1, { status: 'running', more: { session: 'here', token: 1 } })
    await addEntries(place, 1, [
      ['started', null, null, '"in"'],
      ['attempt-failed', 'charge', { attempt: 1, ms: 20, delayMs: 1 }, '"declined"'],
      ['attempt-failed', 'ship', { attempt: 1, ms: 20, delayMs: 1 }, '"sunk"'],
      ['step-succeeded', 'charge', { attempt: 2, ms: 50 }, '"charged"'],
      ['waiting', 'sleep', { conditions: [] }, null],
    ])
    await addRun(place, 2, { status: 'succeeded', more: { ended_at: 7000 } })
    await addEntries(place, 2, [
      ['started', null, null, '"in"'],
      ['succeeded', null, null, '"out"'],
    ])
    const joined = await rows(`select q.name as queue, r.status, r.input, r.worker_id, w.status as worker, s.*
      from ${view}.workflow_steps s
      join ${view}.workflow_runs r using (run_id) join ${view}.workflows using (workflow_id)
      join ${view}.queues q using (queue_id) join ${view}.workers w using (worker_id) order by s.step_id`)
    const common = {
      queue: 'shop.order_v2',
      status: expect.any(String) as string,
      worker: 'polling',
      run_id: idOf(1),
      input: null,
    }
    expect(joined).toEqual([
      expect.objectContaining({
        ...common,
        step_id: 'charge',
        output: '"charged"',
        error: null,
        started_at: at(1350),
        completed_at: at(1400),
      }),
      expect.objectContaining({ ...common, step_id: 'ship', output: null, error: '"sunk"', completed_at: null }),
      expect.objectContaining({ ...common, step_id: 'sleep', output: null, error: null }),
    ])
    expect(joined.map((row) => row['status'])).toEqual(['SUCCESS', 'PENDING', 'PAUSED'])
    expect(await look('workflow_runs', `where status = 'SUCCESS'`)).toMatchObject([
      { input: '"in"', output: '"out"', completed_at: at(7000), started_at: at(1200), worker_id: null },
    ])
    const queues = await look('queues', 'order by name')
    expect(queues.map((row) => row['name'])).toEqual(['shop.order_v2', 'slow'])
  })
})
