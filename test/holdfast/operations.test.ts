// Operations are data: what can be asked of Holdfast is a value that can be looked at before anything happens, and a batch of
// them ends as they would one by one.

import { describe, expect, it, test } from 'vitest'
import { operation, topic, workflow, type Holdfast, type Operation, type Store } from 'holdfast'
import { createVirtualClock } from 'holdfast/testing'
import { RunHandle } from '../../src/client/run-handle.ts'
import { MemoryStore } from '../../src/stores/memory/store.ts'
import { messagesOf, takeUp } from './by-hand.ts'
import { gate, until } from './gate.ts'
import { memoryStore, open, openWorking } from './open.ts'
import { changed } from './virtual-world.ts'

const order = workflow('order', (_ctx, id: string) => id)
const news = topic<string>('news')
const nobody = '01900000-0000-7000-8000-000000000000'
const newId = '01900000-0000-7000-8000-00000000000a'

const withoutValue = { kind: 'signal', to: nobody, name: 'x' } as const

/** A store that says what was asked of it to change something. */
function watched(store: Store) {
  const calls: { readonly method: string; readonly count: number }[] = []
  const recorded =
    <Asked, Answer>(method: string, call: (asked: readonly Asked[]) => Promise<Answer>) =>
    (asked: readonly Asked[]): Promise<Answer> => {
      calls.push({ method, count: asked.length })
      return call(asked)
    }
  const seen = changed(store, {
    start: recorded('start', (runs: Parameters<Store['start']>[0]) => store.start(runs)),
    deliver: recorded('deliver', (messages: Parameters<Store['deliver']>[0]) => store.deliver(messages)),
    control: recorded('control', (requests: Parameters<Store['control']>[0]) => store.control(requests)),
  })
  return { store: seen, calls }
}

describe('an operation', () => {
  test('is plain data, equal to what means the same, and as good after a journey as JSON (WC-E2, WC-T2)', async () => {
    const holdfast = await open({ workflows: [order] })
    const run = await holdfast.start(order, 'a')
    const made = operation.signal(run, 'paid', { amount: 3 }, { id: 's-1' })
    expect(made).toEqual({
      kind: 'signal',
      to: run.id,
      name: 'paid',
      payload: { amount: 3 },
      options: { id: 's-1' },
    })
    const travelled = JSON.parse(JSON.stringify(made)) as typeof made
    expect(await holdfast.submit(travelled)).toEqual({ outcome: 'queued', runId: run.id, signalId: 's-1' })
    expect(operation.cancel(run)).toEqual({ kind: 'cancel', run: run.id })
    expect(operation.start('order', 'b', { key: 'b' })).toEqual({
      kind: 'start',
      workflow: 'order',
      input: 'b',
      options: { key: 'b' },
    })
  })

  test('does nothing before it is submitted (WC-T2)', async () => {
    const { store, calls } = watched(memoryStore())
    const holdfast = await open({ store, workflows: [order] })
    expect([operation.start(order, 'a'), operation.broadcast(news, 'x'), operation.complete('t')]).toHaveLength(3)
    expect(calls).toEqual([])
    expect(await holdfast.count()).toMatchObject({ count: 0 })
  })

  type OperationCase = readonly [
    kind: string,
    call: (at: Holdfast, id: string) => Promise<unknown>,
    make: (id: string) => Operation,
  ]
  const cases: readonly OperationCase[] = [
    ['signal', (at, id) => at.signal(id, 'x', 1, { id: 's' }), (id) => operation.signal(id, 'x', 1, { id: 's' })],
    ['broadcast', (at) => at.broadcast(news, 'x', { id: 'b' }), () => operation.broadcast(news, 'x', { id: 'b' })],
    [
      'sendOrStart',
      (at) => at.sendOrStart(order, 'a', 'x', 1, 'a', { id: 's' }),
      () => operation.sendOrStart(order, 'a', 'x', 1, 'a', { id: 's' }),
    ],
    ['complete', (at) => at.complete('none', 1), () => operation.complete('none', 1)],
    ['pause', (at, id) => at.pause(id, { note: 'n' }), (id) => operation.pause(id, { note: 'n' })],
    ['resume', (at, id) => at.resume(id), (id) => operation.resume(id)],
    ['retry', (at, id) => at.retry(id), (id) => operation.retry(id)],
    ['remove', (at, id) => at.remove(id, { reason: 'r' }), (id) => operation.remove(id, { reason: 'r' })],
    ['cancel', (at, id) => at.cancel(id, { reason: 'r' }), (id) => operation.cancel(id, { reason: 'r' })],
    ['start', (at) => at.start(order, 'b', { id: newId }), () => operation.start(order, 'b', { id: newId })],
  ]

  it.each(cases)('%s is what the method of its name submits, and nothing else (WC-E7b)', async (_, call, make) => {
    const traceOf = async (ask: (at: Holdfast, id: string) => Promise<unknown>): Promise<unknown> => {
      const { store, calls } = watched(new MemoryStore({ clock: createVirtualClock() }))
      const holdfast = await open({ store, workflows: [order] })
      const { id } = await holdfast.start(order, 'a', { id: '01900000-0000-7000-8000-00000000000b', key: 'a' })
      const answer = await ask(holdfast, id).then(
        (value: unknown) => (value instanceof RunHandle ? { id: value.id, created: value.created } : value),
        (error: unknown) => (error as { readonly code: string }).code,
      )
      return { answer, calls, run: await holdfast.get(id), journal: await holdfast.journal(id) }
    }
    expect(await traceOf(call)).toEqual(await traceOf((at, id) => at.submit(make(id))))
  })

  test('that is none is refused, with what was probably meant', async () => {
    const holdfast = await open({ workflows: [order] })
    await expect(holdfast.submit({ ...withoutValue, kind: 'singal' } as never)).rejects.toThrow(
      'Did you mean "signal"?',
    )
    await expect(holdfast.submit({ ...withoutValue, too: 1 } as never)).rejects.toMatchObject({
      code: 'INVALID_OPTION',
    })
    await expect(holdfast.submit(null as never)).rejects.toMatchObject({ code: 'INVALID_OPTION' })
    await expect(holdfast.submitBatch({} as never)).rejects.toMatchObject({ code: 'INVALID_OPTION' })
  })
})

describe('a batch of operations', () => {
  test('answers each in its place, and what fails harms no other (WC-E1, WC-C6)', async () => {
    const holdfast = await open({ workflows: [order] })
    const run = await holdfast.start(order, 'a', { key: 'a' })
    const answers = await holdfast.submitBatch([
      operation.signal(run, 'x', 1, { id: 's-1' }),
      operation.signal(run, '', 2),
      operation.start(order, 'b', { key: 'a' }),
      operation.start('no such', 'b'),
      operation.start(order, 'b', { key: 'b' }),
      operation.pause(run),
      operation.retry(nobody),
      { kind: 'nothing' } as never,
      operation.cancel(run),
      operation.signal(run, 'x', 3),
    ])
    expect(answers).toMatchObject([
      { ok: true, value: { outcome: 'queued', signalId: 's-1' } },
      { ok: false, error: { code: 'INVALID_NAME' } },
      { ok: false, error: { code: 'RUN_EXISTS' } },
      { ok: false, error: { code: 'WORKFLOW_UNKNOWN' } },
      { ok: true, value: { created: true, key: 'b' } },
      { ok: true, value: { outcome: 'paused' } },
      { ok: false, error: { code: 'RUN_NOT_FOUND' } },
      { ok: false, error: { code: 'INVALID_OPTION' } },
      { ok: true, value: { outcome: 'cancelled' } },
      { ok: true, value: { outcome: 'target-terminated', status: 'cancelled' } },
    ])
  })

  test('sends what stands together as one delivery, and starts it as one insert (WC-E7)', async () => {
    const { store, calls } = watched(memoryStore())
    const holdfast = await open({ store, workflows: [order] })
    const run = await holdfast.start(order, 'a')
    calls.length = 0
    await holdfast.submitBatch([
      operation.signal(run, 'a'),
      operation.broadcast(news, 'b'),
      operation.signal(run, 'c'),
      operation.start(order, 'd'),
      operation.start(order, 'e'),
      operation.pause(run),
      operation.signal(run, 'f'),
    ])
    expect(calls).toEqual([
      { method: 'deliver', count: 3 },
      { method: 'start', count: 2 },
      { method: 'control', count: 1 },
      { method: 'deliver', count: 1 },
    ])
  })

  test('of signals to one run that waits delivers the first, and has the rest ready in its mailbox (WC-E7)', async () => {
    const store = memoryStore()
    const holdfast = await open({ store, workflows: [order] })
    const run = await holdfast.start(order, 'a')
    await (await takeUp(store, 'order')).park()
    const answers = await holdfast.submitBatch([1, 2, 3].map((n) => operation.signal(run, 'x', n)))
    expect(answers[0]).toEqual({ ok: true, value: { outcome: 'delivered', runId: run.id } })
    expect(answers.every(({ ok }) => ok)).toBe(true)
    expect((await messagesOf(store, run)).map(({ data }) => data)).toEqual(['1', '2', '3'])
  })

  test('of starts that want the same ends as one by one: the first has it (WC-C6)', async () => {
    const holdfast = await open({ workflows: [order] })
    const [first, second, third] = await holdfast.submitBatch([
      operation.start(order, 'a', { key: 'k' }),
      operation.start(order, 'b', { key: 'k' }),
      operation.start(order, 'a', { key: 'k', onConflict: 'return' }),
    ])
    expect([first.ok, second.ok, third.ok]).toEqual([true, false, true])
    expect(await holdfast.count()).toMatchObject({ count: 1 })
  })

  test('leaves the same behind as its operations one by one (WC-C6)', async () => {
    const left = async (perform: (holdfast: Holdfast, all: readonly Operation[]) => Promise<unknown>) => {
      const store = memoryStore()
      const holdfast = await open({ store, workflows: [order] })
      const ids = ['1', '2', '3'].map((n) => `01900000-0000-7000-8000-00000000000${n}`)
      const [a = '', b = '', c = ''] = ids
      await perform(holdfast, [
        operation.start(order, 'a', { id: a, key: 'k' }),
        operation.start(order, 'b', { id: b, key: 'k' }),
        operation.signal({ type: 'order', key: 'k' }, 'x', 1, { id: 's1' }),
        operation.cancel(a),
        operation.signal(a, 'x', 2, { id: 's2' }),
        operation.start(order, 'b', { id: b, key: 'k' }),
        operation.signal({ type: 'order', key: 'k' }, 'x', 3, { id: 's3' }),
        operation.sendOrStart(order, 'k', 'x', 4, 'a', { id: 's4' }),
        operation.start(order, 'c', { id: c }),
        operation.pause(c),
        operation.remove(b),
      ])
      return Promise.all(
        ids.map(async (id) => ({
          kinds: (await holdfast.journal(id)).map(({ kind }) => kind),
          status: (await holdfast.get(id)).status,
          messages: (await messagesOf(store, { id })).map((message) => message.id),
        })),
      )
    }
    const together = await left((holdfast, all) => holdfast.submitBatch(all))
    const apart = await left(async (holdfast, all) => {
      for (const one of all) await holdfast.submit(one).catch(() => undefined)
    })
    expect(together).toEqual(apart)
    expect(together).toMatchObject([{ status: 'cancelled' }, { messages: ['s3', 's4'] }, { status: 'paused' }])
  })
})

describe('startMany', () => {
  test('answers each start in its place, and begins what can begin', async () => {
    const holdfast = await openWorking([order])
    const answers = await holdfast.startMany([
      { workflow: order, input: 'a' },
      { workflow: order, input: 'b', options: { priority: 0.5 } },
      { workflow: 'order', input: 'c' },
    ])
    expect(answers.map(({ ok }) => ok)).toEqual([true, false, true])
    const [first, , third] = answers
    if (!first.ok || !third.ok) throw new Error('They were to start.')
    expect([await first.value.result(), await third.value.result()]).toEqual(['a', 'c'])
  })

  test('takes an id that the caller has chosen, and gives one to the others (WC-U1)', async () => {
    const holdfast = await open({ workflows: [order] })
    const [first, second] = await holdfast.startMany([
      { workflow: order, input: 'a', options: { id: newId } },
      { workflow: order, input: 'b' },
    ])
    expect(first).toMatchObject({ ok: true, value: { id: newId, created: true } })
    expect(second).toMatchObject({ ok: true, value: { created: true } })
  })
})

describe('cancel', () => {
  test('says what became of it, also for a run that no process has in its memory (WC-P3)', async () => {
    const store = memoryStore()
    const [here, there] = [await open({ store, workflows: [order] }), await open({ store, workflows: [order] })]
    const run = await there.start(order, 'a')
    expect(await here.cancel(run.id)).toEqual({ outcome: 'cancelled', status: 'cancelled' })
    expect(await here.cancel(run.id)).toEqual({ outcome: 'already-ended', status: 'cancelled' })
  })
})

describe('active', () => {
  test('shows what this process has in its memory, and asks no store (WC-E6)', async () => {
    const step = gate()
    const slow = workflow('slow', async (ctx) => {
      await ctx.step('wait', () => step.passed)
      await ctx.sleep('1 day')
    })
    const base = memoryStore()
    let asked = 0
    const store = changed(base, {
      get: (ids) => {
        asked += 1
        return base.get(ids)
      },
    })
    const holdfast = await openWorking([slow], { store })
    const elsewhere = await open({ store: base, workflows: [slow] })
    const run = await holdfast.start(slow)
    await until(() => holdfast.active(run)?.state === 'running')
    expect(elsewhere.active(run)).toBeNull()
    step.open()
    await until(() => holdfast.active(run)?.state === 'parked')
    expect(holdfast.active(run)).toEqual({ id: run.id, state: 'parked' })
    expect(holdfast.active(nobody)).toBeNull()
    expect(asked).toBe(0)
  })
})

describe('looking later', () => {
  test('a run that is not over has no output yet, and its result can be waited for with a limit (PQ-O1)', async () => {
    const step = gate()
    const slow = workflow('slow', async (ctx) => {
      await ctx.step('wait', () => step.passed)
      return 'done'
    })
    const holdfast = await openWorking([slow])
    const { id } = await holdfast.start(slow)
    expect(await holdfast.get(id)).not.toHaveProperty('output')
    await expect(holdfast.run(id).result({ timeout: 0 })).rejects.toMatchObject({ code: 'RESULT_TIMEOUT' })
    step.open()
    expect(await holdfast.run(id).result()).toBe('done')
    expect(await holdfast.get(id)).toMatchObject({ status: 'succeeded', output: 'done' })
  })
})
