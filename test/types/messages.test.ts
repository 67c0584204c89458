// What the compiler says about a call that does not fit. It must name the mistake, not the first type that differs.

import { describe, expect, it } from 'vitest'
import { createCompiler } from './compile.ts'

const compile = createCompiler()

describe('a call that does not fit', () => {
  it('is explained by the input that is missing', () => {
    const said = compile(`
      import { createHoldfast, workflow } from 'holdfast'
      const checkout = workflow('checkout', (_ctx, order: { id: string }) => order.id)
      const holdfast = await createHoldfast({ store: 'sqlite:app.db', workflows: [checkout] })
      await holdfast.start(checkout)
      await holdfast.using({}).start(checkout)
    `)
    expect(said).toEqual([
      expect.stringMatching(/^program\.mts\(5,.*Expected 2-3 arguments, but got 1\.$/),
      expect.stringMatching(/^program\.mts\(6,.*Expected 2-3 arguments, but got 1\.$/),
    ])
  })

  it('is explained by the step that cannot be raced', () => {
    const said = compile(`
      import { workflow } from 'holdfast'
      workflow('hasty', (ctx) => ctx.race({ work: ctx.step('work', () => 1), late: ctx.sleep('1s') }))
      workflow('hastier', (ctx) => ctx.race({ work: 1, late: ctx.sleep('1s') }))
    `)
    const errors = said.filter((line) => line.startsWith('program.mts'))
    expect(errors).toEqual([
      expect.stringMatching(/^program\.mts\(3,45\).*Type 'Promise<number>' is not.*"a step cannot be raced, /),
      expect.stringMatching(/^program\.mts\(4,47\).*Type '1' is not.* Wait<unknown>'/),
    ])
  })

  it('is explained by the object that a race takes, where a list or a single wait is raced', () => {
    const said = compile(`
      import { workflow } from 'holdfast'
      workflow('steps', (ctx) => ctx.race([ctx.step('work', () => 1), ctx.sleep('1s')]))
      workflow('waits', (ctx) => ctx.race([ctx.receive('go'), ctx.sleep('1s')]))
      workflow('one', (ctx) => ctx.race(ctx.sleep('1s')))
      workflow('step', (ctx) => ctx.race(ctx.step('work', () => 1)))
    `)
    const errors = said.filter((line) => line.startsWith('program.mts'))
    expect(errors.map((line) => Number(/\((\d+),/.exec(line)?.[1]))).toEqual([3, 4, 5, 6])
    const text = said.join('\n')
    expect(
      text.match(/ctx\.race takes an object with a name for each wait, .* a step cannot be raced/g)?.length,
    ).toBeGreaterThanOrEqual(4)
    expect(text).not.toMatch(/frame|isTaken|missing the following properties|Index signature/)
  })

  it('is explained by the step that is no wait, where all are awaited', () => {
    const said = compile(`
      import { workflow } from 'holdfast'
      workflow('list', (ctx) => ctx.all([ctx.sleep('1s'), ctx.step('work', () => 1)]))
      workflow('named', (ctx) => ctx.all({ work: ctx.step('work', () => 1) }))
    `)
    const errors = said.filter((line) => line.startsWith('program.mts'))
    expect(errors.map((line) => Number(/\((\d+),/.exec(line)?.[1]))).toEqual([3, 4])
    expect(said.join('\n').match(/ctx\.all takes only waits, .* with Promise\.all/g)?.length).toBeGreaterThanOrEqual(2)
  })

  it('is explained by the input that is wrong, not by the overload that takes a name', () => {
    const said = compile(`
      import { createHoldfast, workflow } from 'holdfast'
      const greet = workflow('greet', (_ctx, name: string) => name)
      const holdfast = await createHoldfast({ store: 'memory:', workflows: [greet] })
      await holdfast.start(greet, 42)
    `)
    expect(said.join('\n')).toContain("Argument of type 'number' is not assignable to parameter of type 'string'")
  })

  it('is explained by the field that a variable lacks, wherever a run is started', () => {
    const said = compile(`
      import { createHoldfast, workflow } from 'holdfast'
      const ship = workflow('ship', (_ctx, order: { id: string; n: number }) => order.n)
      const order: { id: string } = { id: '1' }
      workflow('body', async (ctx) => {
        await ctx.child(ship, order)
        await ctx.start(ship, order)
        await ctx.continueAs(ship, order)
      })
      const holdfast = await createHoldfast({ store: 'memory:', workflows: [ship] })
      await holdfast.start(ship, order)
      await holdfast.sendOrStart(ship, 'key', 'name', null, order)
      await holdfast.startMany([{ workflow: ship, input: order }])
    `)
    const errors = said.filter((line) => line.startsWith('program.mts'))
    expect(errors.map((line) => Number(/\((\d+),/.exec(line)?.[1]))).toEqual([6, 7, 8, 11, 12, 13])
    expect(said.filter((line) => line.includes("Property 'n' is missing in type '{ id: string; }'"))).toHaveLength(6)
  })

  it('is explained by the input that is missing, also inside a body', () => {
    const said = compile(`
      import { workflow } from 'holdfast'
      const ship = workflow('ship', (_ctx, order: { id: string }) => order.id)
      const tick = workflow('tick', () => 1)
      workflow('body', async (ctx) => {
        await ctx.child(tick)
        await ctx.child(tick, undefined, { key: '1' })
        await ctx.start(ship, { id: '1' }, { key: '1' })
        await ctx.child(ship)
        await ctx.start(ship)
      })
    `)
    expect(said).toEqual([
      expect.stringMatching(/^program\.mts\(9,.*Expected 2-3 arguments, but got 1\.$/),
      expect.stringMatching(/^program\.mts\(10,.*Expected 2-3 arguments, but got 1\.$/),
    ])
  })

  it('is explained by the options of a signal, not by those of a topic', () => {
    const said = compile(`
      import { workflow } from 'holdfast'
      workflow('impatient', (ctx) => ctx.receive('approved', { timeout: '1h' }))
    `)
    expect(said.filter((line) => line.startsWith('program.mts'))).toEqual([expect.stringContaining('No overload')])
    const text = said.join('\n')
    expect(text).toContain("'timeout' does not exist in type 'ReceiveOptions<unknown>'")
    expect(text.split('\n').at(-1)).not.toContain('Topic')
  })

  it('is none when a body returns a wait, or now a value and now a promise', () => {
    const said = compile(`
      import { workflow, type SleepResult, type Workflow } from 'holdfast'
      const slept: Workflow<void, SleepResult> = workflow('slept', (ctx) => ctx.sleep('1s'))
      const mixed: Workflow<number, number | string> = workflow('mixed', (ctx, n: number) =>
        n > 0 ? n : ctx.step('text', () => 'zero'),
      )
      const branched: Workflow<void, SleepResult> = workflow('branched', (ctx) =>
        ctx.branch('nap', (nap) => nap.sleep('1s')),
      )
    `)
    expect(said).toEqual([])
  })
})
