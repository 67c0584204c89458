import { describe, expect, it } from 'vitest'
import type { Entry } from '../../../../src/core/model/entry.ts'
import { HoldfastError } from '../../../../src/core/errors/error.ts'
import type { Offload } from '../../../../src/core/payload/payload.ts'
import type { Transition } from '../../../../src/core/model/transition.ts'
import { workflow } from '../../../../src/functions/api/workflow.ts'
import { createHoldfast } from '../../../../src/holdfast.ts'
import { MemoryStore } from '../../../../src/stores/memory/store.ts'
import { FunctionRig, VirtualClock } from '../../../support/function-rig.ts'

const constant = { maxAttempts: 3, initial: 10, kind: 'constant', jitter: { mode: 'none' } } as const

/** Keeps large texts elsewhere, as long as it is up. */
function createOffload(): Offload & { isUp: boolean; puts: number; gets: number } {
  const texts: string[] = []
  const down = (): Error => new Error('The object store is down')
  return {
    thresholdBytes: 100,
    isUp: true,
    puts: 0,
    gets: 0,
    async put(text) {
      this.puts += 1
      if (!this.isUp) throw down()
      return String(texts.push(text) - 1)
    },
    async get(reference) {
      this.gets += 1
      const text = texts[Number(reference)]
      if (!this.isUp || text === undefined) throw down()
      return text
    },
  }
}

describe('commits', () => {
  it('the last step and the end of the run are one', async () => {
    const rig = new FunctionRig()
    const flow = workflow('test.tail', async (ctx) => {
      await ctx.step('a', () => 1)
      return ctx.step('b', rig.gated)
    })
    await (await rig.start(flow)).begin()
    await rig.succeed('b')
    expect(rig.commits.map(({ append }) => append.map(({ kind }) => kind))).toEqual([
      ['step-succeeded'],
      ['step-succeeded', 'succeeded'],
    ])
  })

  it('a run of one step costs two: its start with the lease, and its end', async () => {
    const clock = new VirtualClock()
    const calls: string[] = []
    class Counting extends MemoryStore {
      override start(...given: Parameters<MemoryStore['start']>): ReturnType<MemoryStore['start']> {
        calls.push('start')
        return super.start(...given)
      }
      override commit(transitions: readonly Transition[]): ReturnType<MemoryStore['commit']> {
        calls.push(...transitions.map(({ append }) => `commit ${append.map(({ kind }) => kind).join(' ')}`))
        return super.commit(transitions)
      }
    }
    const one = workflow('test.one', (ctx) => ctx.step('a', async () => 1))
    const rig = new FunctionRig()
    const { turns, random } = rig.ports
    const ports = { clock, turns, random }
    const holdfast = await createHoldfast({ store: new Counting({ clock }), workflows: [one], ports })
    await holdfast.work()
    await rig.quiet()
    const run = await holdfast.start(one)
    expect(await run.result()).toBe(1)
    expect(calls).toEqual(['start', 'commit step-succeeded succeeded'])
    await holdfast.close()
  })

  it('a worker that keeps no parked run in memory writes the same journal as one that keeps all', async () => {
    const journals: unknown[] = []
    for (const cachedRuns of [0, 10]) {
      const rig = new FunctionRig()
      let bodies = 0
      const flow = workflow('test.evicted', async (ctx) => {
        bodies += 1
        const id = ctx.uuid()
        await Promise.all([ctx.step('a', async () => id), ctx.sleep('1h')])
        await ctx.step('b', async () => 1)
        await ctx.sleep('1h')
        return id
      })
      const { clock, turns, random } = rig.ports
      const holdfast = await createHoldfast({
        store: new MemoryStore({ clock }),
        workflows: [flow],
        ports: { clock, turns, random },
      })
      await holdfast.work({ cachedRuns })
      const run = await holdfast.start(flow)
      await rig.quiet()
      await rig.pass(3_600_000)
      await rig.pass(3_600_000)
      expect(await run.status()).toBe('succeeded')
      expect(bodies).toBe(cachedRuns === 0 ? 3 : 1)
      journals.push((await holdfast.journal(run)).map(({ kind, name, data }) => [kind, name, data]))
      await holdfast.close()
    }
    expect(journals[1]).toEqual(journals[0])
  })

  it('a refused one abandons the frame: steps are aborted, nothing settles any more, and that is reported once', async () => {
    let refuses = false
    const rig = new FunctionRig({
      onCommit: () => {
        if (refuses) throw new HoldfastError('LEASE_LOST', 'Another session has it')
      },
    })
    const settled: string[] = []
    const flow = workflow('test.refused', async (ctx) => {
      const other = ctx.step('other', rig.gated)
      void other.then(() => settled.push('other'))
      await ctx.step('a', rig.gated)
      settled.push('a')
      await ctx.step('b', rig.gated)
      settled.push('b')
    })
    const held = await (await rig.start(flow)).begin()
    const other = rig.gate('other')
    refuses = true
    await rig.succeed('a')
    expect(held.departure).toMatchObject({ kind: 'lost', reason: { code: 'LEASE_LOST' } })
    expect(other.tools.abortSignal.reason).toMatchObject({ code: 'LEASE_LOST' })
    other.succeed()
    await rig.quiet()
    expect(settled).toEqual(['a'])
    expect(rig.gates).toEqual([])
    expect(await held.story()).toEqual(['started'])
  })

  it('calls of a body that was abandoned never settle, and are warned of once', async () => {
    const rig = new FunctionRig()
    const settled: string[] = []
    let goOn: () => void = () => undefined
    const flow = workflow('test.abandoned', async (ctx) => {
      void ctx.step('a', rig.gated)
      await new Promise<void>((resolve) => (goOn = resolve))
      ctx.now()
      ctx.log('nobody hears this')
      void ctx.sleep(1).then(() => settled.push('sleep'))
      void ctx.withResource(
        () => settled.push('acquired'),
        () => undefined,
        async () => undefined,
      )
      await ctx.step('b', () => settled.push('b'))
      settled.push('after')
    })
    const held = await (await rig.start(flow)).begin()
    held.frame.abort(new Error('The worker is shutting down'))
    await rig.quiet()
    expect(held.departure).toMatchObject({ kind: 'lost' })
    goOn()
    await rig.quiet()
    await rig.pass(60_000)
    expect(settled).toEqual([])
    expect(rig.lines.map(({ level }) => level)).toEqual(['warn'])
    expect(rig.commits).toEqual([])
  })
})

describe('payloads of a journal', () => {
  it('one that cannot be read pauses its own run, runs nothing again and harms no other', async () => {
    const rig = new FunctionRig()
    let executed = 0
    const flow = workflow('test.corrupt', { retry: constant }, async (ctx) => {
      await ctx.step('a', () => (executed += 1))
      await ctx.sleep('1 day')
      return 'fine'
    })
    const asleep = await (await rig.start(flow)).begin()
    const journal = await asleep.journal()
    const spoiled = journal.map((entry) => (entry.name === 'a' ? ({ ...entry, data: '{"$date' } as Entry) : entry))
    const other = new FunctionRig()
    const corrupt = await (await other.adopt(flow, spoiled)).begin()
    const sound = await (await other.adopt(flow, journal)).begin()
    await sound.goOn()
    expect(await corrupt.status()).toBe('paused')
    expect(await sound.outcome()).toEqual({ status: 'succeeded', value: 'fine' })
    expect(executed).toBe(1)
  })

  it('large ones are kept elsewhere and come back on replay, in the order of the journal', async () => {
    const offload = createOffload()
    const rig = new FunctionRig({ offload })
    const orders: string[][] = []
    const flow = workflow('test.large', async (ctx) => {
      const order: string[] = []
      orders.push(order)
      const large = ctx.step('large', rig.gated).then((value) => void order.push(`large ${String(value).length}`))
      const small = ctx.step('small', rig.gated).then(() => void order.push('small'))
      await Promise.all([large, small])
      await ctx.sleep('1 day')
    })
    const held = await (await rig.start(flow)).begin()
    await rig.succeed('large', 'x'.repeat(1_000))
    await rig.succeed('small', 1)
    await held.goOn('replayed')
    expect((await rig.run(held.runId)).status).toBe('succeeded')
    expect(orders).toEqual([
      ['large 1000', 'small'],
      ['large 1000', 'small'],
    ])
    expect((await held.journal()).find(({ name }) => name === 'large')?.data).toBe('offload:0')
  })

  it('a place for large ones that fails and recovers delays the run and loses nothing', async () => {
    const offload = createOffload()
    const rig = new FunctionRig({ offload })
    let executed = 0
    const flow = workflow('test.outage', async (ctx) => {
      const large = await ctx.step('large', () => ((executed += 1), 'x'.repeat(1_000)))
      await ctx.step('next', rig.gated)
      await ctx.sleep('1 day')
      return large.length
    })
    offload.isUp = false
    const held = await (await rig.start(flow)).begin()
    await rig.pass(5_000)
    expect(await held.story()).toEqual(['started'])
    expect(rig.gates).toEqual([])
    expect(offload.puts).toBeGreaterThan(3)
    offload.isUp = true
    await rig.pass(5_000)
    expect(await held.story()).toEqual(['started', 'step-succeeded large'])
    await rig.succeed('next')
    offload.isUp = false
    await held.goOn('replayed')
    await rig.pass(5_000)
    expect((await rig.run(held.runId)).status).toBe('running')
    offload.isUp = true
    await rig.pass(5_000)
    expect(await held.outcome()).toEqual({ status: 'succeeded', value: 1_000 })
    expect(executed).toBe(1)
  })
})
