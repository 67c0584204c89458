// The views `instances`: their tables, columns and words, over rows that stand in our tables.

import { describe, expect, it, onTestFinished } from 'vitest'
import { createHoldfast, decider, decision } from '../../../../../src/index.ts'
import { openPostgresStore } from '../../../../../src/stores/postgres/index.ts'
import { silentLogger } from '../../../../../src/testing/logger.ts'
import { orderOf } from '../../../../holdfast/deciders/order.ts'
import { until } from '../../../../support/until.ts'
import { addEntries, addRun, at, idOf, installed } from './place.ts'

describe('the views of instances', () => {
  it('have their tables and columns (IF-S2, IF-S4, IF-S5)', async () => {
    const { columnsOf } = await installed('instances')
    expect(await columnsOf('workflow_instances')).toEqual(
      (
        'workflow_type workflow_id created_at completed_at event_count last_event_at snapshot_sequence snapshot_data ' +
        'snapshot_at run_id'
      ).split(' '),
    )
    expect(await columnsOf('events')).toEqual(
      'global_sequence workflow_type workflow_id sequence event_type payload created_at run_id'.split(' '),
    )
    const work = 'locked_until locked_by attempts last_error created_at processed_at run_id'
    expect(await columnsOf('outbox')).toEqual(`id workflow_type workflow_id effect_type payload ${work}`.split(' '))
    expect(await columnsOf('timers')).toEqual(`id workflow_type workflow_id key fire_at input ${work}`.split(' '))
    expect(await columnsOf('input_observations')).toEqual(
      'workflow_type workflow_id input_type observed_at run_id'.split(' '),
    )
    expect(await columnsOf('projection_positions')).toEqual(['projection_name', 'last_sequence', 'updated_at'])
  })

  it('show instances by their business key, their events, effects, timers and inputs (IF-S2, IF-S3, HE-S3)', async () => {
    const place = await installed('instances')
    const { look, quoted, rows } = place
    await addRun(place, 1, { status: 'waiting', more: { key: 'order-7', due: 8000 } })
    await addEntries(place, 1, [
      ['started', null, null, '"in"'],
      ['input', 'place', { from: { kind: 'start' }, outcome: 'accepted', reason: null }, null],
      ['event', 'Placed', null, '"placed"'],
      ['effect', 'charge#2', null, '"charge"'],
      ['timer', 'late', { at: null, afterMs: 500 }, '"remind"'],
      ['timer', 'kept', { at: 8000, afterMs: null }, '"keep"'],
      [
        'input',
        'remind',
        { from: { kind: 'timer', name: 'late', dueAt: 2000 }, outcome: 'accepted', reason: null },
        '1',
      ],
    ])
    await addRun(place, 2, { status: 'waiting', more: { due: 6000 } })
    await rows(`insert into ${quoted}.messages (shard, run_id, position, id, name, data, at, outcome)
      values (0, '${idOf(2)}', 1, 'm', 'approve', '1', 3000, 'delivered')`)
    // The key is free again when its run has ended: two instances of one name, told apart by their runs.
    await addRun(place, 3, { status: 'succeeded', more: { key: 'order-7', ended_at: 7000 } })

    const [first, second, third] = await look('workflow_instances', 'order by run_id')
    expect(first).toMatchObject({
      workflow_type: 'shop.order',
      workflow_id: 'order-7',
      event_count: 7,
      last_event_at: at(2000),
      completed_at: null,
      snapshot_sequence: null,
    })
    expect(second).toMatchObject({ workflow_id: idOf(2) })
    expect(third).toMatchObject({ workflow_id: 'order-7', run_id: idOf(3), completed_at: at(7000) })
    const events = await look('events', `where workflow_id = 'order-7' order by sequence`)
    expect(events.map(({ sequence, event_type }) => [sequence, event_type]).slice(0, 3)).toEqual([
      [1, 'started'],
      [2, 'input'],
      [3, 'Placed'],
    ])
    expect(await look('outbox')).toEqual([
      expect.objectContaining({
        effect_type: 'charge',
        payload: '"charge"',
        attempts: 0,
        last_error: null,
        created_at: at(1400),
        processed_at: null,
      }),
    ])
    const timers = await look('timers', 'order by fire_at')
    expect(
      timers.map(({ workflow_id, key, fire_at, input, processed_at }) => [
        workflow_id,
        key,
        fire_at,
        input,
        processed_at,
      ]),
    ).toEqual([
      ['order-7', 'late', at(2000), '"remind"', at(1700)],
      [idOf(2), null, at(6000), null, null],
      ['order-7', 'kept', at(8000), '"keep"', null],
    ])
    const inputs = await look('input_observations', 'order by observed_at')
    expect(inputs.map(({ workflow_id, input_type }) => [workflow_id, input_type])).toEqual([
      ['order-7', 'place'],
      ['order-7', 'remind'],
      [idOf(2), 'approve'],
    ])
    expect(await look('projection_positions')).toEqual([])
  })

  it('show real instances by their ids, with the runs that perform their effects, timers and snapshots (IF-S2, IF-S3, IF-S4, IF-S5)', async () => {
    const place = await installed('instances')
    const { look, pool } = place
    const schema = place.quoted.replaceAll('"', '')
    const store = await openPostgresStore({ pool, schema, listen: false })
    onTestFinished(() => store.close())
    const order = orderOf({
      mail: (to) => {
        if (to === 'eve') throw new Error('No such address')
      },
    })
    const counter = decider('counter', {
      initial: () => 0,
      evolve: (count, _event: { type: 'Counted' }) => count + 1,
      decide: (_count, input: { type: 'Count'; id: string }) =>
        decision({ type: 'Counted' }).timer({ after: '1h' }, { type: 'Count', id: input.id }),
      id: 'id',
      snapshotEvery: 2,
    })
    const holdfast = await createHoldfast({ store, workflows: [order, counter], logger: silentLogger })
    onTestFinished(() => holdfast.close())
    await holdfast.execute(order, { type: 'Create', orderId: 'o1', to: 'ada' })
    expect(await look('outbox')).toMatchObject([
      { workflow_id: 'o1', effect_type: 'sendMail', attempts: 0, last_error: null, processed_at: null },
    ])
    await holdfast.work()
    await holdfast.execute(order, { type: 'Create', orderId: 'o2', to: 'eve' })
    await holdfast.execute(order, { type: 'Extend', orderId: 'o1' })
    for (const id of ['c1', 'c1', 'c1']) await holdfast.execute(counter, { type: 'Count', id })
    await until('the mails are over', async () => {
      const { runs } = await holdfast.find({ type: 'order/sendMail' })
      return runs.every(({ endedAt }) => endedAt !== null)
    })
    const named = (rows: readonly Readonly<Record<string, unknown>>[], ...columns: readonly string[]) =>
      rows.map((row) => columns.map((column) => row[column]))
    expect(named(await look('workflow_instances', 'order by workflow_id'), 'workflow_type', 'workflow_id')).toEqual([
      ['counter', 'c1'],
      ['order', 'o1'],
      ['order', 'o2'],
    ])
    const [snapshot] = await look('workflow_instances', `where workflow_id = 'c1'`)
    expect(snapshot).toMatchObject({
      snapshot_data: expect.stringContaining('"state"') as string,
      snapshot_at: expect.any(Date) as Date,
    })
    expect(Number(snapshot?.['snapshot_sequence'])).toBeGreaterThan(1)
    expect(named(await look('outbox', 'order by workflow_id'), 'workflow_id', 'attempts', 'last_error')).toEqual([
      ['o1', 1, null],
      ['o2', 2, expect.stringContaining('No such address')],
    ])
    expect(named(await look('outbox', 'order by workflow_id'), 'processed_at')).toEqual([[expect.any(Date)], [null]])
    const timers = await look('timers', `where workflow_id = 'o1' order by fire_at`)
    expect(named(timers, 'key', 'processed_at')).toEqual([
      ['payment', expect.any(Date)],
      ['payment', null],
    ])
    expect(named(await look('timers', `where workflow_id = 'c1'`), 'key')).toEqual([[null], [null], [null]])
    const inputs = await look('input_observations', `where workflow_id = 'o1' order by input_type`)
    expect(named(inputs, 'input_type').flat()).toEqual(['Create', 'Extend', 'MailSent'])
  })
})
