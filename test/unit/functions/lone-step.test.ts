// A step with undo that was the only one under way when its process died. Nothing of it stands in the journal, and it may have
// happened: whatever ends the run before the step is known is no reason to leave it as it is.

import { describe, expect, it } from 'vitest'
import type { Duration } from '../../../src/core/duration.ts'
import { fatal } from '../../../src/core/verdict.ts'
import { workflow, type Workflow } from '../../../src/functions/workflow.ts'
import { FunctionRig, type Held } from '../../support/function-rig.ts'

const grace = 5_000

interface Flight {
  readonly rig: FunctionRig
  readonly undone: unknown[]
  readonly flow: Workflow<unknown, unknown>
  readonly held: Held
}

/** A run whose only step under way is a flight. */
async function flight(retry: 'none' | { readonly base: Duration } = 'none'): Promise<Flight> {
  const rig = new FunctionRig({ abortGraceMs: grace })
  const undone: unknown[] = []
  const flow: Workflow<unknown, unknown> = workflow('flight', { retry: 'none' }, async (ctx) => {
    await ctx.step('look', () => 1)
    const policy = retry === 'none' ? retry : { maxAttempts: 2, base: retry.base, jitter: { mode: 'none' as const } }
    await ctx.step('flight', rig.gated, { retry: policy, undo: (booked) => void undone.push(booked) })
    await ctx.step('never', () => void undone.push('never'), { undo: () => void undone.push('never') })
  })
  const held = await (await rig.start(flow)).begin()
  expect(rig.gates.map(({ step }) => step)).toEqual(['flight'])
  return { rig, undone, flow, held }
}

describe('a lone step whose process died', () => {
  it('is attempted once more and undone if the run is cancelled before anybody takes it', async () => {
    const { rig, undone, held } = await flight()
    await held.crash()
    expect(await held.cancel('enough')).toMatchObject({ outcome: 'done', run: { status: 'cancelling' } })
    await held.goOn()
    await rig.succeed('flight', 'flight 1')
    expect(undone).toEqual(['flight 1'])
    expect((await held.story()).slice(2)).toEqual([
      'crashed',
      'cancelling',
      'begun flight',
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

  it('is undone without a result if the next holder attempts it and that throws', async () => {
    const { rig, undone, held } = await flight()
    await held.crash()
    await held.goOn()
    await rig.fail('flight', fatal('Sold out'))
    expect(undone).toEqual([undefined])
    expect((await held.story()).slice(2)).toEqual([
      'crashed',
      'step-failed flight',
      'failing',
      'undone flight',
      'failed',
    ])
    expect(await held.outcome()).toMatchObject({ status: 'failed', value: { message: 'Sold out' } })
  })

  it('is undone if that throws, the run rests before the next attempt, and is cancelled there', async () => {
    const { rig, undone, held } = await flight({ base: '1 h' })
    await held.crash()
    await held.goOn()
    await rig.fail('flight', new Error('Busy'))
    expect(held.departure?.kind).toBe('parked')
    await held.cancel()
    await held.goOn('replayed')
    expect([undone, await held.status()]).toEqual([[undefined], 'cancelled'])
  })

  it('is undone if the next holder was asked to pause before it began, and the run is cancelled then', async () => {
    const { rig, undone, held } = await flight()
    await held.crash()
    rig.store.steer(held.runId, { kind: 'pause', reason: 'operator', note: null })
    await held.revive('resume')
    await held.cancel()
    await held.goOn('replayed')
    await rig.succeed('flight', 'flight 1')
    expect([undone, await held.status()]).toEqual([['flight 1'], 'cancelled'])
  })

  it('is not undone if it succeeds the next time, and so does the run', async () => {
    const { rig, undone, held } = await flight()
    await held.crash()
    await held.goOn()
    await rig.succeed('flight', 'flight 1')
    expect([undone, await held.status()]).toEqual([['never'], 'succeeded'])
  })

  it('is undone without another attempt if two processes died of the run', async () => {
    const { rig, undone, held } = await flight()
    await held.crash()
    await held.goOn()
    await held.crash()
    await held.cancel()
    await held.goOn()
    expect(rig.gates).toEqual([])
    expect([undone, await held.status()]).toEqual([[undefined], 'cancelled'])
  })

  it.each(['cancelled', 'failed'])(
    'that dies again while it is attempted for its undo is undone all the same, %s',
    async (end) => {
      const { rig, undone, held } = await flight()
      await held.crash()
      if (end === 'cancelled') await held.cancel()
      else rig.store.timeOut(held.runId)
      await held.goOn()
      for (let death = 0; death < 3; death += 1) {
        if (rig.gates.length === 0) break
        await held.crash()
        await held.goOn()
      }
      expect([undone, await held.status()]).toEqual([[undefined], end])
    },
  )

  it('is undone if the time of the run is over before anybody takes it, and the run fails', async () => {
    const { rig, undone, held } = await flight()
    await held.crash()
    rig.store.timeOut(held.runId)
    expect(await rig.run(held.runId)).toMatchObject({ status: 'pending', undo: 'none', timeoutAt: null })
    await held.goOn()
    await rig.succeed('flight', 'flight 1')
    expect(undone).toEqual(['flight 1'])
    expect((await held.story()).slice(2)).toEqual([
      'crashed',
      'failing',
      'failing',
      'begun flight',
      'step-succeeded flight',
      'undone flight',
      'failed',
    ])
    expect(await held.outcome()).toEqual({ status: 'failed', value: 'timed out' })
    expect((await held.revive('retry')).outcome).toBe('refused')
  })

  it('is undone without a result if its workflow fails after so many crashes', async () => {
    const { rig, undone, held } = await flight()
    rig.store.workflows = [{ type: 'flight', version: 1, maxCrashes: 3, onCrashes: 'fail' }]
    for (let crash = 0; crash < 3; crash += 1) {
      await held.crash()
      await held.goOn()
    }
    expect([undone, await held.status()]).toEqual([[undefined], 'failed'])
  })
})

describe('a run that ends after a crash, with nothing that could have been begun', () => {
  it('fails for its time, and can be retried: nothing was undone', async () => {
    const rig = new FunctionRig()
    const flow = workflow('plain', { retry: 'none' }, async (ctx) => ctx.step('a', rig.gated))
    const held = await (await rig.start(flow)).begin()
    await held.crash()
    rig.store.timeOut(held.runId)
    await held.goOn()
    expect(await held.story()).toEqual(['started', 'crashed', 'failing', 'failed'])
    expect(rig.gates).toEqual([])
    expect((await held.revive('retry')).outcome).toBe('done')
    await held.goOn()
    await rig.succeed('a', 1)
    expect(await held.outcome()).toEqual({ status: 'succeeded', value: 1 })
  })

  it('begins no step that comes after what was recorded since', async () => {
    const { rig, undone, held } = await flight()
    await held.crash()
    await held.goOn()
    await rig.succeed('flight', 'flight 1')
    undone.length = 0
    const other = new FunctionRig()
    const journal = (await held.journal()).slice(0, 4)
    expect(journal.map(({ kind }) => kind)).toEqual(['started', 'step-succeeded', 'crashed', 'step-succeeded'])
    const flow = workflow('flight', async (ctx) => {
      await ctx.step('look', () => 1)
      await ctx.step('flight', () => 1, { undo: (booked) => void undone.push(booked) })
      await ctx.step('never', () => void undone.push('never'), { undo: () => void undone.push('never') })
    })
    const found = await other.adopt(flow, journal)
    other.store.release(found.runId)
    await found.cancel()
    await found.goOn()
    expect([undone, await found.status()]).toEqual([['flight 1'], 'cancelled'])
  })

  it('is cancelled at once if nobody died of it: a run that nobody began begins nothing', async () => {
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

  it('attempts no more steps than may have been under way at once', async () => {
    const rig = new FunctionRig()
    const undone: unknown[] = []
    const flow = workflow('many', { parallel: 2, retry: 'none' }, async (ctx) => {
      await Promise.all([1, 2, 3, 4].map((n) => ctx.step(`s${n}`, rig.gated, { undo: () => void undone.push(n) })))
    })
    const held = await (await rig.start(flow)).begin()
    await held.crash()
    await held.cancel()
    await held.goOn()
    expect(rig.gates.map(({ step }) => step)).toEqual(['s1', 's2'])
    await rig.succeed('s1')
    await rig.succeed('s2')
    expect([undone, await held.status()]).toEqual([[2, 1], 'cancelled'])
  })
})
