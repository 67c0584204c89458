import { describe, expect, it } from 'vitest'
import type { Context } from '../../../../src/functions/api/context.ts'
import { workflow, type WorkflowOptions } from '../../../../src/functions/api/workflow.ts'
import { FunctionRig } from '../../../support/function-rig.ts'

const body = (): number => 1

function refusal(options: unknown): unknown {
  try {
    workflow('refused', options as WorkflowOptions<void> & { input?: never }, body)
  } catch (error) {
    return error
  }
  return 'it was taken'
}

describe('a workflow', () => {
  it('SW-A4 may be an object with a method, which is called as one', async () => {
    class Greeter {
      private readonly greeting = 'Hello'
      calls = 0

      async run(ctx: Context, name: string) {
        this.calls += 1
        return ctx.step('greet', () => `${this.greeting}, ${name}`)
      }
    }
    const rig = new FunctionRig()
    const greeter = new Greeter()
    for (const flow of [workflow('object', greeter), workflow('object', { version: 2 }, greeter)]) {
      const held = await (await rig.start(flow, 'you')).begin()
      expect(await held.outcome()).toEqual({ status: 'succeeded', value: 'Hello, you' })
    }
    expect(greeter.calls).toBe(2)
  })

  it('needs a body', () => {
    for (const given of [undefined, null, {}, { run: 1 }, 'text']) {
      expect(() => workflow('bodiless', { version: 1 }, given as never)).toThrow('must be its body')
    }
    expect(() => workflow('bodiless', { version: 1 } as never)).toThrow('must be its body')
  })

  it('HE-A6 says what its runs are about, and which tags and metadata they have', () => {
    const { unique, tags, metadata } = workflow(
      'labelled',
      {
        unique: { key: 'orderId', scope: 'global' },
        tags: ['a', 'b', 'a'],
        metadata: { team: 'x', nested: [1, null] },
      },
      (_ctx, _input: { orderId: string }) => 1,
    )
    expect({ unique, tags, metadata }).toEqual({
      unique: { field: 'orderId', scope: 'global', keyOf: expect.any(Function) as unknown },
      tags: ['a', 'b'],
      metadata: { team: 'x', nested: [1, null] },
    })
    const byWorkflow = workflow(
      'by.workflow',
      { unique: { key: (input: number) => input } },
      (_ctx, input: number) => input,
    )
    expect(byWorkflow.unique).toMatchObject({ field: null, scope: 'workflow' })
    expect(workflow('plain', body)).toMatchObject({ unique: null, tags: [], metadata: null })
  })

  it.each([
    [{ unique: { key: 'order::id' } }, 'INVALID_NAME', 'the name of a field of the input'],
    [{ unique: { key: 7 } }, 'INVALID_NAME', 'the name of a field of the input'],
    [{ unique: { key: 'orderid', scope: 'workflows' } }, 'INVALID_OPTION', 'Did you mean "workflow"?'],
    [{ unique: { name: 'orderid' } }, 'INVALID_OPTION', 'unique has no option "name"'],
    [{ unique: 'orderid' }, 'INVALID_OPTION', 'must be a plain object'],
    [{ tags: 'a' }, 'INVALID_OPTION', 'must be a list'],
    [{ tags: [''] }, 'INVALID_NAME', '1 to 200 characters'],
    [{ tags: ['x'.repeat(201)] }, 'INVALID_NAME', '1 to 200 characters'],
    [{ tags: ['a\u001b[31m'] }, 'INVALID_NAME', 'printable'],
    [{ tags: [5] }, 'INVALID_NAME', 'printable'],
    [{ metadata: [] }, 'INVALID_OPTION', 'must be an object'],
    [{ metadata: 'text' }, 'INVALID_OPTION', 'must be an object'],
    [{ metadata: { at: new Date(0) } }, 'INVALID_OPTION', 'must be plain JSON'],
    [{ metadata: { of: Number.NaN } }, 'INVALID_OPTION', 'must be plain JSON'],
    [{ metadata: { of: undefined } }, 'INVALID_OPTION', 'must be plain JSON'],
  ])('refuses %j', (options, code, message) => {
    const error = refusal(options)
    expect(error).toMatchObject({ code })
    expect((error as Error).message).toContain(message)
  })

  it('more tags than any Holdfast may allow are refused', () => {
    const error = refusal({ tags: Array.from({ length: 10_001 }, (_, index) => `t${index}`) })
    expect(error).toMatchObject({ code: 'INVALID_OPTION' })
    expect((error as Error).message).toContain('at most 10,000')
  })

  it('metadata that contains itself is refused', () => {
    const metadata: Record<string, unknown> = {}
    metadata['self'] = metadata
    expect(refusal({ metadata })).toMatchObject({ code: 'INVALID_OPTION' })
  })

  it('a step whose undo is no function is refused', async () => {
    const rig = new FunctionRig()
    const flow = workflow('no.undo', { retry: 'none' }, (ctx) => ctx.step('a', body, { undo: 'refund' as never }))
    const held = await (await rig.start(flow)).begin()
    expect(await held.outcome()).toMatchObject({ status: 'failed', value: { code: 'INVALID_OPTION' } })
  })
})
