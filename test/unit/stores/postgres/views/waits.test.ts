// The views `waits`: their tables, columns and words, over rows that stand in our tables.

import { describe, expect, it } from 'vitest'
import { addEntries, addRun, at, idOf, installed, statuses } from './place.ts'

describe('the views of waits', () => {
  it('have their tables and columns (WC-S2, WC-S5)', async () => {
    const { columnsOf } = await installed('waits')
    expect(await columnsOf('workflows')).toEqual(
      'id type status waiting_for_events waiting_for_timer waiting_for_workflows created_at updated_at'.split(' '),
    )
    expect(await columnsOf('activity_steps')).toEqual(['workflow_id', 'activity_index', 'value', 'error'])
    expect(await columnsOf('winning_conditions')).toEqual([
      'workflow_id',
      'activity_index',
      'condition_type',
      'event_name',
    ])
    expect(await columnsOf('pending_events')).toEqual(['event_id', 'event_name', 'value', 'created_at'])
    expect(await columnsOf('workflow_pending_events')).toEqual(
      'workflow_id event_id event_name value created_at'.split(' '),
    )
  })

  it('have their words for where a run stands, and every status has one (WC-S2)', async () => {
    const place = await installed('waits')
    for (const [index, status] of statuses.entries()) await addRun(place, index, { status })
    const found = await place.look('workflows', 'order by id')
    const words = found.map((row) => row['status'])
    expect(words).toEqual([
      'Running',
      'Running',
      'Suspended',
      'Suspended',
      'Running',
      'Succeeded',
      'Failed',
      'Cancelled',
    ])
  })

  it('show what a run waits for, what ended its waits, and what it has not taken (WC-S1, WC-S2, WC-S5)', async () => {
    const place = await installed('waits')
    const { look, quoted, rows } = place
    await addRun(place, 1, { status: 'waiting', more: { due: 6000 } })
    const waiting = (tag: string): readonly unknown[] => [
      { tag, kind: 'signal', name: 'paid' },
      { tag: 'time', kind: 'time', at: 6000 },
      { tag: 'child', kind: 'run', runId: idOf(9) },
    ]
    await addEntries(place, 1, [
      ['started', null, null, '"in"'],
      ['step-succeeded', 'charge', { attempt: 1, ms: 5 }, '"charged"'],
      ['step-failed', 'ship', { attempt: 1, ms: 5 }, '"sunk"'],
      ['waiting', 'wait', { conditions: waiting('message') }, null],
      ['woken', 'wait', { winner: 'message', trueAt: 1, seenAt: 1 }, '"yes"'],
      ['waiting', 'wait#2', { conditions: waiting('message') }, null],
      ['woken', 'wait#2', { winner: 'time', trueAt: 1, seenAt: 1 }, null],
      ['waiting', 'wait#3', { conditions: waiting('message') }, null],
    ])
    await rows(`insert into ${quoted}.messages (shard, run_id, position, id, name, data, at, outcome, taken_by) values
      (0, '${idOf(1)}', 1, 'first', 'paid', '"yes"', 3000, 'delivered', 5),
      (0, '${idOf(1)}', 2, 'second', 'other', '2', 4000, 'queued', null)`)
    expect(await look('workflows')).toEqual([
      {
        id: idOf(1),
        type: 'shop.order',
        status: 'Suspended',
        waiting_for_events: ['paid'],
        waiting_for_timer: at(6000),
        waiting_for_workflows: [idOf(9)],
        created_at: at(1000),
        updated_at: at(2000),
      },
    ])
    const steps = await look('activity_steps', 'order by activity_index')
    expect(steps.map(({ activity_index, value, error }) => [activity_index, value, error])).toEqual([
      [2, '"charged"', null],
      [3, null, '"sunk"'],
      [5, '"yes"', null],
      [7, null, null],
    ])
    const won = await look('winning_conditions', 'order by activity_index')
    expect(
      won.map(({ activity_index, condition_type, event_name }) => [activity_index, condition_type, event_name]),
    ).toEqual([
      [5, 'event', 'paid'],
      [7, 'timer', null],
    ])
    expect(await look('workflow_pending_events')).toEqual([
      { workflow_id: idOf(1), event_id: 'second', event_name: 'other', value: '2', created_at: at(4000) },
    ])
    expect(await look('pending_events')).toEqual([])
  })
})
