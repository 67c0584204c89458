import { describe, expect, it } from 'vitest'
import { workflow } from '../../../src/functions/api/workflow.ts'
import { FunctionRig, type Held } from '../../support/function-rig.ts'

const late = { maxAttempts: 3, initial: '1h', kind: 'constant', jitter: { mode: 'none' } } as const

async function cancelledWith(held: Held): Promise<unknown> {
  const last = (await held.journal()).at(-1)
  return last?.kind === 'cancelled' ? last.meta : `the last entry is ${last?.kind}`
}

describe('a cancellation', () => {
  it('SW-P2 asks a running step to stop, by its signal, by isCancelled and with its next heartbeat', async () => {
    const rig = new FunctionRig()
    const held = await (await rig.start(workflow('cancel.notified', (ctx) => ctx.step('a', rig.gated)))).begin()
    const { tools } = rig.gates[0] ?? rig.gate('a')
    expect([tools.isCancelled(), tools.abortSignal.aborted]).toEqual([false, false])
    expect(await held.cancel('no more')).toMatchObject({ outcome: 'requested' })
    expect(tools.isCancelled()).toBe(true)
    expect(tools.abortSignal.reason).toMatchObject({ code: 'RUN_CANCELLED', details: { reason: 'no more' } })
    expect(() => tools.heartbeat()).toThrow('no more')
    expect(await held.story()).toEqual(['started'])
    expect(held.departure).toBeNull()
  })

  it('PQ-P1 the result of a step in flight is recorded and undone, but the body does not see it', async () => {
    const rig = new FunctionRig()
    const undone: string[] = []
    const seen: unknown[] = []
    const flow = workflow('cancel.flight', async (ctx) => {
      seen.push(await ctx.step('a', () => 'A', { undo: (id) => void undone.push(String(id)) }))
      seen.push(await ctx.step('b', rig.gated, { undo: (id) => void undone.push(String(id)) }))
      seen.push(await ctx.step('never', () => 'N'))
    })
    const held = await (await rig.start(flow)).begin()
    await held.cancel('no more')
    await rig.succeed('b', 'B')
    expect(seen).toEqual(['A'])
    expect(undone).toEqual(['B', 'A'])
    expect(await held.story()).toEqual([
      'started',
      'begun a',
      'step-succeeded a',
      'begun b',
      'step-succeeded b',
      'undone b',
      'undone a',
      'cancelled',
    ])
    expect(await cancelledWith(held)).toEqual({ reason: 'no more', notUndone: [] })
    expect(held.departure).toEqual({ kind: 'ended', status: 'cancelled', seq: 8, data: null, reason: 'no more' })
  })

  it('what a step throws after it was asked to stop is not recorded and not tried again', async () => {
    const rig = new FunctionRig()
    const flow = workflow('cancel.throw', (ctx) => ctx.step('a', rig.gated))
    const held = await (await rig.start(flow)).begin()
    await held.cancel()
    await rig.fail('a', new Error('I was asked to stop'))
    await rig.pass(60_000)
    expect(await held.story()).toEqual(['started', 'cancelled'])
    expect(await cancelledWith(held)).toEqual({ reason: null, notUndone: [] })
  })

  it('waits no longer for a step than its timeout', async () => {
    const rig = new FunctionRig()
    const flow = workflow('cancel.timeout', (ctx) => ctx.step('a', rig.gated, { timeout: '5s' }))
    const held = await (await rig.start(flow)).begin()
    await held.cancel()
    await rig.pass(4_999)
    expect(await held.status()).toBe('cancelling')
    await rig.pass(1)
    expect(await held.story()).toEqual(['started', 'abandoned a', 'cancelled'])
  })

  it('does not begin a step that waits for its turn, its delay or a commit', async () => {
    let cancels: (() => void) | null = null
    const rig = new FunctionRig({ onCommit: () => cancels?.() })
    const ran: string[] = []
    const flow = workflow('cancel.waiting', async (ctx) => {
      const delayed = ctx.step('delayed', () => Promise.reject(new Error('Later')), {
        retry: { ...late, initial: 500 },
      })
      await ctx.step('a', rig.gated)
      ctx.log('written before the next begins')
      await Promise.all([delayed, ctx.step('after the commit', () => void ran.push('after the commit'))])
    })
    const held = await rig.start(flow)
    await held.begin()
    cancels = () => {
      cancels = null
      void held.cancel('now')
    }
    await rig.succeed('a')
    await rig.pass(60_000)
    expect(ran).toEqual([])
    expect((await held.story()).slice(1)).toEqual([
      'attempt-failed delayed',
      'step-succeeded a',
      'logged log',
      'cancelled',
    ])
  })

  it('is heard of with the answer to a commit', async () => {
    const rig = new FunctionRig()
    const ran: string[] = []
    const flow = workflow('cancel.answer', async (ctx) => {
      await ctx.step('a', rig.gated)
      await ctx.step('b', () => void ran.push('b'))
    })
    const held = await (await rig.start(flow)).begin()
    await held.cancel('heard late', 'later')
    await rig.succeed('a')
    expect(ran).toEqual([])
    expect(await held.story()).toEqual(['started', 'step-succeeded a', 'cancelled'])
    expect(await cancelledWith(held)).toEqual({ reason: 'heard late', notUndone: [] })
  })

  it('a return that comes too late changes nothing, and the step that came with it is recorded and undone', async () => {
    for (const givesReason of [true, false]) {
      const rig = new FunctionRig({ givesReason })
      const undone: unknown[] = []
      const flow = workflow('cancel.return', (ctx) =>
        ctx.step('a', rig.gated, { undo: (value) => void undone.push(value) }),
      )
      const held = await (await rig.start(flow)).begin()
      await held.cancel('too late', 'later')
      await rig.succeed('a', 'A')
      expect(undone).toEqual(['A'])
      expect(await held.story()).toEqual(['started', 'begun a', 'step-succeeded a', 'undone a', 'cancelled'])
      expect(await cancelledWith(held)).toEqual({ reason: 'too late', notUndone: [] })
      expect(rig.commits.map(({ append, status }) => [append.map(({ kind }) => kind).join(' '), status])).toEqual([
        ['begun', null],
        ['step-succeeded succeeded', 'succeeded'],
        ['step-succeeded', null],
        ['undone cancelled', 'cancelled'],
      ])
      expect(new Set(rig.commits.map(({ id }) => id)).size).toBe(4)
    }
  })

  it('without anything but the last entry to send again it has no reason, if nobody gave it', async () => {
    for (const [givesReason, reason] of [
      [true, 'too late'],
      [false, null],
    ] as const) {
      const rig = new FunctionRig({ givesReason })
      let end: () => void = () => undefined
      const flow = workflow('cancel.bare', () => new Promise<void>((resolve) => (end = resolve)))
      const held = await (await rig.start(flow)).begin()
      await held.cancel('too late', 'later')
      end()
      await rig.quiet()
      expect(await held.story()).toEqual(['started', 'cancelled'])
      expect(held.departure).toMatchObject({ status: 'cancelled', reason })
    }
  })

  it('checkpoints that were merged with a refused end are sent again once, at their places', async () => {
    const rig = new FunctionRig()
    let release: () => void = () => undefined
    let isHeldUp = false
    const sent: string[] = []
    const commit = rig.store.commit.bind(rig.store)
    rig.store.commit = async (transitions) => {
      if (isHeldUp) {
        isHeldUp = false
        await new Promise<void>((resolve) => (release = resolve))
      }
      sent.push(...transitions.map(({ append, status }) => `${append.map(({ kind }) => kind).join(' ')} → ${status}`))
      return commit(transitions)
    }
    const flow = workflow('cancel.merged', async (ctx) => {
      await Promise.all(['a', 'b', 'c'].map((name) => ctx.step(name, rig.gated, { undo: () => undefined })))
      return 'too late'
    })
    const held = await (await rig.start(flow)).begin()
    isHeldUp = true
    // The commit of `a` is held up. That of `b` gathers behind it, and so does the end.
    for (const name of ['a', 'b', 'c']) await rig.succeed(name)
    await held.cancel('merged', 'later')
    release()
    await rig.quiet()
    expect(sent.slice(0, 4)).toEqual([
      'begun begun begun → null',
      'step-succeeded → null',
      'step-succeeded step-succeeded succeeded → succeeded',
      'step-succeeded step-succeeded → null',
    ])
    expect(await held.story()).toEqual([
      'started',
      'begun a',
      'begun b',
      'begun c',
      'step-succeeded a',
      'step-succeeded b',
      'step-succeeded c',
      'undone c',
      'undone b',
      'undone a',
      'cancelled',
    ])
    expect(await cancelledWith(held)).toEqual({ reason: 'merged', notUndone: [] })
  })

  it('of a failure that is on its way ends as cancelled, with everything undone', async () => {
    const rig = new FunctionRig()
    const undone: string[] = []
    const flow = workflow('cancel.failure', async (ctx) => {
      await ctx.step('a', () => 1, { undo: (_, step) => rig.gated(step).then(() => void undone.push('a')) })
      await ctx.step('b', () => Promise.reject(new Error('Bad')), { retry: 'none' })
    })
    const held = await (await rig.start(flow)).begin()
    await held.cancel('as well')
    expect(rig.gate('undo a').tools.abortSignal.aborted).toBe(false)
    await held.crash()
    await held.goOn()
    await rig.succeed('undo a')
    expect(undone).toEqual(['a'])
    expect((await held.story()).slice(4)).toEqual(['failing', 'crashed', 'undone a', 'cancelled'])
    expect(await cancelledWith(held)).toEqual({ reason: 'as well', notUndone: [] })
  })

  it('of a run between two attempts of its body is obeyed at once', async () => {
    let cancels: (() => void) | null = null
    const rig = new FunctionRig({ onCommit: () => cancels?.() })
    const undone: string[] = []
    const flow = workflow('cancel.retry', { retry: late }, async (ctx) => {
      await ctx.step('a', () => 1, { undo: () => void undone.push('a') })
      await ctx.step('b', rig.gated, { undo: () => void undone.push('b') })
      throw new Error('Later')
    })
    const held = await (await rig.start(flow)).begin()
    cancels = () => {
      cancels = null
      void held.cancel('between', 'later')
    }
    await rig.succeed('b')
    expect(undone).toEqual(['b', 'a'])
    expect((await held.story()).slice(4)).toEqual([
      'step-succeeded b',
      'attempt-failed',
      'undone b',
      'undone a',
      'cancelled',
    ])
    expect(await cancelledWith(held)).toEqual({ reason: 'between', notUndone: [] })
  })

  it('that comes while a run is being parked keeps it here until it has ended', async () => {
    let cancels: (() => void) | null = null
    const rig = new FunctionRig({ onCommit: ({ status }) => (status === 'waiting' ? cancels?.() : undefined) })
    const flow = workflow('cancel.parking', async (ctx) => void (await ctx.sleep('1 day')))
    const held = await rig.start(flow)
    cancels = () => void held.cancel('asleep', 'later')
    await held.begin()
    expect(await held.story()).toEqual(['started', 'waiting sleep', 'cancelled'])
    expect(await cancelledWith(held)).toEqual({ reason: 'asleep', notUndone: [] })
  })

  it('with a long delay before an undo releases the run as cancelling and goes on when it is due', async () => {
    const rig = new FunctionRig()
    let tries = 0
    const flow = workflow('cancel.late', async (ctx) => {
      const undo = () => (tries += 1) === 1 && Promise.reject(new Error('Later'))
      await ctx.step('a', () => 1, { retry: late, undo })
      await ctx.step('b', rig.gated)
    })
    const held = await (await rig.start(flow)).begin()
    await held.cancel('slowly')
    const start = rig.clock.now()
    await rig.fail('b', new Error('Stopped'))
    expect(held.departure).toEqual({ kind: 'released' })
    expect(await rig.run(held.runId)).toMatchObject({ status: 'cancelling', due: start + 3_600_000 })
    await held.goOn()
    expect((await held.story()).slice(3)).toEqual(['undo-attempt-failed a', 'undone a', 'cancelled'])
    expect(await cancelledWith(held)).toEqual({ reason: 'slowly', notUndone: [] })
  })
})

describe('a run that is being cancelled and has no holder', () => {
  it('is replayed for its undo work: begins nothing, writes nothing else, and ends', async () => {
    const rig = new FunctionRig()
    const did: string[] = []
    const flow = workflow('cancel.claimed', async (ctx) => {
      did.push(`cancelled ${ctx.isCancelled()} ${ctx.abortSignal.aborted}`)
      await ctx.step('a', () => void did.push('a'), { undo: () => void did.push('undo a') })
      await ctx.sleep('1 day')
      ctx.log('never written')
      ctx.uuid()
      void ctx.sleep('1 day').then(() => undefined)
      await ctx.step('b', () => void did.push('b'))
    })
    const held = await (await rig.start(flow)).begin()
    did.length = 0
    expect(await held.cancel('parked')).toMatchObject({ outcome: 'done' })
    await held.goOn()
    expect(did).toEqual(['cancelled false false', 'undo a'])
    expect((await held.story()).slice(1)).toEqual([
      'begun a',
      'step-succeeded a',
      'waiting sleep',
      'cancelling',
      'undone a',
      'cancelled',
    ])
    expect(await cancelledWith(held)).toEqual({ reason: 'parked', notUndone: [] })
  })

  it('PQ-P1 is ended without a line of its code if nothing is left to undo', async () => {
    const rig = new FunctionRig()
    let bodies = 0
    const flow = workflow('cancel.nothing', async (ctx) => {
      bodies += 1
      await ctx.step('a', () => 1, { undo: () => undefined })
      await ctx.step('b', rig.gated)
    })
    const held = await (await rig.start(flow)).begin()
    const undone = { kind: 'undone', name: 'a', meta: { attempt: 1, ms: 0 }, data: null } as const
    const other = new FunctionRig()
    const found = await other.adopt(flow, [...(await held.journal()), { ...undone, seq: 4, at: 0, transition: null }])
    other.store.release(found.runId)
    await found.cancel('done before')
    await found.goOn()
    expect(bodies).toBe(1)
    expect((await found.story()).slice(3)).toEqual(['undone a', 'cancelling', 'cancelled'])
    expect(await cancelledWith(found)).toEqual({ reason: 'done before', notUndone: [] })
  })

  it('whose process died with a step under way attempts that once more, and undoes it, too', async () => {
    const rig = new FunctionRig()
    const undone: string[] = []
    const undo = (name: unknown): void => void undone.push(String(name))
    const flow = workflow('cancel.crash', async (ctx) => {
      await Promise.all([ctx.step('a', rig.gated, { undo }), ctx.step('b', rig.gated, { undo })])
      await ctx.step('never', () => void undone.push('never'))
    })
    const held = await (await rig.start(flow)).begin()
    await held.cancel('in flight')
    await rig.succeed('b', 'B')
    await held.crash()
    await held.goOn()
    expect(undone).toEqual([])
    await rig.succeed('a', 'A')
    expect(undone).toEqual(['A', 'B'])
    expect((await held.story()).slice(1)).toEqual([
      'begun a',
      'begun b',
      'step-succeeded b',
      'crashed',
      'step-succeeded a',
      'undone a',
      'undone b',
      'cancelled',
    ])
    expect(await cancelledWith(held)).toEqual({ reason: 'in flight', notUndone: [] })
  })

  it('whose code changed ends all the same and says what was not undone', async () => {
    const rig = new FunctionRig()
    const first = workflow('cancel.drift', async (ctx) => {
      await ctx.step('a', () => 1, { undo: () => undefined })
      await ctx.step('b', () => 1, { undo: () => undefined })
      await ctx.sleep('1 day')
    })
    const asleep = await (await rig.start(first)).begin()
    const undone: string[] = []
    const second = workflow('cancel.drift', async (ctx) => {
      await ctx.step('a', () => 1, { undo: () => void undone.push('a') })
      await ctx.step('renamed', () => 1, { undo: () => void undone.push('renamed') })
    })
    const other = new FunctionRig()
    const held = await other.adopt(second, await asleep.journal())
    other.store.release(held.runId)
    await held.cancel('changed')
    await held.goOn()
    await other.pass(5_000)
    expect(undone).toEqual(['a'])
    expect(await cancelledWith(held)).toEqual({ reason: 'changed', notUndone: ['b'] })
  })
})
