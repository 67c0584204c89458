// A step with undo that was the only one under way when its process died. It may have happened, so the journal names it before
// it begins: whatever ends the run before the step is known is no reason to leave it as it is.

import { describe, expect, it } from 'vitest'
import type { Duration } from '../../../src/core/definition/duration.ts'
import { fatal } from '../../../src/core/definition/retry-mark.ts'
import { workflow, type Workflow } from '../../../src/functions/api/workflow.ts'
import { FunctionRig, type Held } from '../../support/function-rig.ts'

const grace = 5_000

interface Flight {
  readonly rig: FunctionRig
  readonly undone: unknown[]
  readonly held: Held
}

/** A run whose only step under way is a flight. */
async function flight(retry: 'none' | { readonly initial: Duration } = 'none'): Promise<Flight> {
  const rig = new FunctionRig({ abortGraceMs: grace })
  const undone: unknown[] = []
  const flow: Workflow<unknown, unknown> = workflow('flight', { retry: 'none' }, async (ctx) => {
    await ctx.step('look', () => 1)
    const policy =
      retry === 'none' ? retry : { maxAttempts: 2, initial: retry.initial, jitter: { mode: 'none' as const } }
    await ctx.step('flight', rig.gated, { retry: policy, undo: (booked) => void undone.push(booked) })
    await ctx.step('never', () => void undone.push('never'), { undo: () => void undone.push('never') })
  })
  const held = await (await rig.start(flow)).begin()
  expect(rig.gates.map(({ step }) => step)).toEqual(['flight'])
  return { rig, undone, held }
}

const soFar = ['started', 'step-succeeded look', 'begun flight']

describe('a lone step whose process died', () => {
  it('is attempted once more and undone if the run is cancelled before anybody takes it', async () => {
    const { rig, undone, held } = await flight()
    await held.crash()
    expect(await held.cancel('enough')).toMatchObject({ outcome: 'done', run: { status: 'cancelling' } })
    await held.goOn()
    await rig.succeed('flight', 'flight 1')
    expect(undone).toEqual(['flight 1'])
    expect(await held.story()).toEqual([
      ...soFar,
      'crashed',
      'cancelling',
      'step-succeeded flight',
      'undone flight',
      'cancelled',
    ])
  })

  it('is attempted once more and undone if the run was being cancelled when it died', async () => {
    const { rig, undone, held } = await flight()
    await held.cancel('enough', 'later')
    await held.crash()
    expect(await held.status()).toBe('cancelling')
    await held.goOn()
    await rig.succeed('flight', 'flight 1')
    expect([undone, await held.status()]).toEqual([['flight 1'], 'cancelled'])
  })

  it('is undone if the time of the run is over before anybody takes it, and the run fails', async () => {
    const { rig, undone, held } = await flight()
    await held.crash()
    rig.store.timeOut(held.runId)
    expect(await rig.run(held.runId)).toMatchObject({ status: 'pending', undo: 'due', timeoutAt: null })
    await held.goOn()
    await rig.succeed('flight', 'flight 1')
    expect(undone).toEqual(['flight 1'])
    expect(await held.story()).toEqual([
      ...soFar,
      'crashed',
      'failing',
      'step-succeeded flight',
      'undone flight',
      'failed',
    ])
    expect(await held.outcome()).toEqual({ status: 'failed', value: 'timed out' })
    expect((await held.revive('retry')).outcome).toBe('refused')
  })

  it('is undone if its workflow fails after so many crashes', async () => {
    const { rig, undone, held } = await flight()
    rig.store.workflows = [{ type: 'flight', version: 1, maxCrashes: 3, onCrashes: 'fail' }]
    for (let crash = 0; crash < 3; crash += 1) {
      await held.crash()
      await held.goOn()
    }
    expect((await held.story()).at(-1)).toBe('failing')
    await rig.succeed('flight', 'flight 1')
    expect([undone, await held.status()]).toEqual([['flight 1'], 'failed'])
  })

  it('is undone without a result if the attempt throws, or takes longer than the grace', async () => {
    for (const how of ['throws', 'hangs']) {
      const { rig, undone, held } = await flight()
      await held.crash()
      await held.cancel()
      await held.goOn()
      if (how === 'throws') await rig.fail('flight', new Error('Sold out'))
      else await rig.pass(grace)
      expect([how, undone, await held.status()]).toEqual([how, [undefined], 'cancelled'])
    }
  })

  it('is undone if the next holder was asked to pause before it began, and the run is cancelled then', async () => {
    const { rig, undone, held } = await flight()
    await held.crash()
    rig.store.control(held.runId, { kind: 'pause', reason: 'operator', note: null })
    await held.revive('resume')
    await held.cancel()
    await held.goOn('replayed')
    await rig.succeed('flight', 'flight 1')
    expect([undone, await held.status()]).toEqual([['flight 1'], 'cancelled'])
  })

  it.each(['cancelled', 'failed'])(
    'that dies again while it is attempted for its undo is undone all the same, %s',
    async (end) => {
      const { rig, undone, held } = await flight()
      await held.crash()
      if (end === 'cancelled') await held.cancel()
      else rig.store.timeOut(held.runId)
      await held.goOn()
      await held.crash()
      await held.goOn()
      await rig.succeed('flight', 'flight 1')
      expect([undone, await held.status()]).toEqual([['flight 1'], end])
    },
  )

  it('is undone without a result if the next holder attempts it and that throws: the first attempt may have booked it', async () => {
    const { rig, undone, held } = await flight()
    await held.crash()
    await held.goOn()
    await rig.fail('flight', fatal('Sold out'))
    expect(undone).toEqual([undefined])
    expect(await held.story()).toEqual([
      ...soFar,
      'crashed',
      'step-failed flight',
      'failing',
      'undone flight',
      'failed',
    ])
  })

  it('stays to be undone if the next attempt throws and is tried again', async () => {
    const { rig, undone, held } = await flight({ initial: 10 })
    await held.crash()
    await held.goOn()
    await rig.fail('flight', new Error('Connection reset'))
    await rig.pass(10)
    await rig.fail('flight', new Error('Connection reset'))
    expect(undone).toEqual([undefined])
    expect((await held.story()).slice(soFar.length)).toEqual([
      'crashed',
      'abandoned flight',
      'attempt-failed flight',
      'begun flight',
      'step-failed flight',
      'failing',
      'undone flight',
      'failed',
    ])
  })

  it('keeps the run from succeeding if its code does not ask for it any more: that is drift', async () => {
    const { held: died } = await flight()
    await died.crash()
    for (const end of ['returns', 'begins anew']) {
      const rig = new FunctionRig()
      const changed: Workflow<unknown, unknown> = workflow('flight', { retry: 'none' }, async (ctx) => {
        await ctx.step('look', () => 1)
        return end === 'returns' ? 1 : ctx.continueAsNew(1)
      })
      const held = await (await rig.adopt(changed, await died.journal())).begin()
      expect([end, await held.status(), (await held.story()).at(-1)]).toEqual([end, 'paused', 'paused'])
    }
  })

  it('is not undone if it succeeds the next time, and so does the run: it is named once', async () => {
    const { rig, undone, held } = await flight()
    await held.crash()
    await held.goOn()
    await rig.succeed('flight', 'flight 1')
    expect(undone).toEqual(['never'])
    expect(await held.story()).toEqual([
      ...soFar,
      'crashed',
      'step-succeeded flight',
      'begun never',
      'step-succeeded never',
      'succeeded',
    ])
  })

  it('is named again before it is tried again: what became of the first attempt is known', async () => {
    const { rig, undone, held } = await flight({ initial: '1 h' })
    await rig.fail('flight', new Error('Busy'))
    expect(held.departure?.kind).toBe('parked')
    await held.goOn()
    expect(await held.story()).toEqual([...soFar, 'attempt-failed flight', 'begun flight'])
    await held.crash()
    await held.cancel()
    await held.goOn()
    await rig.succeed('flight', 'flight 1')
    expect([undone, await held.status()]).toEqual([['flight 1'], 'cancelled'])
  })

  it('that was only to be tried again later is not attempted for the sake of its undo', async () => {
    const { rig, undone, held } = await flight({ initial: '1 h' })
    await rig.fail('flight', new Error('Busy'))
    await held.cancel()
    await held.goOn('replayed')
    expect([rig.gates, undone, await held.status()]).toEqual([[], [], 'cancelled'])
  })
})

describe('what names a step', () => {
  it('goes with what the body has seen, and costs a commit only where there is nothing of that', async () => {
    const { rig, held } = await flight()
    await rig.succeed('flight', 'flight 1')
    expect(rig.commits.map(({ append }) => append.map(({ kind, name }) => `${kind} ${name}`))).toEqual([
      ['step-succeeded look', 'begun flight'],
      ['step-succeeded flight', 'begun never'],
      ['step-succeeded never', 'succeeded null'],
    ])
    expect(await held.status()).toBe('succeeded')
    const first = new FunctionRig()
    const flow = workflow('first', (ctx) => ctx.step('a', () => 1, { undo: () => undefined }))
    await (await first.start(flow)).begin()
    expect(first.commits.map(({ append }) => append.map(({ kind }) => kind))).toEqual([
      ['begun'],
      ['step-succeeded', 'succeeded'],
    ])
  })

  it('is one commit for all that begin together, as far as the bound of the workflow lets them', async () => {
    const rig = new FunctionRig()
    const undone: unknown[] = []
    const flow = workflow('many', { parallel: 2, retry: 'none' }, async (ctx) => {
      await Promise.all([1, 2, 3, 4].map((n) => ctx.step(`s${n}`, rig.gated, { undo: () => void undone.push(n) })))
    })
    const held = await (await rig.start(flow)).begin()
    expect(rig.commits.map(({ append }) => append.map(({ name }) => name))).toEqual([['s1', 's2']])
    await held.crash()
    await held.cancel()
    await held.goOn()
    expect(rig.gates.map(({ step }) => step)).toEqual(['s1', 's2'])
    await rig.succeed('s1')
    await rig.succeed('s2')
    expect([undone, await held.status()]).toEqual([[2, 1], 'cancelled'])
  })

  it('is split over transitions if more begin together than one may have', async () => {
    const rig = new FunctionRig()
    const names = Array.from({ length: 1_200 }, (_, n) => `s${n}`)
    const flow = workflow('crowd', { parallel: 2_000 }, (ctx) =>
      Promise.all(names.map((name) => ctx.step(name, rig.gated, { undo: () => undefined }))),
    )
    await (await rig.start(flow)).begin()
    expect(rig.commits.map(({ append }) => append.length)).toEqual([500, 500, 200])
    expect(rig.gates).toHaveLength(names.length)
  })

  it('is no outcome: a step that is named and was not begun begins when the run goes on', async () => {
    let pauses = true
    const rig = new FunctionRig({
      onCommit: () => {
        // The answer to this commit reports it, too.
        if (pauses) rig.store.control(held.runId, { kind: 'pause', reason: 'operator', note: null })
        pauses = false
      },
    })
    const undo = (): void => undefined
    const flow = workflow('paused', (ctx) => Promise.all(['a', 'b'].map((name) => ctx.step(name, rig.gated, { undo }))))
    const held = await rig.start(flow)
    await held.begin()
    const both = ['begun a', 'begun b']
    const paused = ['started', ...both, 'abandoned a', 'abandoned b', 'paused']
    expect([rig.gates, await held.story(), rig.commits.length]).toEqual([[], paused, 2])
    await held.revive('resume')
    await held.goOn('replayed')
    await rig.succeed('a', 1)
    await rig.succeed('b', 2)
    const done = ['step-succeeded a', 'step-succeeded b', 'succeeded']
    expect(await held.story()).toEqual([...paused, 'resumed', ...both, ...done])
  })

  it('is taken back if the run is paused meanwhile, so that it is not attempted when the run is cancelled', async () => {
    const undone: unknown[] = []
    const rig = new FunctionRig({
      onCommit: ({ append }) => {
        if (append[0]?.kind === 'begun')
          rig.store.control(held.runId, { kind: 'pause', reason: 'operator', note: null })
      },
    })
    const flow = workflow('paused', (ctx) => ctx.step('a', rig.gated, { undo: () => void undone.push('a') }))
    const held = await rig.start(flow)
    await held.begin()
    await held.cancel()
    await held.goOn('replayed')
    expect([rig.gates, undone, await held.status()]).toEqual([[], [], 'cancelled'])
  })

  it('is taken back if the run fails meanwhile, so that nobody attempts it between two undos', async () => {
    const did: string[] = []
    const rig = new FunctionRig({ inlineRetryMs: 0 })
    const retry = { maxAttempts: 2, initial: '1 h', jitter: { mode: 'none' } } as const
    const flow = workflow('failed', { retry: 'none' }, async (ctx) => {
      const undo = (_: unknown, { attempt }: { readonly attempt: number }): void => {
        did.push(`undo a ${attempt}`)
        if (attempt === 1) throw new Error('Later')
      }
      await ctx.step('a', () => void did.push('a'), { retry, undo })
      void ctx.step('b', () => void did.push('b'), { undo: () => void did.push('undo b') })
      throw fatal('Enough')
    })
    const held = await (await rig.start(flow)).begin()
    await held.goOn('replayed')
    expect(did).toEqual(['a', 'undo a 1', 'undo a 2'])
    expect((await held.story()).slice(3, 6)).toEqual(['begun b', 'abandoned b', 'failing'])
  })

  it('comes too late to begin the step if the run is cancelled meanwhile: nothing is begun or undone', async () => {
    const undone: unknown[] = []
    const rig = new FunctionRig({
      onCommit: ({ append }) => {
        if (append[0]?.kind === 'begun')
          rig.store.control(held.runId, { kind: 'cancel', mode: 'cooperative', reason: null })
      },
    })
    const flow = workflow('stopped', (ctx) => ctx.step('a', rig.gated, { undo: () => void undone.push('a') }))
    const held = await rig.start(flow)
    await held.begin()
    expect([rig.gates, undone]).toEqual([[], []])
    expect(await held.story()).toEqual(['started', 'begun a', 'abandoned a', 'cancelled'])
  })

  it('is not written for a step without undo, nor for a transaction', async () => {
    const rig = new FunctionRig({
      transact: async (work) => {
        await work(null, (transition) => rig.host.commit(transition))
        return { outcome: 'committed' }
      },
    })
    const flow = workflow('plain', async (ctx) => {
      await ctx.step('a', () => 1)
      await ctx.transaction('b', () => 2, { undo: () => undefined })
    })
    const held = await (await rig.start(flow)).begin()
    expect(await held.story()).toEqual(['started', 'step-succeeded a', 'step-succeeded b', 'succeeded'])
  })
})

describe('a run that ends after a crash, with nothing that could have been begun', () => {
  it('fails for its time at once, and can be retried: nothing was undone', async () => {
    const rig = new FunctionRig()
    const flow = workflow('plain', { retry: 'none' }, async (ctx) => ctx.step('a', rig.gated))
    const held = await (await rig.start(flow)).begin()
    await held.crash()
    rig.store.timeOut(held.runId)
    expect(await held.story()).toEqual(['started', 'crashed', 'failed'])
    expect((await held.revive('retry')).outcome).toBe('done')
    await held.goOn()
    await rig.succeed('a', 1)
    expect(await held.outcome()).toEqual({ status: 'succeeded', value: 1 })
  })

  it('is cancelled at once if nobody began it', async () => {
    const rig = new FunctionRig()
    let calls = 0
    const flow = workflow('untouched', async (ctx) => {
      calls += 1
      await ctx.step('a', () => 1, { undo: () => undefined })
    })
    const held = await rig.start(flow)
    rig.store.release(held.runId)
    expect(await held.cancel()).toMatchObject({ outcome: 'done', run: { status: 'cancelled' } })
    expect([calls, await held.story()]).toEqual([0, ['started', 'cancelled']])
  })
})
