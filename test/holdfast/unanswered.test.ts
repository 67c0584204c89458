// A store that stops to answer one of its calls, or all of them: its callers get an error, nothing hangs, and nothing is lost or
// done twice when it answers again.

import { describe, expect, it } from 'vitest'
import { HoldfastError, isHoldfastError, topic, workflow, type Holdfast, type Store } from 'holdfast'
import { keepLines } from './open.ts'
import { changed, kindsOf, virtualWorld, type VirtualWorld } from './virtual-world.ts'

type Method =
  'start' | 'claim' | 'load' | 'commit' | 'deliver' | 'control' | 'beat' | 'rescue' | 'release' | 'get' | 'changes'

const methods: readonly Method[] = [
  'start',
  'claim',
  'load',
  'commit',
  'deliver',
  'control',
  'beat',
  'rescue',
  'release',
  'get',
  'changes',
]

type Call = (...given: readonly unknown[]) => Promise<unknown>

/** A store that does what it is asked, but of which some calls are never answered. */
function silent(store: Store) {
  const mute = new Set<Method>()
  /** Those of them that do not even reach it. */
  const cut = new Set<Method>()
  const asked: Method[] = []
  const changes = Object.fromEntries(
    methods.map((name) => {
      const call: Call = (...given) => {
        asked.push(name)
        const never = new Promise(() => undefined)
        if (cut.has(name)) return never
        const answer = Reflect.apply(store[name] as Call, store, given)
        return mute.has(name) ? answer.then(() => never) : answer
      }
      return [name, call]
    }),
  )
  return { store: changed(store, changes), mute, cut, asked }
}

const quick = workflow('quick', (ctx, n: number) => ctx.step('count', () => n))
const patient = workflow('patient', (ctx) => ctx.receive<string>('word'))
const news = topic('news')

/** What a call was rejected with. */
async function refusalOf({ after }: VirtualWorld, call: Promise<unknown>): Promise<HoldfastError> {
  const error: unknown = await after(
    call.then(
      () => 'It was answered.',
      (reason: unknown) => reason,
    ),
  )
  if (!isHoldfastError(error)) throw new Error(String(error))
  return error
}

describe('a start that is never answered', () => {
  it.each(['mute', 'cut'] as const)(
    'fails with its id, by which it is one run when it is repeated (%s)',
    async (how) => {
      const world = virtualWorld()
      const line = silent(world.store)
      const holdfast = await world.open({ store: line.store, workflows: [quick] })
      line[how].add('start')
      const error = await refusalOf(world, holdfast.start(quick, 7, { key: 'order-7' }))
      const runId = error.details['runId'] as string
      expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE', details: { sent: true } })
      expect(error.message).toContain(`{ id: '${runId}' }`)
      line[how].clear()
      const again = await holdfast.start(quick, 7, { key: 'order-7', id: runId })
      expect(again.id).toBe(runId)
      expect((await holdfast.find()).runs.map(({ id }) => id)).toEqual([runId])
      await holdfast.work()
      expect(await world.after(again.result())).toBe(7)
    },
  )

  it('is not sent when the store is back: its caller may have reported that it failed', async () => {
    const world = virtualWorld()
    const line = silent(world.store)
    const holdfast = await world.open({ store: line.store, workflows: [quick] })
    line.cut.add('start')
    await refusalOf(world, holdfast.start(quick, 7))
    line.cut.clear()
    await world.clock.advance('5 min')
    expect((await holdfast.find()).runs).toEqual([])
  })

  it('and leased by the worker of its own process is performed all the same', async () => {
    const world = virtualWorld()
    const line = silent(world.store)
    const holdfast = await world.open({ store: line.store, workflows: [quick] })
    await holdfast.work()
    line.mute.add('start')
    const error = await refusalOf(world, holdfast.start(quick, 7))
    line.mute.clear()
    const run = holdfast.run(error.details['runId'] as string)
    expect(await world.after(run.result())).toBe(7)
    expect(await kindsOf(holdfast, run)).toEqual(['started', 'step-succeeded', 'succeeded'])
  })

  it('ends with the abort signal of its caller', async () => {
    const world = virtualWorld()
    const line = silent(world.store)
    const holdfast = await world.open({ store: line.store, workflows: [quick] })
    line.cut.add('start')
    const controller = new AbortController()
    const starting = holdfast.start(quick, 7, { abortSignal: controller.signal }).catch((error: unknown) => error)
    await world.clock.advance(100)
    const reason = new Error('The visitor has left.')
    controller.abort(reason)
    const before = world.clock.now()
    expect(await starting).toMatchObject({ code: 'STORE_UNAVAILABLE', cause: reason, details: { sent: true } })
    expect(world.clock.now()).toBe(before)
  })
})

describe('what is sent and never answered', () => {
  const sends: Readonly<Record<string, (holdfast: Holdfast, runId: string, id?: string) => Promise<unknown>>> = {
    signal: (holdfast, runId, id) => holdfast.signal(runId, 'word', 'hello', id === undefined ? {} : { id }),
    broadcast: (holdfast, _runId, id) => holdfast.broadcast(news, 'hello', id === undefined ? {} : { id }),
    sendOrStart: (holdfast, _runId, id) =>
      holdfast.sendOrStart(patient, 'k', 'word', 'hello', undefined, id === undefined ? {} : { id }),
  }

  it.each(Object.keys(sends))('%s fails with its id, by which it arrives once when it is repeated', async (kind) => {
    const world = virtualWorld()
    const line = silent(world.store)
    const holdfast = await world.open({ store: line.store, workflows: [patient] })
    const run = await holdfast.start(patient, undefined, { key: 'k' })
    const send = sends[kind] as (typeof sends)[string]
    line.mute.add('deliver')
    const error = await refusalOf(world, send(holdfast, run.id))
    const id = error.details['signalId'] as string
    expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE', details: { sent: true } })
    expect(error.message).toContain(`{ id: '${id}' }`)
    line.mute.clear()
    expect(await world.after(send(holdfast, run.id, id))).toMatchObject({ repeated: true })
  })

  it('to a token is completed again as it is', async () => {
    const world = virtualWorld()
    const line = silent(world.store)
    let issued = ''
    const asking = workflow('asking', async (ctx) => {
      const answer = ctx.token<string>()
      await ctx.step('issue', () => void (issued = answer.token))
      return await answer
    })
    const holdfast = await world.open({ store: line.store, workflows: [asking] })
    await holdfast.work()
    const run = await holdfast.start(asking)
    await world.until(() => issued !== '')
    line.mute.add('deliver')
    const error = await refusalOf(world, holdfast.complete(issued, 'yes'))
    expect(error.message).toContain('Complete the token again')
    line.mute.clear()
    expect(await world.after(holdfast.complete(issued, 'yes'))).toMatchObject({ outcome: 'already-completed' })
    expect(await world.after(run.result())).toBe('yes')
  })
})

describe('what is asked of a run and never answered', () => {
  const controls = ['cancel', 'pause', 'resume', 'retry', 'remove'] as const

  it.each(controls)('%s() is refused within the storage timeout, however often it was tried', async (kind) => {
    const world = virtualWorld()
    const line = silent(world.store)
    const failing = workflow('failing', { retry: 'none' }, () => Promise.reject(new Error('No')))
    const holdfast = await world.open({ store: line.store, workflows: [failing] })
    const run = await holdfast.start(failing)
    if (kind === 'retry') {
      await holdfast.work()
      await world.after(run.result().catch(() => undefined))
    }
    line.cut.add('control')
    const from = world.clock.now()
    expect(await refusalOf(world, holdfast[kind](run))).toMatchObject({
      code: 'STORE_UNAVAILABLE',
      details: { sent: true },
    })
    expect(world.clock.now() - from).toBeLessThanOrEqual(15_000)
    const controller = new AbortController()
    const asked = holdfast[kind](run, { abortSignal: controller.signal }).catch((error: unknown) => error)
    await world.clock.advance(1)
    controller.abort()
    expect(await asked).toMatchObject({ code: 'STORE_UNAVAILABLE', details: { sent: true } })
    const aborted = holdfast[kind](run, { abortSignal: AbortSignal.abort() })
    expect(await refusalOf(world, aborted)).toMatchObject({ code: 'STORE_UNAVAILABLE', details: { sent: false } })
  })

  it('result() keeps its timeout', async () => {
    const world = virtualWorld()
    const line = silent(world.store)
    const holdfast = await world.open({ store: line.store, workflows: [patient] })
    const run = await holdfast.start(patient)
    line.cut.add('get')
    const from = world.clock.now()
    expect(await refusalOf(world, run.result({ timeout: '2s' }))).toMatchObject({ code: 'RESULT_TIMEOUT' })
    expect(world.clock.now() - from).toBe(3_000)
  })
})

describe('an abort signal', () => {
  it('that is none is refused before anything is sent', async () => {
    const world = virtualWorld()
    const line = silent(world.store)
    const holdfast = await world.open({ store: line.store, workflows: [quick, patient] })
    const run = await holdfast.start(patient)
    line.asked.length = 0
    const options = { abortSignal: 'soon' as never }
    const calls = [
      holdfast.start(quick, 7, options),
      holdfast.sendOrStart(patient, 'k', 'word', 1, undefined, options),
      holdfast.signal(run, 'word', 1, options),
      holdfast.broadcast(news, 1, options),
      holdfast.cancel(run, options),
      holdfast.pause(run, options),
      holdfast.complete('no token', 1, options),
    ]
    const refused = await Promise.all(calls.map((call) => refusalOf(world, call)))
    for (const error of refused) {
      expect(error).toMatchObject({ code: 'INVALID_OPTION' })
      expect(error.message).toContain('AbortSignal')
    }
    expect(line.asked).toEqual([])
  })
})

describe('a worker of a store that does not answer', () => {
  it('claims again, and gives back what nobody here knows of', async () => {
    const world = virtualWorld()
    const line = silent(world.store)
    const starter = await world.open({ workflows: [quick] })
    const runs = [await starter.start(quick, 1), await starter.start(quick, 2)]
    const logger = keepLines()
    const holdfast = await world.open({ store: line.store, workflows: [quick], logger })
    line.mute.add('claim')
    await holdfast.work()
    await world.until(() => line.asked.filter((name) => name === 'claim').length > 1)
    expect((await starter.get(runs[0] as never)).status).toBe('running')
    line.mute.clear()
    expect(await world.after(Promise.all(runs.map((run) => run.result())))).toEqual([1, 2])
    expect(logger.lines.map(({ message }) => message)).toContain(
      'Gave back 2 runs that the store had leased without an answer.',
    )
    for (const run of runs) expect(await kindsOf(starter, run)).toEqual(['started', 'step-succeeded', 'succeeded'])
  })

  it.each(['mute', 'cut'] as const)('sends its commits again, and each counts once (%s)', async (how) => {
    const world = virtualWorld()
    const line = silent(world.store)
    let performed = 0
    const counting = workflow('counting', (ctx) => ctx.step('count', () => (performed += 1)))
    const holdfast = await world.open({ store: line.store, workflows: [counting] })
    await holdfast.work()
    line[how].add('commit')
    const run = await holdfast.start(counting)
    await world.until(() => line.asked.filter((name) => name === 'commit').length > 1)
    line[how].clear()
    expect(await world.after(run.result())).toBe(1)
    expect(performed).toBe(1)
    expect(await kindsOf(holdfast, run)).toEqual(['started', 'step-succeeded', 'succeeded'])
  })

  it('waits no longer than its lease allows, so that a second beat comes in time', async () => {
    const world = virtualWorld()
    const line = silent(world.store)
    const logger = keepLines()
    const holdfast = await world.open({ store: line.store, workflows: [quick], logger })
    await holdfast.work({ lease: '6s' })
    line.cut.add('beat')
    const beats = (): number => line.asked.filter((name) => name === 'beat').length
    const before = beats()
    await world.until(() => beats() > before)
    line.cut.clear()
    await world.clock.advance('1 min')
    const logged = logger.lines.map(({ details }) => details['error']).filter((error) => isHoldfastError(error))
    expect(logged.map(({ details }) => details)).toEqual([{ call: 'beat', waitedMs: 2_000 }])
    expect(logged.some(({ code }) => code === 'LEASE_LOST')).toBe(false)
  })

  it.each([...methods.filter((name) => name !== 'changes'), 'everything' as const])(
    'stops and closes in time if %s is not answered',
    async (name) => {
      const world = virtualWorld()
      const line = silent(world.store)
      const stuck = workflow('stuck', (ctx) => ctx.step('hang', () => new Promise<never>(() => undefined)))
      const holdfast = await world.open({ store: line.store, workflows: [quick, patient, stuck] })
      const worker = await holdfast.work({ shutdownTimeout: '10s' })
      await holdfast.start(stuck)
      const waiting = await holdfast.start(patient)
      await world.clock.advance(1_000)
      for (const one of name === 'everything' ? methods : [name]) line.cut.add(one)
      const asked = [
        holdfast.start(quick, 1),
        holdfast.signal(waiting, 'word', 'hello'),
        holdfast.cancel(waiting),
        waiting.result(),
      ].map((call) => call.catch(() => undefined))
      const from = world.clock.now()
      await world.after(worker.stop())
      // The shutdown timeout, and what a worker has for its last words.
      expect(world.clock.now() - from).toBeLessThanOrEqual(16_000)
      await world.after(holdfast.close())
      expect(world.clock.now() - from).toBeLessThanOrEqual(22_000)
      await world.after(Promise.all(asked))
    },
  )
})

describe('a store that has to be repaired', () => {
  /** A store that refuses some calls until its tables are there. */
  function unmigrated(store: Store, names: readonly Method[]) {
    const line = { isMigrated: true, refusals: 0 }
    const changes = Object.fromEntries(
      names.map((name) => [
        name,
        (...given: readonly unknown[]) => {
          if (line.isMigrated) return Reflect.apply(store[name] as Call, store, given)
          line.refusals += 1
          return Promise.reject(new HoldfastError('STORE_REFUSED', 'A table is missing. Run `holdfast migrate`.'))
        },
      ]),
    )
    return { line, store: changed(store, changes) }
  }

  it('notifies callers at once, and with one call', async () => {
    const world = virtualWorld()
    const { line, store } = unmigrated(world.store, methods)
    const holdfast = await world.open({ store, workflows: [quick, patient] })
    const run = await holdfast.start(patient)
    line.isMigrated = false
    const from = world.clock.now()
    const calls: readonly (() => Promise<unknown>)[] = [
      () => holdfast.start(quick, 1),
      () => run.signal('word'),
      () => holdfast.broadcast(news, 1),
      () => run.cancel(),
      () => run.status(),
      () => run.result(),
      () => holdfast.sendOrStart(patient, 'k', 'word', 1, undefined),
    ]
    for (const call of calls) {
      line.refusals = 0
      expect(await refusalOf(world, call())).toMatchObject({ code: 'STORE_REFUSED' })
      expect(line.refusals).toBe(1)
    }
    expect(world.clock.now()).toBe(from)
  })

  it('keeps a worker waiting, which says so once for each reason and goes on by itself', async () => {
    const world = virtualWorld()
    const { line, store } = unmigrated(world.store, ['claim', 'commit', 'beat', 'rescue', 'release', 'load'])
    const logger = keepLines()
    const holdfast = await world.open({ store, workflows: [quick], logger })
    await holdfast.work()
    line.isMigrated = false
    const run = await holdfast.start(quick, 7)
    const others = await world.open({ workflows: [quick] })
    const other = await others.start(quick, 8)
    await world.clock.advance('10s')
    expect(line.refusals).toBeGreaterThan(5)
    const errors = logger.lines.filter(({ level }) => level === 'error')
    expect(errors.map(({ message }) => message)).toEqual([expect.stringContaining('holdfast migrate')])
    line.isMigrated = true
    expect(await world.after(Promise.all([run.result(), other.result()]))).toEqual([7, 8])
    expect(await kindsOf(holdfast, run)).toEqual(['started', 'step-succeeded', 'succeeded'])
  })

  it('does not let a worker begin: work() says what to do', async () => {
    const world = virtualWorld()
    const { line, store } = unmigrated(world.store, ['beat'])
    const holdfast = await world.open({ store, workflows: [quick] })
    line.isMigrated = false
    expect(await refusalOf(world, holdfast.work())).toMatchObject({ code: 'STORE_REFUSED' })
    line.isMigrated = true
    await holdfast.work()
  })
})
