import { describe, expect, it } from 'vitest'
import { fatal } from '../../../src/core/definition/retry-mark.ts'
import { workflow } from '../../../src/functions/api/workflow.ts'
import { FunctionRig, type Held } from '../../support/function-rig.ts'

const retry = { maxAttempts: 3, initial: 500, kind: 'constant', jitter: { mode: 'none' } } as const

async function pausedWith(held: Held): Promise<unknown> {
  const last = (await held.journal()).at(-1)
  expect(await held.status()).toBe('paused')
  expect(held.departure).toEqual({ kind: 'released' })
  return last?.kind === 'paused' ? last.meta : `the last entry is ${last?.kind}`
}

describe('a pause of a run that a worker holds', () => {
  it('lets what runs come to its end and begins nothing after it', async () => {
    const rig = new FunctionRig()
    const flow = workflow('pause.step', async (ctx) => {
      const [a] = await Promise.all([ctx.step('a', rig.gated), ctx.step('b', rig.gated)])
      return [a, await ctx.step('c', rig.gated)]
    })
    const held = await (await rig.start(flow)).begin()
    expect(await held.pause('maintenance')).toMatchObject({ outcome: 'requested' })
    expect(rig.gates.map(({ tools }) => tools.abortSignal.aborted)).toEqual([false, false])
    await rig.succeed('a', 'A')
    expect(await held.status()).toBe('running')
    await rig.succeed('b')
    expect(rig.gates).toEqual([])
    expect(await held.story()).toEqual(['started', 'step-succeeded a', 'step-succeeded b', 'paused'])
    expect(await pausedWith(held)).toEqual({ reason: 'maintenance', note: 'a note' })
    await held.revive('resume')
    await held.goOn()
    await rig.succeed('c', 'C')
    expect(await held.outcome()).toEqual({ status: 'succeeded', value: ['A', 'C'] })
  })

  it('is heard of with the answer to a commit, before the next step begins', async () => {
    const rig = new FunctionRig()
    const ran: string[] = []
    const flow = workflow('pause.answer', async (ctx) => {
      await ctx.step('a', rig.gated)
      await ctx.step('b', () => void ran.push('b'))
    })
    const held = await (await rig.start(flow)).begin()
    await held.pause('operator', 'later')
    await rig.succeed('a')
    expect(ran).toEqual([])
    expect(await pausedWith(held)).toEqual({ reason: 'operator', note: 'a note' })
  })

  it('of a run that ends before it comes to a checkpoint just ends', async () => {
    const rig = new FunctionRig()
    const held = await (await rig.start(workflow('pause.end', (ctx) => ctx.step('a', rig.gated)))).begin()
    await held.pause()
    await rig.succeed('a', 'A')
    expect(await held.outcome()).toEqual({ status: 'succeeded', value: 'A' })
  })

  it('of a body that works without steps waits until it asks for something', async () => {
    const rig = new FunctionRig()
    let goOn: () => void = () => undefined
    let worked = 0
    const flow = workflow('pause.job', async (ctx) => {
      await new Promise<void>((resolve) => (goOn = resolve))
      worked += 1
      await ctx.step('a', () => void (worked += 1))
    })
    const held = await (await rig.start(flow)).begin()
    await held.pause()
    expect(await held.status()).toBe('running')
    goOn()
    await rig.quiet()
    expect(worked).toBe(1)
    expect(await held.story()).toEqual(['started', 'paused'])
  })

  it('is obeyed between two attempts, in memory or not, and while the run is being parked', async () => {
    const rig = new FunctionRig()
    const flow = workflow('pause.delay', (ctx) => ctx.step('a', () => Promise.reject(new Error('Later')), { retry }))
    const held = await (await rig.start(flow)).begin()
    expect(held.departure).toBeNull()
    await held.pause()
    expect(await held.story()).toEqual(['started', 'attempt-failed a', 'paused'])

    for (const [type, body, story] of [
      ['pause.parking', async (ctx) => void (await ctx.sleep('1 day')), ['waiting sleep', 'paused']],
      ['pause.body', () => Promise.reject(new Error('Later')), ['attempt-failed', 'paused']],
    ] as const satisfies readonly (readonly [string, Parameters<typeof workflow>[1], readonly string[]])[]) {
      let pauses: (() => void) | null = null
      const second = new FunctionRig({ onCommit: () => pauses?.() })
      const other = await second.start(workflow(type, body))
      pauses = () => {
        pauses = null
        void other.pause('operator', 'later')
      }
      await other.begin()
      expect((await other.story()).slice(1)).toEqual(story)
      expect(await pausedWith(other)).toEqual({ reason: 'operator', note: 'a note' })
    }
  })

  it('of a body that failed and was notified before is one commit', async () => {
    const rig = new FunctionRig()
    let fails: () => void = () => undefined
    const flow = workflow('pause.failed', () => new Promise((_, reject) => (fails = () => reject(new Error('Later')))))
    const held = await (await rig.start(flow)).begin()
    await held.pause()
    fails()
    await rig.quiet()
    expect(rig.commits.map(({ append, status }) => [append.map(({ kind }) => kind).join(' '), status])).toEqual([
      ['attempt-failed paused', 'paused'],
    ])
  })

  it('that was taken back is forgotten with the next answer, and what was held back begins', async () => {
    const rig = new FunctionRig()
    const flow = workflow('pause.forgotten', async (ctx) => {
      const long = ctx.step('long', rig.gated)
      const logs = ctx.step('logs', rig.gated).then(() => ctx.log('a line'))
      await ctx.step('a', rig.gated)
      await Promise.all([ctx.step('b', rig.gated), logs])
      return long
    })
    const held = await (await rig.start(flow)).begin()
    await held.pause()
    await rig.succeed('a')
    expect(rig.gates.map(({ step }) => step)).toEqual(['long', 'logs'])
    await held.revive('resume')
    await rig.succeed('logs')
    expect(rig.gates.map(({ step }) => step)).toEqual(['long', 'b'])
    await rig.succeed('b')
    await rig.succeed('long', 'L')
    expect(await held.outcome()).toEqual({ status: 'succeeded', value: 'L' })
  })

  it('is obeyed between two undos, and the undo work goes on when the run does', async () => {
    const rig = new FunctionRig()
    const undone: string[] = []
    const flow = workflow('pause.undo', async (ctx) => {
      for (const name of ['a', 'b']) {
        await ctx.step(name, () => name, { undo: (_, step) => rig.gated(step).then(() => void undone.push(name)) })
      }
      throw fatal('Enough')
    })
    const held = await (await rig.start(flow)).begin()
    await held.pause()
    await rig.succeed('undo b')
    expect(await pausedWith(held)).toEqual({ reason: 'operator', note: 'a note' })
    await held.revive('resume')
    await held.goOn()
    await rig.succeed('undo a')
    expect(undone).toEqual(['b', 'a'])
    expect((await held.story()).slice(5)).toEqual(['failing', 'undone b', 'paused', 'resumed', 'undone a', 'failed'])
  })

  it('is obeyed where an undo would release the run for a long delay, which counts all the same', async () => {
    let pauses: (() => void) | null = null
    const rig = new FunctionRig({ onCommit: ({ status }) => (status === 'pending' ? pauses?.() : undefined) })
    let tries = 0
    const flow = workflow('pause.late', async (ctx) => {
      const undo = () => (tries += 1) === 1 && Promise.reject(new Error('Later'))
      await ctx.step('a', () => 1, { retry: { ...retry, initial: '1h' }, undo })
      throw fatal('Enough')
    })
    const held = await rig.start(flow)
    pauses = () => void held.pause('operator', 'later')
    await held.begin()
    expect(await pausedWith(held)).toEqual({ reason: 'operator', note: 'a note' })
    await held.revive('resume')
    await held.goOn()
    await rig.pass(3_599_999)
    expect(tries).toBe(1)
    await rig.pass(1)
    expect((await held.story()).slice(3)).toEqual([
      'failing',
      'undo-attempt-failed a',
      'paused',
      'resumed',
      'undone a',
      'failed',
    ])
  })

  it('that meets a cancellation gives way to it', async () => {
    const rig = new FunctionRig()
    const flow = workflow('pause.cancel', async (ctx) => {
      await ctx.step('a', rig.gated)
      await ctx.step('b', rig.gated)
    })
    const held = await (await rig.start(flow)).begin()
    await held.pause()
    await held.cancel('instead', 'later')
    await rig.succeed('a')
    expect(await held.story()).toEqual(['started', 'step-succeeded a', 'cancelled'])
    expect(held.departure).toMatchObject({ status: 'cancelled', reason: 'instead' })
  })
})
