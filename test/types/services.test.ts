// What the compiler makes of an application that declares its services, or its transactions. The declaration counts for a whole program, so
// each case is a program of its own, compiled in a folder of its own.

import { describe, expect, it } from 'vitest'
import { createCompiler } from './compile.ts'

const compile = createCompiler()

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
      await createHoldfast({ store: 'memory:', workflows: [welcome] })
      // @ts-expect-error -- one of the services is missing
      await createHoldfast({ store: 'memory:', workflows: [welcome], services: {} })
    `)
    expect(said).toEqual([])
  })

  it('are not asked for where no workflow is performed, as in a process that only sends', () => {
    const said = compile(`
      import { createHoldfast } from 'holdfast'
      declare module 'holdfast' {
        interface Services { readonly mailer: { send(to: string): Promise<number> } }
      }
      const sender = await createHoldfast({ store: 'memory:' })
      await sender.signal({ type: 'welcome', key: '1' }, 'approved')
    `)
    expect(said).toEqual([])
  })

  it('are named by the error of a call that lacks them', () => {
    const said = compile(`
      import { createHoldfast, workflow } from 'holdfast'
      declare module 'holdfast' {
        interface Services { readonly mailer: { send(to: string): Promise<number> } }
      }
      await createHoldfast({ store: 'memory:', workflows: [workflow('idle', () => 1)] })
    `)
    expect(said.join('\n')).toContain("Property 'services' is missing")
  })

  it('may be given in part to a test, which performs only the workflows that it names', () => {
    const said = compile(`
      import { workflow } from 'holdfast'
      import { createTest } from 'holdfast/testing'
      declare module 'holdfast' {
        interface Services { readonly mailer: { send(to: string): number }; readonly bank: { pay(sum: number): number } }
      }
      const welcome = workflow('welcome', (ctx) => ctx.services.mailer.send('ada'))
      await createTest({ workflows: [welcome], services: { mailer: { send: () => 1 } } })
      await createTest({ workflows: [workflow('idle', () => 1)] })
      // @ts-expect-error -- of another type
      await createTest({ workflows: [welcome], services: { mailer: 'ada' } })
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
