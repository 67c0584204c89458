// Under a backlog a worker claims more than it has slots for: no slot waits for the store, neither for a claim nor for the answer to
// the commit with which a run leaves; and nobody waits for a worker that does not get to what it has claimed.

import { describe, expect, it } from 'vitest'
import { workflow, type Store } from 'holdfast'
import { changed, virtualWorld } from './virtual-world.ts'

/** Quick runs with slow ones behind them, and a worker of one slot that begins with the quick ones. */
async function backlog(slow: number, changes: Partial<Store> = {}) {
  const { open, store, after, pause, until } = virtualWorld()
  const claims: number[] = []
  const given: string[] = []
  const begun = new Map<number, string[]>()
  const counted = changed(store, {
    claim: async (request) => {
      const claimed = await store.claim(request)
      claims.push(claimed.runs.length)
      return claimed
    },
    release: (leases) => {
      for (const { runId } of leases) given.push(runId)
      return store.release(leases)
    },
    ...changes,
  } satisfies Partial<Store>)
  const job = (worker: string) =>
    workflow('job', (ctx, [ms, n]: [number, number]) =>
      ctx.step('work', () => {
        begun.set(n, [...(begun.get(n) ?? []), worker])
        return pause(ms)
      }),
    )
  const order = job('nobody')
  const starter = await open({ workflows: [order] })
  const lengths = [...Array.from({ length: 100 }, () => 5), ...Array.from({ length: slow }, () => 20_000)]
  const inputs = lengths.map((ms, n): [number, number] => [ms, n])
  const runs = await Promise.all(inputs.map((input) => starter.start(order, input)))
  const first = await open({ store: counted, workflows: [job('first')] })
  const worker = await first.work({ concurrency: 1 })
  const ended = (): Promise<unknown> => after(Promise.all(runs.map((run) => run.result())))
  return { claims, given, begun, first, worker, starter, runs, open, job, until, after, ended }
}

const deaf = { listen: async () => () => undefined } satisfies Partial<Store>

type Command = 'paused' | 'cancelled' | 'cancelled at once' | 'removed'

/** Controls the run that was claimed ahead and would begin last, and lets all others end. */
async function controlAhead(command: Command, how: { by: 'first' | 'starter'; changes: Partial<Store>; beats?: true }) {
  const { begun, given, runs, worker, until, after, ...holdfasts } = await backlog(0, how.changes)
  const operator = holdfasts[how.by]
  await until(() => begun.size > 40)
  const statuses = await Promise.all(runs.map((run) => run.status()))
  const victim = statuses.lastIndexOf('running')
  const run = runs[victim] ?? expect.unreachable('No run is claimed ahead.')
  expect(begun.has(victim)).toBe(false)
  if (command === 'paused') await operator.pause(run)
  else if (command === 'removed') await operator.remove(run)
  else await operator.cancel(run, { mode: command === 'cancelled' ? 'cooperative' : 'now' })
  if (how.beats === true) worker.beat()
  await after(Promise.all(runs.filter((one) => one !== run).map((one) => one.result())))
  expect(begun.has(victim)).toBe(false)
  expect(given).toEqual([run.id])
  return { view: await operator.get(run), run, operator, after }
}

describe('a worker that has a backlog', () => {
  it('with one slot makes a claim for many runs, and performs them one after the other in their order', async () => {
    const { claims, given, begun, ended } = await backlog(0)
    await ended()
    expect([...begun.keys()]).toEqual(Array.from({ length: 100 }, (_, n) => n))
    expect(claims.length).toBeLessThan(50)
    expect(given).toEqual([])
  })

  it('gives back what it does not get to, uncounted: others perform it meanwhile, and nobody twice', async () => {
    const { given, begun, open, job, until, ended } = await backlog(5)
    await until(() => begun.size > 100)
    expect([...begun.values()].flat()).toEqual(Array.from({ length: 101 }, () => 'first'))
    const second = await open({ workflows: [job('second')] })
    await second.work({ concurrency: 4 })
    await ended()
    expect(given.length).toBeGreaterThan(0)
    expect([...begun.values()].slice(101).map(([worker]) => worker)).toEqual(Array.from({ length: 4 }, () => 'second'))
    expect([...begun.values()].every((workers) => workers.length === 1)).toBe(true)
    const { runs } = await second.find({ type: 'job' })
    expect(new Set(runs.map(({ crashes }) => crashes))).toEqual(new Set([0]))
  })

  it('gives back what it claimed ahead when it stops', async () => {
    const { begun, given, first, until, after, open, job, ended } = await backlog(0)
    await until(() => begun.size > 40)
    await after(first.close())
    const count = begun.size
    expect(count).toBeLessThan(60)
    expect(given.length).toBeGreaterThan(0)
    const second = await open({ workflows: [job('second')] })
    await second.work()
    await ended()
    expect([...begun.values()].map(([worker]) => worker)).toEqual([
      ...Array.from({ length: count }, () => 'first'),
      ...Array.from({ length: 100 - count }, () => 'second'),
    ])
  })
})

describe('a run that is claimed ahead', () => {
  const commands = [
    ['paused', { status: 'paused', crashes: 0 }],
    ['cancelled', { status: 'cancelled', crashes: 0 }],
    ['cancelled at once', { status: 'cancelled' }],
  ] as const

  it.each(commands)('and %s in the same process does not begin', async (command, outcome) => {
    const { view } = await controlAhead(command, { by: 'first', changes: deaf })
    expect(view).toMatchObject(outcome)
  })

  it.each(commands)('and %s in another process does not begin once a hint reports it', async (command, outcome) => {
    const { view } = await controlAhead(command, { by: 'starter', changes: {} })
    expect(view).toMatchObject(outcome)
  })

  it.each(commands)(
    'and %s in another process does not begin once a heartbeat reports it',
    async (command, outcome) => {
      const { view } = await controlAhead(command, { by: 'starter', changes: deaf, beats: true })
      expect(view).toMatchObject(outcome)
    },
  )

  it('and removed in the same process does not begin', async () => {
    await controlAhead('removed', { by: 'first', changes: deaf })
  })

  it('and removed in another process does not begin once a hint reports it', async () => {
    await controlAhead('removed', { by: 'starter', changes: {} })
  })

  it('and paused is performed once it is resumed', async () => {
    const { run, operator, after } = await controlAhead('paused', { by: 'first', changes: deaf })
    await operator.resume(run)
    await after(run.result())
    expect(await run.status()).toBe('succeeded')
  })
})

describe('a claimed run whose journal is being read', () => {
  const commands = [
    ['paused', 'worker', 'paused'],
    ['paused', 'starter', 'paused'],
    ['cancelled', 'worker', 'cancelled'],
    ['cancelled', 'starter', 'cancelled'],
    ['cancelled at once', 'worker', 'cancelled'],
    ['cancelled at once', 'starter', 'cancelled'],
  ] as const

  it.each(commands)('and %s by the %s meanwhile does not begin', async (command, by, status) => {
    const { open, store, until, after } = virtualWorld()
    let isReading = false
    let read = (): void => undefined
    const mayRead = new Promise<void>((resolve) => (read = resolve))
    const slow = changed(store, {
      claim: async (request) => ({ ...(await store.claim(request)), fresh: [] }),
      load: async (requests, mostBytes) => {
        isReading = true
        await mayRead
        return store.load(requests, mostBytes)
      },
      release: (leases) => {
        given += leases.length
        return store.release(leases)
      },
    } satisfies Partial<Store>)
    let [begun, given] = [0, 0]
    const job = workflow('job', (ctx) => ctx.step('work', () => void (begun += 1)))
    const starter = await open({ workflows: [job] })
    const run = await starter.start(job)
    const worker = await open({ store: slow, workflows: [job] })
    await worker.work()
    await until(() => isReading)
    const operator = { starter, worker }[by]
    if (command === 'paused') await operator.pause(run)
    else await operator.cancel(run, { mode: command === 'cancelled' ? 'cooperative' : 'now' })
    read()
    await until(() => given > 0 || begun > 0)
    await after(worker.close())
    expect({ begun, given }).toEqual({ begun: 0, given: 1 })
    expect(await starter.get(run)).toMatchObject({ status })
  })
})

/** A worker of one slot, and a store that answers commits when it is asked to. */
async function slowCommits() {
  const world = virtualWorld()
  const { open, store } = world
  let [answer, hasEnded]: [() => void, Promise<void>] = [() => undefined, Promise.resolve()]
  const hold = (): void => void (hasEnded = new Promise((resolve) => (answer = resolve)))
  let [moving, most] = [0, 0]
  const begun: number[] = []
  const undone: number[] = []
  const job = workflow('job', async (ctx, n: number) => {
    moving += 1
    most = Math.max(most, moving)
    begun.push(n)
    await ctx.step('book', () => n, { undo: () => void undone.push(n) })
    moving -= 1
    return n
  })
  const late = changed(store, {
    commit: async (transitions, options) => {
      if (transitions.some(({ status }) => status === 'succeeded')) await hasEnded
      return store.commit(transitions, options)
    },
  } satisfies Partial<Store>)
  const starter = await open({ workflows: [job] })
  const worker = await open({ store: late, workflows: [job] })
  return { ...world, hold, answer: () => answer(), begun, undone, mostAtOnce: () => most, job, starter, worker }
}

describe('a worker of one slot', () => {
  it('begins the next run while the end of the last is on its way, and never moves two', async () => {
    const { hold, answer, begun, mostAtOnce, job, starter, worker, after, until } = await slowCommits()
    const runs = await Promise.all([0, 1, 2].map((n) => starter.start(job, n)))
    hold()
    await worker.work({ concurrency: 1 })
    await until(() => begun.length === 3)
    expect(await Promise.all(runs.map((run) => run.status()))).toEqual(['running', 'running', 'running'])
    answer()
    expect(await after(Promise.all(runs.map((run) => run.result())))).toEqual([0, 1, 2])
    expect(mostAtOnce()).toBe(1)
  })

  it('goes on with a run that was cancelled while its end was on its way, and stops with nothing held', async () => {
    const { hold, answer, begun, undone, job, starter, worker, after, until } = await slowCommits()
    const first = await starter.start(job, 0)
    hold()
    await worker.work({ concurrency: 1 })
    await until(() => begun.length === 1)
    const second = await starter.start(job, 1)
    await until(() => begun.length === 2)
    await starter.cancel(first, { reason: 'sold out' })
    answer()
    expect(await after(second.result())).toBe(1)
    await until(() => undone.length === 1)
    await after(worker.close())
    expect([await first.status(), undone]).toEqual(['cancelled', [0]])
    const { runs } = await starter.find({ type: 'job' })
    expect(runs.map(({ crashes }) => crashes)).toEqual([0, 0])
  })
})
