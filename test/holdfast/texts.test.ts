// What errors say to the author of a workflow: which value was refused, and what to write instead.

import { describe, expect, it } from 'vitest'
import { fatal, topic, workflow, type Workflow } from '../../src/index.ts'
import { createTest } from '../../src/testing/index.ts'

class Row {
  readonly id = 1
}

describe('a value that cannot be stored', () => {
  it('is named by its place: an input, a signal, a topic, a token, a new beginning', async () => {
    const echo: Workflow<unknown, unknown> = workflow('echo', async (ctx, input: unknown): Promise<unknown> => {
      if (input === 'again') return ctx.continueAsNew(new Row())
      if (input === 'child') return ctx.child(echo, new Row())
      if (input === 'token') await ctx.token()
      return 1
    })
    const news = topic('news')
    await using t = await createTest({ workflows: [echo] })
    const refused =
      'it is an instance of class Row. Use plain data: the fields that you need, or nothing; or give the class a toJSON'
    const of = (what: string): RegExp =>
      new RegExp(`^${what} cannot be stored. The value at \\$ cannot be stored: ${refused}`)
    await expect(t.start(echo, new Row())).rejects.toThrow(of('The input of "echo"'))
    const run = await t.start(echo, 'token')
    const [waiting] = await t.drain()
    await expect(run.signal('paid', new Row())).rejects.toThrow(of('The payload of signal "paid"'))
    await expect(t.broadcast(news, new Row())).rejects.toThrow(of('The payload of topic "news"'))
    const [wait] = waiting?.waitsFor ?? []
    const token = wait?.kind === 'token' ? wait.token : ''
    await expect(t.complete(token, new Row())).rejects.toThrow(of('The value of the completion token'))
    for (const how of ['again', 'child']) {
      const failing = await t.start(echo, how)
      await t.drain({ time: true })
      const { error } = await t.get(failing)
      expect((error as Error).message).toMatch(of('The input of "echo"'))
    }
  })
})

describe('a retry policy that is written otherwise', () => {
  it('is answered with the form that is meant', () => {
    const body = (): number => 1
    expect(() => workflow('w', { retry: 3 as never }, body)).toThrow(
      /retry must be a plain object such as \{ maxAttempts: 3 \}, or one of the presets standard, quick, .*not 3/,
    )
    expect(() => workflow('w', { retries: 3 } as never, body)).toThrow(
      'has no option "retries". Did you mean retry: { maxAttempts: 3 }?',
    )
  })
})

describe('fatal', () => {
  it('keeps the cause that it is given', () => {
    const cause = new Error('the bank is closed')
    expect(fatal('no', { cause }).cause).toBe(cause)
    expect('cause' in fatal('no')).toBe(false)
    expect(fatal(cause)).toBe(cause)
  })
})
