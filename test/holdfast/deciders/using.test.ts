// Inputs of deciders inside a transaction of the user's: they take effect if and only if that commits.

import pg from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createHoldfast, type Holdfast, type HoldfastOptions } from 'holdfast'
import { migratedSchema } from '../../support/postgres-shared.ts'
import { keepLines } from '../open.ts'
import { ownTables } from '../own-tables.ts'
import { orderOf } from './order.ts'

interface Place {
  readonly open: (options: Pick<HoldfastOptions, 'workflows'>) => Promise<Holdfast>
  /** What `using` is given. */
  readonly tx: object
  readonly exec: (statement: 'begin' | 'commit' | 'rollback') => Promise<void>
}

async function sqlite(): Promise<Place> {
  const { db, open } = await ownTables()
  return {
    open,
    tx: db,
    exec: async (statement) => void db.exec(statement === 'begin' ? 'begin immediate' : statement),
  }
}

async function postgres(): Promise<Place> {
  const { url, schema } = await migratedSchema()
  const tx = new pg.Client({ connectionString: url })
  await tx.connect()
  onTestFinished(() => tx.end())
  const open: Place['open'] = async (options) => {
    const holdfast = await createHoldfast({ store: `${url}?schema=${schema}`, logger: keepLines(), ...options })
    onTestFinished(() => holdfast.close())
    return holdfast
  }
  return { open, tx, exec: async (statement) => void (await tx.query(statement)) }
}

const places = [
  { name: 'sqlite', make: sqlite },
  { name: 'postgres', make: postgres },
]

const create = { type: 'Create', orderId: '1' } as const
const note = (text: string) => ({ type: 'Note', orderId: '1', text }) as const

describe.each(places)('holdfast.using(tx).execute on $name', ({ make }) => {
  it('decides with the transaction, and begins an instance with it', async () => {
    const { tx, exec, open } = await make()
    const order = orderOf()
    const holdfast = await open({ workflows: [order] })
    await exec('begin')
    const using = holdfast.using(tx)
    expect(await using.execute(order, note('early'))).toMatchObject({ outcome: 'rejected' })
    expect(await using.execute(order, create)).toMatchObject({ outcome: 'accepted', events: [{ type: 'Created' }] })
    expect(await using.executeDynamic('order', note('a'), { commandId: 'a' })).toMatchObject({
      state: { notes: ['a'] },
    })
    expect(await using.execute(order, note('b'), { commandId: 'a' })).toMatchObject({ events: [{ text: 'a' }] })
    expect(await holdfast.state(order, '1')).toBeUndefined()
    await exec('commit')
    expect(await holdfast.state(order, '1')).toMatchObject({ notes: ['a'] })
    expect(await holdfast.execute(order, note('c'))).toMatchObject({ state: { notes: ['a', 'c'] } })
  })

  it('has decided nothing where the transaction is rolled back, also for an instance that is cached', async () => {
    const { tx, exec, open } = await make()
    const order = orderOf()
    const holdfast = await open({ workflows: [order] })
    await holdfast.execute(order, create)
    await exec('begin')
    expect(await holdfast.using(tx).execute(order, note('a'))).toMatchObject({ outcome: 'accepted' })
    await exec('rollback')
    expect(await holdfast.execute(order, note('b'))).toMatchObject({ state: { notes: ['b'] } })
    await exec('begin')
    expect(await holdfast.using(tx).execute(order, { type: 'Abandon', orderId: '1' })).toMatchObject({
      outcome: 'accepted',
    })
    await exec('commit')
    expect(await holdfast.execute(order, note('c'))).toEqual({ outcome: 'already-completed' })
  })

  it('refuses what it cannot decide, and the transaction stays usable', async () => {
    const { tx, exec, open } = await make()
    const order = orderOf()
    const holdfast = await open({ workflows: [order] })
    await holdfast.execute(order, { ...create, to: 'ada' })
    const [run] = (await holdfast.find({ type: 'order' })).runs
    await exec('begin')
    const using = holdfast.using(tx)
    await expect(using.execute(order, { ...create, orderId: '2', to: 'ada' })).rejects.toMatchObject({
      code: 'RUN_EXISTS',
    })
    await expect(using.execute(order, { type: 'Pay', orderId: '1', amount: -1 })).rejects.toMatchObject({
      code: 'DECIDE_FAILED',
    })
    expect(await using.execute(order, note('a'))).toMatchObject({ outcome: 'accepted' })
    await exec('commit')
    await holdfast.pause(run?.id ?? '')
    await exec('begin')
    await expect(holdfast.using(tx).execute(order, note('b'))).rejects.toMatchObject({ code: 'WRONG_STATUS' })
    await exec('rollback')
    expect(await holdfast.state(order, '1')).toMatchObject({ notes: ['a'] })
  })

  it('decides inputs that are not awaited one after the other, in their order', async () => {
    const { tx, exec, open } = await make()
    const order = orderOf()
    const holdfast = await open({ workflows: [order] })
    await exec('begin')
    const using = holdfast.using(tx)
    const inputs = [create, note('a'), { type: 'Pay', orderId: '1', amount: -1 } as const, note('b'), create]
    const answers = await Promise.allSettled(inputs.map((input) => using.execute(order, input)))
    await exec('commit')
    expect(answers.map((one) => (one.status === 'fulfilled' ? one.value.outcome : 'failed'))).toEqual([
      'accepted',
      'accepted',
      'failed',
      'accepted',
      'rejected',
    ])
    expect(await holdfast.state(order, '1')).toMatchObject({ notes: ['a', 'b'] })
  })
})
