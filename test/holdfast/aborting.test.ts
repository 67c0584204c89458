// Every call of the client that waits, on a store that answers nothing: it ends as soon as its abort signal fires. The caller that
// serves a request must not be held by a database that hangs.

import { randomBytes } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import {
  decider,
  decision,
  operation,
  topic,
  workflow,
  type AbortOption,
  type Holdfast,
  type HoldfastError,
} from 'holdfast'
import { encryptingCodec } from 'holdfast/encryption'
import type { SettledOperation } from '../../src/client/operation.ts'
import { RunHandle } from '../../src/client/run-handle.ts'
import { virtualWorld, type VirtualWorld } from './virtual-world.ts'

const quick = workflow('quick', (_ctx, n: number) => n)
const counter = decider('counter', {
  initial: () => 0,
  evolve: (count, _event: { type: 'Counted' }) => count + 1,
  decide: (_count, _input: { type: 'Count'; id: string }) => decision({ type: 'Counted' }),
  id: 'id',
})
const paid = topic<number>('paid', { onUnread: 'dead-letter' })
const id = '019a8b6e-7c1d-7000-8f3a-5b2c9d4e6f70'
const token = Buffer.from(`${id}.2.${'0'.repeat(40)}`).toString('base64url')
const byKey = { type: 'quick', key: 'k' }
const letter = { runId: id, id: 'a' }
const codec = encryptingCodec({ keys: { a: randomBytes(32) }, current: 'a' })

type Call = (holdfast: Holdfast, options: AbortOption) => Promise<unknown>

const calls: Readonly<Record<string, Call>> = {
  start: (holdfast, options) => holdfast.start(quick, 1, options),
  'start of a key that is taken': (holdfast, options) =>
    holdfast.start(quick, 1, { ...options, key: 'k', onConflict: 'return' }),
  signal: (holdfast, options) => holdfast.signal(id, 'go', 1, options),
  'signal to a key': (holdfast, options) => holdfast.signal(byKey, 'go', 1, options),
  signals: (holdfast, options) => firstOf(holdfast.signals([{ to: byKey, name: 'go' }], options)),
  broadcast: (holdfast, options) => holdfast.broadcast(paid, 1, options),
  sendOrStart: (holdfast, options) => holdfast.sendOrStart(quick, 'k', 'go', 1, 1, options),
  startMany: (holdfast, options) => firstOf(holdfast.startMany([{ workflow: quick, input: 1 }], options)),
  complete: (holdfast, options) => holdfast.complete(token, 1, options),
  refuse: (holdfast, options) => holdfast.refuse(token, 'no', options),
  ask: (holdfast, options) => holdfast.ask(id, 'go', 1, options),
  execute: (holdfast, options) => holdfast.execute(counter, { type: 'Count', id: '1' }, options),
  executeDynamic: (holdfast, options) => holdfast.executeDynamic('counter', { type: 'Count', id: '1' }, options),
  enqueue: (holdfast, options) => holdfast.enqueue(counter, { type: 'Count', id: '1' }, options),
  state: (holdfast, options) => holdfast.state(counter, '1', options),
  events: (holdfast, options) => holdfast.events(counter, '1', options),
  history: (holdfast, options) => holdfast.history(counter, '1', options),
  instance: (holdfast, options) => holdfast.instance(counter, '1', options),
  deadTimers: (holdfast, options) => holdfast.deadTimers(counter, '1', options),
  retryDeadTimer: (holdfast, options) => holdfast.retryDeadTimer(counter, '1', 'late', options),
  discardDeadTimer: (holdfast, options) => holdfast.discardDeadTimer(counter, '1', 'late', options),
  backlog: (holdfast, options) => holdfast.backlog(counter, '1', options),
  inspect: (holdfast, options) => holdfast.inspect(counter, '1', options),
  observe: (holdfast, options) => holdfast.observe(counter, options),
  'projections.list': (holdfast, options) => holdfast.projections.list(options),
  'projections.pause': (holdfast, options) => holdfast.projections.pause('sums', options),
  'projections.resume': (holdfast, options) => holdfast.projections.resume('sums', options),
  'projections.skip': (holdfast, options) => holdfast.projections.skip('sums', 1, options),
  'projections.rebuild': (holdfast, options) => holdfast.projections.rebuild('sums', options),
  'projections.abandonRebuild': (holdfast, options) => holdfast.projections.abandonRebuild('sums', options),
  'projections.remove': (holdfast, options) => holdfast.projections.remove('sums', options),
  submit: (holdfast, options) => holdfast.submit(operation.cancel(id, options)),
  submitBatch: (holdfast, options) => firstOf(holdfast.submitBatch([operation.retry(id)], options)),
  'submitBatch of sends': (holdfast, options) => firstOf(holdfast.submitBatch([operation.broadcast(paid, 1)], options)),
  deadLetters: (holdfast, options) => holdfast.deadLetters(options),
  retryDeadLetter: (holdfast, options) => holdfast.retryDeadLetter(letter, { ...options, to: id }),
  discardDeadLetter: (holdfast, options) => holdfast.discardDeadLetter(letter, options),
  get: (holdfast, options) => holdfast.get(id, options),
  query: (holdfast, options) => holdfast.query(id, 'seat', options),
  unread: (holdfast, options) => holdfast.unread(id, options),
  journal: (holdfast, options) => holdfast.journal(id, options),
  journalPages: async (holdfast, options) => holdfast.journalPages(id, options)[Symbol.asyncIterator]().next(),
  export: (holdfast, options) => holdfast.export(id, options),
  replay: (holdfast, options) => holdfast.replay(id, options),
  find: (holdfast, options) => holdfast.find(options),
  count: (holdfast, options) => holdfast.count({}, options),
  doctor: (holdfast, options) => holdfast.doctor(options),
  rekey: (holdfast, options) => holdfast.rekey(options),
  cancel: (holdfast, options) => holdfast.cancel(id, options),
  pause: (holdfast, options) => holdfast.pause(id, options),
  resume: (holdfast, options) => holdfast.resume(id, options),
  'resume with repairs': (holdfast, options) => holdfast.resume(id, { ...options, amend: [{ seq: 2, drop: true }] }),
  retry: (holdfast, options) => holdfast.retry(id, options),
  remove: (holdfast, options) => holdfast.remove(id, options),
  cancelMany: (holdfast, options) => holdfast.cancelMany({ type: 'quick' }, options),
  'cancelMany as a preview': (holdfast, options) =>
    holdfast.cancelMany({ type: 'quick' }, { ...options, preview: true }),
  retryMany: (holdfast, options) => holdfast.retryMany({ type: 'quick' }, options),
  resumeMany: (holdfast, options) => holdfast.resumeMany({ type: 'quick' }, { ...options, reason: 'crashes' }),
  pauseMany: (holdfast, options) => holdfast.pauseMany({ type: 'quick' }, { ...options, note: 'lunch' }),
  removeMany: (holdfast, options) => holdfast.removeMany({ type: 'quick' }, options),
  'run.result': (holdfast, options) => holdfast.run(id).result(options),
  'run.status': (holdfast, options) => holdfast.run(id).status(options),
  'run.cancel': (holdfast, options) => holdfast.run(id).cancel(options),
  'run.signal': (holdfast, options) => holdfast.run(id).signal('go', 1, options),
  'run.ask': (holdfast, options) => holdfast.run(id).ask('go', 1, options),
}

/** Where the time of the caller is over, and nothing else is wrong. */
const codes: Readonly<Record<string, string>> = {
  'run.result': 'RESULT_TIMEOUT',
  ask: 'ASK_TIMEOUT',
  'run.ask': 'ASK_TIMEOUT',
}

/** What asks no store, ends in time by itself, or is a transaction of the caller's. */
const others = ['using', 'run', 'active', 'work', 'project', 'projections', 'close']

/** Of one operation the answer says what a single call throws. */
async function firstOf(answers: Promise<readonly SettledOperation<unknown>[]>): Promise<unknown> {
  const [answer] = await answers
  if (answer?.ok === false) throw answer.error
  return answer
}

/** A store of which no call is answered once it is asked to hang. */
function hanging({ store }: VirtualWorld) {
  const line = { hangs: false, asked: 0 }
  const proxy = new Proxy(store, {
    get(_store, key) {
      const value: unknown = Reflect.get(store, key, store)
      if (typeof value !== 'function') return value
      return (...given: readonly unknown[]): unknown => {
        if (!line.hangs || key === 'close') return Reflect.apply(value, store, given)
        line.asked += 1
        return new Promise(() => undefined)
      }
    },
  })
  return { line, store: proxy }
}

describe('a database that hangs', () => {
  it.each(Object.entries(calls))('does not hold %s() beyond its abort signal', async (name, call) => {
    const world = virtualWorld()
    const { line, store } = hanging(world)
    const holdfast = await world.open({ store, workflows: [quick, counter], codec })
    line.hangs = true
    const controller = new AbortController()
    const reason = new Error('The visitor has left.')
    const code = codes[name] ?? 'STORE_UNAVAILABLE'
    const asked = call(holdfast, { abortSignal: controller.signal }).catch((error: unknown) => error)
    await world.clock.advance(1)
    expect(line.asked).toBeGreaterThan(0)
    const before = world.clock.now()
    controller.abort(reason)
    expect(await asked).toMatchObject({ code, cause: reason })
    expect(world.clock.now()).toBe(before)

    // Nothing is asked for a caller that has left already.
    line.asked = 0
    const late = (await call(holdfast, { abortSignal: AbortSignal.abort(reason) }).catch(
      (error: unknown) => error,
    )) as HoldfastError
    expect(late).toMatchObject({ code, cause: reason })
    expect(line.asked).toBe(0)
    // What is no signal is refused, not ignored.
    await expect(call(holdfast, { abortSignal: 'soon' as never })).rejects.toMatchObject({ code: 'INVALID_OPTION' })
  })

  it('does not hold rekey() that rests between two pages, or that the store left in the middle: it says where to go on', async () => {
    const world = virtualWorld()
    const { line, store } = hanging(world)
    const holdfast = await world.open({ store, workflows: [quick], codec })
    for (const n of [1, 2, 3]) await holdfast.start(quick, n)
    for (const hangs of [false, true]) {
      const controller = new AbortController()
      let pages = 0
      const rekeying = holdfast.rekey({
        rate: 0.05,
        abortSignal: controller.signal,
        onProgress: () => {
          pages += 1
          line.hangs = hangs
        },
      })
      await world.clock.advance(hangs ? 20_001 : 1)
      expect(pages).toBe(1)
      const before = world.clock.now()
      controller.abort()
      expect(await rekeying).toMatchObject({ runs: 1, next: expect.any(String) as string })
      expect(world.clock.now()).toBe(before)
    }
  })

  it('does not hold a call that this table forgot', async () => {
    const holdfast = await virtualWorld().open()
    const handle = Object.getOwnPropertyNames(RunHandle.prototype).filter(
      (name) => !['constructor', 'ending', 'timeoutError', 'abortError'].includes(name),
    )
    const control = Object.keys(holdfast.projections).map((name) => `projections.${name}`)
    const all = [...Object.keys(holdfast), ...handle.map((name) => `run.${name}`), ...control]
    expect(all.filter((name) => calls[name] === undefined && !others.includes(name))).toEqual([])
  })

  it('does not hold createHoldfast() while it waits for a migration', async () => {
    const world = virtualWorld()
    const { line, store } = hanging(world)
    line.hangs = true
    const controller = new AbortController()
    const opening = world.open({ store, abortSignal: controller.signal }).catch((error: unknown) => error)
    await world.clock.advance(1)
    controller.abort()
    expect(await opening).toMatchObject({ code: 'STORE_UNAVAILABLE', details: { sent: true } })
  })

  it('and a batch of thousands ends with one signal: each is answered', async () => {
    const world = virtualWorld()
    const { line, store } = hanging(world)
    const holdfast = await world.open({ store, workflows: [quick] })
    line.hangs = true
    const controller = new AbortController()
    const starts = Array.from({ length: 5_000 }, (_, input) => ({ workflow: quick, input }))
    const asked = holdfast.startMany(starts, { abortSignal: controller.signal })
    await world.clock.advance(1)
    controller.abort()
    const answers = await asked
    expect(answers).toHaveLength(5_000)
    expect(answers.every((answer) => !answer.ok)).toBe(true)
  })

  it('does not hold a reader between two pages of a journal', async () => {
    const world = virtualWorld()
    const { line, store } = hanging(world)
    const holdfast = await world.open({ store, workflows: [quick] })
    await holdfast.work()
    const run = await holdfast.start(quick, 1)
    await world.after(run.result())
    const controller = new AbortController()
    const pages = holdfast.journalPages(run, { limit: 1, abortSignal: controller.signal })[Symbol.asyncIterator]()
    expect((await pages.next()).value).toHaveLength(1)
    line.hangs = true
    const second = pages.next().catch((error: unknown) => error)
    controller.abort()
    expect(await second).toMatchObject({ code: 'STORE_UNAVAILABLE' })
  })
})
