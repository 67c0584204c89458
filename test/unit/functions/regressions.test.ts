// Each of these went wrong once. The title says what must hold.

import { describe, expect, it } from 'vitest'
import type { Offload } from '../../../src/core/payload/payload.ts'
import { workflow } from '../../../src/functions/api/workflow.ts'
import { FunctionRig, unhandledIn } from '../../support/function-rig.ts'

function createOffload(thresholdBytes: number): Offload & { puts: number; put(text: string): Promise<string> } {
  const texts: string[] = []
  return {
    thresholdBytes,
    puts: 0,
    put: async (text) => String(texts.push(text) - 1),
    get: async (reference) => texts[Number(reference)] ?? '',
  }
}

describe('what once went wrong', () => {
  it('a run whose output is offloaded ends', async () => {
    const rig = new FunctionRig({ offload: createOffload(100) })
    const flow = workflow('test.large-output', async (ctx) => {
      await ctx.step('a', () => 1)
      return 'x'.repeat(500)
    })
    const held = await (await rig.start(flow)).begin()
    expect(await held.outcome()).toEqual({ status: 'succeeded', value: 'x'.repeat(500) })
    expect(rig.commits).toHaveLength(1)
  })

  it('a retried step that throws at once beside a long sleep does not park its body before the body has seen it', async () => {
    const rig = new FunctionRig()
    const flow = workflow('test.throws-at-once', async (ctx) => {
      const failing = ctx.step(
        'a',
        () => {
          throw new Error('no')
        },
        { retry: { maxAttempts: 2, initial: 100, jitter: { mode: 'none' } } },
      )
      const first = await Promise.race([failing.catch(() => 'caught'), ctx.sleep('30 days')])
      await ctx.step('after', () => 1)
      return first
    })
    const held = await (await rig.start(flow)).begin()
    await rig.pass(100)
    expect(await held.outcome()).toEqual({ status: 'succeeded', value: 'caught' })
  })

  it('a step that fails before it is awaited does not end the process', async () => {
    const rig = new FunctionRig()
    const flow = workflow('test.unhandled', { retry: 'none' }, async (ctx) => {
      const a = ctx.step('a', rig.gated)
      const b = ctx.step('b', rig.gated)
      const c = ctx.branch('c', (inner) => inner.step('c', rig.gated))
      const d = ctx.withResource(
        () => 1,
        () => undefined,
        () => ctx.step('d', rig.gated),
      )
      await a
      const results = await Promise.allSettled([b, c, d])
      return results.map(({ status }) => status)
    })
    const unhandled = await unhandledIn(async () => {
      const held = await (await rig.start(flow)).begin()
      for (const step of ['b', 'c/c', 'd']) await rig.fail(step, new Error(step))
      await rig.succeed('a')
      expect(await held.outcome()).toEqual({ status: 'succeeded', value: ['rejected', 'rejected', 'rejected'] })
    })
    expect(unhandled).toEqual([])
  })

  it('an outage of the offload port when the run is lost does not end the process', async () => {
    let puts = 0
    const put = (): Promise<string> => {
      puts += 1
      return Promise.reject(new Error('down'))
    }
    const rig = new FunctionRig({ offload: { thresholdBytes: 50, put, get: put } })
    const flow = workflow('test.outage', (ctx) => ctx.step('a', () => 'x'.repeat(100)))
    const unhandled = await unhandledIn(async () => {
      const held = await (await rig.start(flow)).begin()
      held.frame.abort(new Error('The worker is shutting down'))
      puts = 0
      await rig.pass(10_000)
    })
    expect({ puts, unhandled }).toEqual({ puts: 0, unhandled: [] })
  })

  it('drift is found also when a wait of the body is overdue, and does not spin', async () => {
    const rig = new FunctionRig()
    const before = workflow('test.overdue', async (ctx) => {
      await ctx.step('a', () => 1)
      await ctx.sleep('1 day')
    })
    const after = workflow('test.overdue', (ctx) => ctx.sleep('1 day').then(() => 'without a'))
    const asleep = await (await rig.start(before)).begin()
    const other = new FunctionRig()
    const held = await other.adopt(after, await asleep.journal())
    other.clock.moveTo(other.clock.now() + 2 * 86_400_000)
    await held.begin()
    for (let timer = 0; timer < 20 && other.clock.nextAt !== null; timer += 1) {
      other.clock.moveTo(other.clock.nextAt)
      await other.quiet()
    }
    expect((await other.run(held.runId)).status).toBe('paused')
  })

  it('code that drifted runs no new step and leaves the journal as the old version needs it', async () => {
    let executed = 0
    const old = workflow('test.back', async (ctx) => {
      await ctx.step('a', () => 1)
      await ctx.step('b', () => 1)
      await ctx.step('c', () => 1)
      return 'old'
    })
    const changed = workflow('test.back', async (ctx) => {
      await ctx.step('a', () => 1)
      await ctx.step('added', () => (executed += 1))
      await ctx.step('b', () => 1)
    })
    const first = await (await new FunctionRig().start(old)).begin()
    const other = new FunctionRig()
    const drifted = await (await other.adopt(changed, (await first.journal()).slice(0, 3))).begin()
    await other.pass(6_000)
    const back = new FunctionRig()
    const again = await (await back.adopt(old, await drifted.journal())).begin()
    await back.pass(6_000)
    expect(await again.outcome()).toEqual({ status: 'succeeded', value: 'old' })
    expect(executed).toBe(0)
  })

  it('a wait of code that drifted does not make the old version wake early', async () => {
    const old = workflow('test.early', async (ctx) => {
      await ctx.step('a', () => 1)
      await ctx.step('b', () => 1)
      await ctx.step('c', () => 1)
      await ctx.sleep('7 days')
    })
    const changed = workflow('test.early', async (ctx) => {
      await ctx.step('a', () => 1)
      await ctx.sleep('1h')
      await ctx.step('b', () => 1)
    })
    const first = await (await new FunctionRig().start(old)).begin()
    const other = new FunctionRig()
    const drifted = await (await other.adopt(changed, (await first.journal()).slice(0, 3))).begin()
    await other.pass(6_000)
    expect((await other.run(drifted.runId)).status).toBe('paused')
    const back = new FunctionRig()
    const again = await (await back.adopt(old, await drifted.journal())).begin()
    expect((await back.run(again.runId)).due).toBe(back.clock.now() + 7 * 86_400_000)
  })

  it('a resource that is acquired when its run is gone already is released, and not used', async () => {
    for (const ends of ['lost', 'returned']) {
      const rig = new FunctionRig()
      const story: string[] = []
      let acquired: () => void = () => undefined
      let end: () => void = () => undefined
      const flow = workflow('test.late', async (ctx) => {
        void ctx.withResource(
          () => new Promise<void>((resolve) => (acquired = resolve)),
          () => story.push('released'),
          async () => story.push('used'),
        )
        await new Promise<void>((resolve) => (end = resolve))
      })
      const held = await (await rig.start(flow)).begin()
      if (ends === 'lost') held.frame.abort(new Error('gone'))
      else end()
      await rig.quiet()
      acquired()
      await rig.quiet()
      expect(story).toEqual(['released'])
    }
  })

  it('values of the body come back also when every payload is offloaded', async () => {
    const rig = new FunctionRig({ offload: createOffload(0) })
    const flow = workflow('test.all-offloaded', async (ctx) => {
      const seen = [ctx.uuid(), ctx.now(), ctx.random()]
      await ctx.sleep('1 day')
      return seen.map((value) => typeof value)
    })
    const held = await (await rig.start(flow)).begin()
    await held.goOn('replayed')
    expect(await held.outcome()).toEqual({ status: 'succeeded', value: ['string', 'object', 'number'] })
  })

  it('a codec that cannot read what it wrote fails the step, not the process', async () => {
    const encode = (value: unknown): string => JSON.stringify(value) ?? 'null'
    const decode = (text: string): unknown => {
      if (text.includes('poison')) throw new Error('unreadable')
      return JSON.parse(text)
    }
    const rig = new FunctionRig({ codec: { encode, decode } })
    const flow = workflow('test.codec', (ctx) => ctx.step('a', async () => ({ poison: 1 })))
    const unhandled = await unhandledIn(async () => {
      const held = await (await rig.start(flow)).begin()
      expect((await rig.run(held.runId)).status).toBe('failed')
    })
    expect(unhandled).toEqual([])
  })

  it('nothing is committed after an abort, also when an offload ends later', async () => {
    let finish: (reference: string) => void = () => undefined
    const put = (): Promise<string> => new Promise((resolve) => (finish = resolve))
    const rig = new FunctionRig({ offload: { thresholdBytes: 50, put, get: put } })
    const held = await (await rig.start(workflow('test.abort', () => 'x'.repeat(100)))).begin()
    held.frame.abort(new Error('The worker is shutting down'))
    await rig.quiet()
    finish('0')
    await rig.quiet()
    expect(rig.commits).toEqual([])
  })

  it('a sleep counts from when it was asked for, also while a resource takes its time', async () => {
    const rig = new FunctionRig()
    let acquired: () => void = () => undefined
    const flow = workflow('test.slow-resource', (ctx) =>
      Promise.all([
        ctx.withResource(
          () => new Promise<void>((resolve) => (acquired = resolve)),
          () => undefined,
          async () => 1,
        ),
        ctx.sleep('5s'),
      ]),
    )
    const held = await (await rig.start(flow)).begin()
    await rig.pass(6_000)
    acquired()
    await rig.quiet()
    expect((await rig.run(held.runId)).status).toBe('succeeded')
  })

  it('a step begins only when everything that its closure can have seen is durable', async () => {
    const rig = new FunctionRig()
    let release: () => void = () => undefined
    let holdsNext = false
    const commit = rig.store.commit.bind(rig.store)
    rig.store.commit = async (transitions) => {
      if (holdsNext) {
        holdsNext = false
        await new Promise<void>((resolve) => (release = resolve))
      }
      return commit(transitions)
    }
    const used: string[] = []
    let durableThen = 0
    let runId = ''
    const flow = workflow('test.closure', async (ctx) => {
      let key = ''
      const other = ctx.step('other', rig.gated).then(() => (key = ctx.uuid()))
      await ctx.step('first', rig.gated)
      holdsNext = true
      const last = ctx.step('last', () => {
        used.push(key)
        durableThen = rig.committedSeq(runId)
      })
      await Promise.all([last, other])
    })
    const held = await (await rig.start(flow)).begin()
    runId = held.runId
    await rig.succeed('first')
    await rig.succeed('other')
    release()
    await rig.quiet()
    expect(used[0]).not.toBe('')
    expect(durableThen).toBe((await held.journal()).find(({ name }) => name === 'uuid')?.seq)
  })

  it('a step that threw something other than an object fails its run at once, as any other', async () => {
    const rig = new FunctionRig()
    const flow = workflow('test.text', { retry: { maxAttempts: 3 } }, (ctx) =>
      // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- this is what the test is about
      ctx.step('a', () => Promise.reject('text'), { retry: 'none' }),
    )
    const held = await (await rig.start(flow)).begin()
    expect(await held.story()).toEqual(['started', 'step-failed a', 'failed'])
  })

  it('a value that cannot be read any more pauses the run at once, also if the body catches that', async () => {
    const flow = workflow('test.unreadable', { retry: { maxAttempts: 3 } }, async (ctx) => {
      try {
        ctx.uuid()
      } catch {}
      await ctx.sleep('1 day')
      return 'went on with another'
    })
    const first = await (await new FunctionRig().start(flow)).begin()
    const journal = (await first.journal()).map((entry) =>
      entry.kind === 'recorded' ? { ...entry, data: '{' } : entry,
    )
    const rig = new FunctionRig()
    const held = await (await rig.adopt(flow, journal)).begin()
    expect((await held.journal()).at(-1)).toMatchObject({ kind: 'paused', meta: { reason: 'unreadable', key: null } })
  })
})
