// What the compiler makes of an application that declares its services, or its transactions. The declaration counts for a whole program, so
// each case is a program of its own, compiled in a folder of its own.

import { describe, expect, it } from 'vitest'
import { compile } from './compile.ts'

describe('declared services', () => {
  it('are typed in every body, and createHoldfast asks for them', () => {
    const said = compile(`
      import { createHoldfast, workflow } from 'holdfast'
      interface Mailer { send(to: string): Promise<number> }
      declare module 'holdfast' {
        interface Services { readonly mailer: Mailer }
      }
      const welcome = workflow('welcome', (ctx, to: string) => ctx.step('mail', () => ctx.services.mailer.send(to)))
      const mailer = { send: (to: string) => Promise.resolve(to.length) }
      const holdfast = await createHoldfast({ store: 'memory:', workflows: [welcome], services: { mailer } })
      const sent: number = await (await holdfast.start(welcome, 'ada')).result()
      // @ts-expect-error -- misspelt: mailer
      workflow('misspelt', (ctx) => ctx.services.mialer)
      // @ts-expect-error -- the services are missing
      await createHoldfast({ store: 'memory:' })
      // @ts-expect-error -- one of the services is missing
      await createHoldfast({ store: 'memory:', services: {} })
    `)
    expect(said).toEqual([])
  })

  it('may be left out when all of them are optional', () => {
    const said = compile(`
      import { createHoldfast } from 'holdfast'
      declare module 'holdfast' {
        interface Services { readonly tracer?: { trace(text: string): void } }
      }
      await createHoldfast({ store: 'memory:' })
      await createHoldfast({ store: 'memory:', services: { tracer: { trace: () => undefined } } })
    `)
    expect(said).toEqual([])
  })
})

describe('declared transactions', () => {
  it('are what ctx.transaction hands to its function', () => {
    const said = compile(`
      import { createHoldfast, workflow } from 'holdfast'
      interface Tx { insert(table: string): Promise<number> }
      declare module 'holdfast' {
        interface Transactions { tx: Tx }
      }
      const book = workflow('book', (ctx) => ctx.transaction('insert', (tx) => tx.insert('orders'), { timeout: '1s' }))
      const db = { transaction: <T,>(work: (tx: Tx) => Promise<T>): Promise<T> => work({ insert: async () => 1 }) }
      const holdfast = await createHoldfast({ store: 'sqlite:app.db', transaction: (work) => db.transaction(work) })
      const inserted: number = await (await holdfast.start(book)).result()
      // @ts-expect-error -- misspelt: insert
      workflow('misspelt', (ctx) => ctx.transaction('insert', (tx) => tx.inset('orders')))
    `)
    expect(said).toEqual([])
  })

  it('may be left out: then each function says what it expects', () => {
    const said = compile(`
      import { workflow } from 'holdfast'
      interface Tx { insert(table: string): Promise<number> }
      const book = workflow('book', async (ctx) => {
        const inserted: number = await ctx.transaction('insert', (tx: Tx, step) => tx.insert(step.idempotencyKey), {
          undo: (count) => count.toFixed(),
        })
        // @ts-expect-error -- nobody has said what it is
        await ctx.transaction('insert', (tx) => tx.insert('orders'))
        return inserted
      })
    `)
    expect(said).toEqual([])
  })
})
