// What the compiler says about a call that does not fit. It must name the mistake, not the first type that differs.

import { describe, expect, it } from 'vitest'
import { compile } from './compile.ts'

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
