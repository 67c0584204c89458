// What the compiler says when a decider does not fit together: the one line that helps is there.

import { describe, expect, it } from 'vitest'
import { createCompiler } from './compile.ts'

const compile = createCompiler()

const head = `
  import { decider, decision, reject, type Outcome } from 'holdfast/deciders'
  type Input = { type: 'Close'; orderId: string } | { type: 'Stop'; orderId: string }
  type Event = { type: 'Closed' }
  const base = { initial: () => 0, evolve: (count: number, event: Event) => (event.type === 'Closed' ? count : 0) }
`

/** The text of the compiler, on one line. */
function saidOf(options: string): string {
  return compile(`${head}\n decider('order', { ...base, ${options} })`).join(' ')
}

describe('an error in a decider', () => {
  it('IF-A13 names the effect that has no handler, and the handler that has no effect', () => {
    const decide = `id: 'orderId', decide: (_: number, _input: Input) => decision({ type: 'Closed' }).effect({ type: 'mail' })`
    expect(saidOf(decide)).toMatch(/Property 'effects' is missing .*Record<"mail", unknown>/)
    expect(saidOf(`${decide}, effects: {}`)).toMatch(/Property 'mail' is missing in type '\{\}'/)
    expect(saidOf(`${decide}, effects: { mail: () => undefined, maill: () => undefined }`)).toMatch(
      /'maill' does not exist/,
    )
    const none = `id: 'orderId', decide: (_: number, _input: Input) => decision({ type: 'Closed' })`
    expect(saidOf(`${none}, effects: { mail: () => undefined }`)).toContain('decide asks for no effect of this type')
  })

  it('IF-A5 IF-A7 names the event that evolve does not take, and the input that decide does not take', () => {
    expect(saidOf(`id: 'orderId', decide: (_: number, _input: Input) => decision({ type: 'Clsed' })`)).toMatch(
      /'decide returns an event that evolve does not take': \{ readonly type: "Clsed"; \}/,
    )
    const timer = `decision({ type: 'Closed' }).timer({ after: '1h' }, { type: 'Clse' })`
    expect(saidOf(`id: 'orderId', decide: (_: number, _input: Input) => ${timer}`)).toMatch(
      /'a timer brings an input that decide does not take': \{ readonly type: "Clse"; \}/,
    )
    expect(compile(`${head}\n decision()`).join(' ')).toContain('Expected at least 1 arguments, but got 0')
  })

  it('IF-A13 says that a handler must return an input that decide takes', () => {
    const effects = `effects: { mail: () => ({ type: 'Clse', orderId: '1' }) }`
    const decide = `decide: (_: number, _input: Input) => decision({ type: 'Closed' }).effect({ type: 'mail' })`
    expect(saidOf(`id: 'orderId', ${decide}, ${effects}`)).toMatch(/an input that decide takes/)
  })

  it('IF-A2 IF-A3 says which inputs lack the field of the id, and which types of input have none', () => {
    const decide = `decide: (_: number, _input: { type: 'A'; a: string } | { type: 'B' }) => decision({ type: 'Closed' })`
    expect(saidOf(`${decide}, id: (input) => input.a`)).toMatch(
      /Property 'a' does not exist on type '\{ type: "B"; \}'/,
    )
    expect(saidOf(`${decide}, id: 'a'`)).toContain(
      `'not every input has this field: say for which it is null': "{ '*': 'a', B: null }"`,
    )
    expect(saidOf(`${decide}, id: 'aa'`)).toContain(`'no input has this field, as a text': "aa"`)
    expect(saidOf(`${decide}, id: { A: 'a' }`)).toMatch(/Property 'B' is missing/)
    expect(saidOf(`${decide}, id: { '*': 'a', C: null }`)).toContain(`'no input has this type': "C"`)
    expect(saidOf(`${decide}, id: { '*': 'a', B: null }`)).toBe('')
  })

  it('IF-A2 names the id that is missing, and the schema that does not fit, also if functions are written in place', () => {
    const inPlace = `
      initial: () => 0, evolve: (count, event: Event) => (event.type === 'Closed' ? count : 0),
      decide: (_, _input: Input) => decision({ type: 'Closed' })`
    expect(saidOf(inPlace)).toMatch(/Property 'id' is missing/)
    expect(saidOf(inPlace)).not.toContain('Typed')
    const schema = `input: z.object({ type: z.literal('Close'), orderId: z.number() })`
    const wrong = compile(
      `import { z } from 'zod'\n${head}\n decider('order', { ${schema}, id: 'orderId', ${inPlace} })`,
    )
    expect(wrong[0]).toMatch(/ZodObject.* is not assignable to type 'Schema<.*, Input>'/)
  })

  it('names what decide has to return', () => {
    for (const result of [`({ type: 'Closed' })`, `[{ type: 'Closed' }]`, `{ decision({ type: 'Closed' }) }`]) {
      const said = saidOf(`id: 'orderId', decide: (_: number, _input: Input) => ${result}`)
      expect(said).toContain(`is not assignable to type 'DecisionOrReject'`)
    }
  })

  it('IF-A15 names the rejection that is not declared', () => {
    const decide = `decide: (_: number, _input: Input): Outcome<Event, never, Input, 'sold-out'> => reject('sold out')`
    expect(saidOf(`id: 'orderId', ${decide}`)).toMatch(/Type '"sold out"' is not assignable to type '"sold-out"'/)
  })
})
