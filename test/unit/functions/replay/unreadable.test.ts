// A payload that cannot be read pauses its run where it is, in whatever it was about to do, and costs it nothing: once the key
// is back it goes on, no step is repeated, and everything that has to be undone is.

import { describe, expect, it } from 'vitest'
import { workflow } from '../../../../src/functions/api/workflow.ts'
import type { Entry } from '../../../../src/core/model/entry.ts'
import { FunctionRig, type Held } from '../../../support/function-rig.ts'
import { lockableCodec } from '../../../support/lockable-codec.ts'

const once = { retry: { maxAttempts: 1 } } as const

async function pauseOf(held: Held): Promise<Extract<Entry, { kind: 'paused' }>['meta'] | undefined> {
  const last = (await held.journal()).at(-1)
  return last?.kind === 'paused' ? last.meta : undefined
}

/** A run of one step that can be undone, which sleeps and then throws; what its functions did. */
function trip() {
  const done: string[] = []
  const flow = workflow('test.trip', once, async (ctx, input: string) => {
    await ctx.step('book', () => (done.push(`book ${input}`), 'b-1'), { undo: (id) => done.push(`unbook ${id}`) })
    await ctx.sleep('1 day')
    throw new Error('No seat')
  })
  return { done, flow }
}

describe('a payload that cannot be read pauses its run', () => {
  it('when it is the input, and says which key is missing', async () => {
    const codec = lockableCodec('a')
    const rig = new FunctionRig({ codec })
    const flow = workflow('test.input', async (_ctx, input: string) => input)
    const held = await rig.start(flow, 'hello')
    codec.present.clear()
    await held.begin()
    expect(await held.status()).toBe('paused')
    const pause = await pauseOf(held)
    expect(pause).toMatchObject({ reason: 'unreadable', entry: { seq: 1, name: null }, key: 'a' })
    expect(JSON.stringify(pause)).toMatch(/The payload of entry 1 cannot be read: .*Give the workers the key/)
    codec.present.add('a')
    await held.revive('resume')
    await held.goOn()
    expect(await held.outcome()).toEqual({ status: 'succeeded', value: 'hello' })
  })

  it('when it is the result of a step that is replayed: nothing is undone, and the step is not repeated', async () => {
    const codec = lockableCodec('a', 'b')
    const rig = new FunctionRig({ codec })
    const { done, flow } = trip()
    codec.current = 'a'
    const held = await rig.start(flow, 'Ada')
    codec.current = 'b'
    await held.begin()
    codec.present.delete('b')
    await held.goOn('replayed')
    expect(await held.status()).toBe('paused')
    expect(await pauseOf(held)).toMatchObject({ reason: 'unreadable', key: 'b', entry: { name: 'book' } })
    expect(done).toEqual(['book Ada'])
    codec.present.add('b')
    await held.revive('resume')
    await held.goOn()
    expect(await held.outcome()).toMatchObject({ status: 'failed', value: { message: 'No seat' } })
    expect(done).toEqual(['book Ada', 'unbook b-1'])
    expect((await held.journal()).at(-1)?.meta).toBeNull()
  })

  it('when it is a recorded value, whatever the body makes of that', async () => {
    const codec = lockableCodec('a', 'b')
    const rig = new FunctionRig({ codec })
    const flow = workflow('test.recorded', once, async (ctx) => {
      let id = 'another'
      try {
        id = ctx.uuid()
      } catch {}
      await ctx.sleep('1 day')
      return id
    })
    codec.current = 'a'
    const held = await rig.start(flow)
    codec.current = 'b'
    await held.begin()
    codec.present.delete('b')
    await held.goOn('replayed')
    expect(await held.status()).toBe('paused')
    codec.present.add('b')
    await held.revive('resume')
    await held.goOn()
    const recorded = (await held.journal()).find(({ kind }) => kind === 'recorded')
    expect(await held.outcome()).toMatchObject({ status: 'succeeded' })
    expect((await held.journal()).at(-1)?.data).toBe(recorded?.data)
  })

  it('when it is the input with which a run begins anew', async () => {
    const codec = lockableCodec('a', 'b')
    const rig = new FunctionRig({ codec })
    const flow = workflow('test.anew', once, async (ctx, round: number): Promise<number> => {
      if (round === 1) return round
      codec.current = 'b'
      return ctx.continueAsNew(1)
    })
    codec.current = 'a'
    const held = await (await rig.start(flow, 0)).begin()
    codec.present.delete('b')
    await held.continueWith()
    expect(await pauseOf(held)).toMatchObject({ reason: 'unreadable', key: 'b', entry: { seq: 2 } })
    codec.present.add('b')
    await held.revive('resume')
    await held.goOn()
    expect(await held.outcome()).toEqual({ status: 'succeeded', value: 1 })
  })

  it('when a run that fails is replayed to learn how its steps are undone: it stays due, and is done later', async () => {
    const codec = lockableCodec('a', 'b')
    const rig = new FunctionRig({ codec })
    const done: string[] = []
    const flow = workflow('test.gather', once, async (ctx) => {
      await ctx.step('book', () => 'b-1', { undo: (id) => done.push(`unbook ${id}`) })
      await ctx.step('pay', () => 'p-1', { undo: (_, tools) => rig.gated(tools) })
      throw new Error('No seat')
    })
    codec.current = 'a'
    const held = await rig.start(flow)
    codec.current = 'b'
    await held.begin()
    await held.crash()
    codec.present.delete('b')
    await held.goOn('replayed')
    expect(await held.status()).toBe('paused')
    expect(await pauseOf(held)).toMatchObject({ reason: 'unreadable', key: 'b' })
    expect(done).toEqual([])
    codec.present.add('b')
    await held.revive('resume')
    await held.goOn()
    await rig.succeed('undo pay')
    expect(await held.outcome()).toMatchObject({ status: 'failed', value: { message: 'No seat' } })
    expect(done).toEqual(['unbook b-1'])
    expect((await held.journal()).at(-1)?.meta).toBeNull()
  })

  it('when the result of a step cannot be read while others are undone: that undo is not given up', async () => {
    const codec = lockableCodec('a', 'b')
    const rig = new FunctionRig({ codec })
    const done: string[] = []
    const flow = workflow('test.unwind', once, async (ctx) => {
      codec.current = 'a'
      await ctx.step('book', () => 'b-1', { undo: (id) => done.push(`unbook ${id}`) })
      codec.current = 'b'
      await ctx.step('pay', () => 'p-1', { undo: (_, tools) => rig.gated(tools) })
      throw new Error('No seat')
    })
    codec.current = 'b'
    const held = await (await rig.start(flow)).begin()
    codec.present.delete('a')
    await rig.succeed('undo pay')
    expect(await held.story()).toEqual([
      'started',
      'begun book',
      'step-succeeded book',
      'begun pay',
      'step-succeeded pay',
      'failing',
      'undone pay',
      'paused',
    ])
    expect(await pauseOf(held)).toMatchObject({ key: 'a', entry: { seq: 3, name: 'book' } })
    codec.present.add('a')
    await held.revive('resume')
    await held.goOn()
    expect(done).toEqual(['unbook b-1'])
    expect((await held.story()).slice(-2)).toEqual(['undone book', 'failed'])
    expect((await held.journal()).at(-1)?.meta).toBeNull()
  })

  it('when it is the error of a run that fails, which would be lost otherwise', async () => {
    const codec = lockableCodec('a', 'b')
    const rig = new FunctionRig({ codec })
    const flow = workflow('test.error', once, async (ctx) => {
      await ctx.step('book', () => 'b-1', { undo: (_, tools) => rig.gated(tools) })
      codec.current = 'b'
      throw new Error('No seat')
    })
    codec.current = 'a'
    const held = await (await rig.start(flow)).begin()
    await held.crash()
    codec.present.delete('b')
    await held.goOn('replayed')
    expect(await pauseOf(held)).toMatchObject({ reason: 'unreadable', key: 'b' })
    codec.present.add('b')
    await held.revive('resume')
    await held.goOn()
    await rig.succeed('undo book')
    expect(await held.outcome()).toMatchObject({ status: 'failed', value: { message: 'No seat' } })
  })
})

describe('a run that is being cancelled', () => {
  it('stays so when it cannot be read, and is looked at later each time: everything is undone in the end', async () => {
    const codec = lockableCodec('a')
    const rig = new FunctionRig({ codec })
    const { done, flow } = trip()
    const held = await (await rig.start(flow, 'Ada')).begin()
    await held.cancel('no more')
    codec.present.clear()
    const delays: number[] = []
    for (let times = 0; times < 3; times += 1) {
      await held.goOn('replayed')
      expect(await held.status()).toBe('cancelling')
      const last = (await held.journal()).at(-1)
      if (last?.kind === 'attempt-failed') delays.push(last.meta.delayMs)
    }
    expect(delays).toEqual([5_000, 10_000, 20_000])
    expect(done).toEqual(['book Ada'])
    codec.present.add('a')
    await held.goOn('replayed')
    expect(await held.status()).toBe('cancelled')
    expect((await held.journal()).at(-1)?.meta).toEqual({ reason: 'no more', notUndone: [] })
    expect(done).toEqual(['book Ada', 'unbook b-1'])
  })

  it('when its holder hears of that with the answer to the pause, is not unwound by a body that was shown half', async () => {
    const codec = lockableCodec('a', 'b')
    const rig = new FunctionRig({ codec })
    const { done, flow } = trip()
    codec.current = 'a'
    const held = await rig.start(flow, 'Ada')
    codec.current = 'b'
    await held.begin()
    codec.present.delete('b')
    rig.clock.moveTo((await rig.run(held.runId)).due ?? 0)
    const claim = rig.claim(held.runId)
    held.frame = flow.open(rig.host, claim)
    await held.cancel('no more', 'later')
    await held.begin()
    expect(await held.status()).toBe('cancelling')
    expect((await held.story()).at(-1)).toBe('attempt-failed')
    codec.present.add('b')
    await held.goOn('replayed')
    expect(await held.status()).toBe('cancelled')
    expect(done).toEqual(['book Ada', 'unbook b-1'])
  })
})
