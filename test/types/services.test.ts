// What the compiler makes of an application that declares its services, or its transactions. The declaration counts for a whole program, so
// each case is a program of its own, compiled in a folder of its own.

import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'

const root = resolve('.')
const folders: string[] = []
afterAll(() => folders.forEach((folder) => rmSync(folder, { recursive: true })))

/** What the compiler has to say about a program. */
function compile(program: string): readonly string[] {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-types-'))
  folders.push(folder)
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  const compilerOptions = {
    noEmit: true,
    skipLibCheck: true,
    types: ['node'],
    noUnusedLocals: false,
    paths: { holdfast: [`${root}/src/index.ts`] },
  }
  const config = { extends: `${root}/tsconfig.base.json`, compilerOptions, files: ['program.mts'] }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config))
  writeFileSync(join(folder, 'program.mts'), program)
  const tsc = join(root, 'node_modules/.bin/tsc')
  const { stdout } = spawnSync(tsc, ['-p', folder, '--pretty', 'false'], { cwd: folder, encoding: 'utf8' })
  return stdout.split('\n').filter((line) => line !== '')
}

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

describe('a call that does not fit', () => {
  it('is explained by the input that is wrong, not by the overload that takes a name', () => {
    const said = compile(`
      import { createHoldfast, workflow } from 'holdfast'
      const greet = workflow('greet', (_ctx, name: string) => name)
      const holdfast = await createHoldfast({ store: 'memory:', workflows: [greet] })
      await holdfast.start(greet, 42)
    `)
    expect(said.join('\n')).toContain("Argument of type 'number' is not assignable to parameter of type 'string'")
  })

  it('is none when a body returns a wait, or now a value and now a promise', () => {
    const said = compile(`
      import { workflow, type TimeReached, type Workflow } from 'holdfast'
      const slept: Workflow<void, TimeReached> = workflow('slept', (ctx) => ctx.sleep('1s'))
      const mixed: Workflow<number, number | string> = workflow('mixed', (ctx, n: number) =>
        n > 0 ? n : ctx.step('text', () => 'zero'),
      )
      const branched: Workflow<void, TimeReached> = workflow('branched', (ctx) =>
        ctx.branch('nap', (nap) => nap.sleep('1s')),
      )
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
