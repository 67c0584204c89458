// The shapes by which libraries are known; test/orm has the real ones.

import { describe, expect, it } from 'vitest'
import { sqlHandleOf } from '../../../src/stores/sql-handle.ts'

const nothing = (): undefined => undefined

describe('a handle of a user', () => {
  it('is given every value where its placeholder stands, in its own form', async () => {
    const sent: unknown[] = []
    const knex = Object.assign(nothing, {
      isTransaction: true,
      raw: (sql: string, bindings: unknown) => {
        sent.push(sql, bindings)
        return Promise.resolve({ rows: [{ ok: 1 }] })
      },
    })
    const rows = await sqlHandleOf(knex).query(`select $2::text, $1::int, $2::text, '{}'::jsonb ? 'a'`, [7, 'b'])
    expect(rows).toEqual([{ ok: 1 }])
    expect(sent).toEqual([`select ?::text, ?::int, ?::text, '{}'::jsonb \\? 'a'`, ['b', 7, 'b']])
  })

  it('is sent one statement after the other, also past one that failed', async () => {
    const order: string[] = []
    const slow = {
      query: async (sql: string) => {
        order.push(`begin ${sql}`)
        await Promise.resolve()
        order.push(`end ${sql}`)
        if (sql === 'a') throw new Error('refused')
        return [{ sql }]
      },
    }
    const handle = sqlHandleOf(slow)
    const [a, b] = await Promise.allSettled([handle.query('a', []), handle.query('b', [])])
    expect(a).toMatchObject({ status: 'rejected', reason: { message: 'refused' } })
    expect(b).toMatchObject({ status: 'fulfilled', value: [{ sql: 'b' }] })
    expect(order).toEqual(['begin a', 'end a', 'begin b', 'end b'])
  })

  it.each([
    ['a list', [{ id: 1 }], [{ id: 1 }]],
    ['a result', { rows: [{ id: 1 }], rowCount: 1 }, [{ id: 1 }]],
    ['rows and a count', [[{ id: 1 }], 1], [{ id: 1 }]],
    ['two rows', [{ id: 1 }, { id: 2 }], [{ id: 1 }, { id: 2 }]],
    ['nothing', undefined, []],
    [
      'names in other cases',
      [{ runId: 1, CreatedAt: 2, 'ended-at': 3, due: 4 }],
      [{ run_id: 1, created_at: 2, ended_at: 3, due: 4 }],
    ],
  ])('may answer with %s', async (_what, answer, rows) => {
    expect(await sqlHandleOf({ query: () => answer }).query('select', [])).toEqual(rows)
  })

  it.each([
    ['nothing', undefined],
    ['a text', 'begin'],
    ['an object that sends nothing', { send: nothing }],
    ['a pool of pg', { query: nothing, totalCount: 1 }],
    [
      'a client of pg outside of a transaction',
      { query: nothing, escapeIdentifier: nothing, getTransactionStatus: () => 'I' },
    ],
    [
      'a client of pg that never connected',
      { query: nothing, escapeIdentifier: nothing, getTransactionStatus: () => null },
    ],
    ['a Knex transaction that is over', { raw: nothing, isTransaction: true, isCompleted: () => true }],
    ['a Kysely transaction that is over', { executeQuery: nothing, isTransaction: true, isRolledBack: true }],
    ['a Prisma client', { $queryRawUnsafe: nothing, $transaction: nothing }],
    ['the sql of postgres.js', Object.assign(() => undefined, { unsafe: nothing, begin: nothing })],
    ['a Kysely instance', { executeQuery: nothing, isTransaction: false }],
    ['a Knex instance', Object.assign(() => undefined, { raw: nothing })],
    ['a Drizzle database', { execute: nothing, dialect: {}, session: {} }],
    ['a data source of TypeORM', { query: nothing, createQueryRunner: nothing }],
    ['a manager of TypeORM', { query: nothing, getRepository: nothing, queryRunner: undefined }],
    ['a runner of TypeORM', { query: nothing, isTransactionActive: false }],
  ])('is none if it is %s', (_what, tx) => {
    expect(() => sqlHandleOf(tx)).toThrow(expect.objectContaining({ code: 'INVALID_OPTION' }))
  })

  it.each([
    ['a client of pg', { query: nothing, escapeIdentifier: nothing, getTransactionStatus: () => 'T' }],
    ['an older client of pg', { query: nothing, escapeIdentifier: nothing }],
    ['a manager of TypeORM', { query: nothing, getRepository: nothing, queryRunner: { isTransactionActive: true } }],
    ['a runner of TypeORM', { query: nothing, isTransactionActive: true }],
    ['a Drizzle transaction', { execute: nothing, dialect: {}, session: {}, rollback: nothing }],
    ['a Prisma transaction', { $queryRawUnsafe: nothing }],
  ])('is one if it is %s in a transaction', async (_what, tx) => {
    expect(await sqlHandleOf(tx).query('select 1', [])).toEqual([])
  })

  it('refuses a statement once the library says that it is over', async () => {
    let status = 'T'
    const handle = sqlHandleOf({ query: nothing, escapeIdentifier: nothing, getTransactionStatus: () => status })
    await handle.query('select 1', [])
    status = 'I'
    await expect(handle.query('select 1', [])).rejects.toMatchObject({ code: 'INVALID_OPTION' })
  })

  it.each([
    ['Knex', new Error('Transaction query already complete, run with DEBUG=knex:tx for more info')],
    ['Prisma', Object.assign(new Error('Transaction API error'), { code: 'P2028' })],
    ['TypeORM', new Error('Query runner already released. Cannot run queries anymore.')],
    ['Kysely', new Error('Transaction is already rolled back')],
  ])('says that it is over where %s says so with an error', async (_name, error) => {
    const handle = sqlHandleOf({ query: () => Promise.reject(error) })
    await expect(handle.query('select 1', [])).rejects.toMatchObject({ code: 'INVALID_OPTION', cause: error })
  })

  it.each([
    ['Drizzle', { cause: { code: '25P02' } }],
    ['TypeORM', { driverError: { code: '25P02' } }],
    ['Prisma', { code: 'P2010', meta: { code: '25P02', message: 'aborted' } }],
  ])('gives the error of the database that %s has wrapped', async (_name, wrapped) => {
    const query = (): Promise<never> => Promise.reject(Object.assign(new Error('failed'), wrapped))
    await expect(sqlHandleOf({ query }).query('select 1', [])).rejects.toMatchObject({ code: '25P02' })
  })

  it('sends the first statement at once, so that one that the user sends next comes behind it', () => {
    const sent: string[] = []
    void sqlHandleOf({ query: async (sql: string) => void sent.push(sql) }).query('ours', [])
    expect(sent).toEqual(['ours'])
  })
})
