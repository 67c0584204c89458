// Runs in all kinds of states, made through the public API in a time that the test owns, on any store.

import {
  createHoldfast,
  decider,
  decision,
  fatal,
  workflow,
  type Holdfast,
  type RunHandle,
  type Store,
  type StoreAdmin,
} from 'holdfast'
import { createVirtualClock, type VirtualClock } from 'holdfast/testing'
import { abandon } from '../holdfast/virtual-world.ts'

export interface Corpus {
  readonly store: Store & StoreAdmin
  readonly clock: VirtualClock
  /** The ids of the runs, by what is special about them. */
  readonly ids: Readonly<Record<Special, string>>
  readonly close: () => Promise<void>
}

const specials = [
  'ready',
  'timed',
  'keyed',
  'abandoned',
  'succeeded',
  'failed',
  'retried',
  'expired',
  'overtime',
  'running',
  'asked to pause',
  'waiting',
  'written to',
  'listening',
  'woken',
  'retrying',
  'paused',
  'resumed',
  'undone',
  'half undone',
  'failed and undone',
  'cancelled',
  'cancelled now',
  'cancelling',
  'continued',
  'removed',
  'deciding',
  'performing',
] as const
type Special = (typeof specials)[number]

const flaky = { isWell: false }

/** The step of a run that stays running. */
const never = (): Promise<never> => new Promise(() => undefined)

const definitions = {
  plain: workflow('plain', (ctx) => ctx.step('greet', () => 'hello')),
  idle: workflow('idle', { feed: true }, () => 'done'),
  failing: workflow('failing', { feed: true }, async (ctx) => {
    await ctx.step('first', () => 1)
    await ctx.step('second', () => {
      if (!flaky.isWell) throw fatal('It failed')
      return 2
    })
  }),
  stuck: workflow('stuck', (ctx) => ctx.step('never', never)),
  sleeper: workflow('sleeper', { feed: true }, async (ctx) => {
    await ctx.sleep('1 min')
    await ctx.step('work', () => 1)
    await Promise.all([ctx.sleep('1 day'), ctx.sleep('2 days')])
  }),
  retrying: workflow('retrying', (ctx) =>
    ctx.step(
      'flaky',
      () => {
        throw new Error('Not now')
      },
      { retry: { maxAttempts: 10, initial: '1h', jitter: { mode: 'none' } } },
    ),
  ),
  saga: workflow('saga', async (ctx, mode: 'ends' | 'sleeps' | 'fails' | 'stubborn') => {
    await ctx.step('book', () => 'seat 3', { undo: () => undefined })
    await ctx.step('charge', () => 10, {
      undo: () => {
        if (mode === 'stubborn') throw new Error('Not yet')
      },
      retry: { maxAttempts: 10, initial: '1h', jitter: { mode: 'none' } },
    })
    if (mode === 'fails') throw fatal('The seat is gone')
    if (mode !== 'ends') await ctx.sleep('1 day')
  }),
  rounds: workflow('rounds', { feed: true }, async (ctx, round: number): Promise<number> => {
    await ctx.step('tick', () => round)
    return round < 3 ? ctx.continueAsNew(round + 1) : round
  }),
}

/** An instance that waits for its timer while its effect is performed. */
const order = decider('order', {
  id: 'orderId',
  initial: () => 0,
  evolve: (count: number, _event: { type: 'Noted' }) => count + 1,
  decide: (count, _input: { type: 'Note'; orderId: string }) => {
    const noted = decision({ type: 'Noted' } as const).timer('late', { after: '1 day' }, { type: 'Note', orderId: '1' })
    return count > 0 ? noted : noted.effect({ type: 'sendMail' } as const)
  },
  effects: { sendMail: never },
})

/** Makes the runs. Time stands still afterwards; the worker has stopped, but for what still runs. */
export async function makeCorpus(make: (clock: VirtualClock) => Promise<Store & StoreAdmin>): Promise<Corpus> {
  const clock = createVirtualClock()
  const store = await make(clock)
  const quiet = (): void => undefined
  const logger = { debug: quiet, info: quiet, warn: quiet, error: quiet }
  const workflows = [...Object.values(definitions), order]
  const open = (list = workflows): Promise<Holdfast> =>
    createHoldfast({ store, workflows: list, logger, ports: { clock } })
  flaky.isWell = false
  const holdfast = await open(workflows.filter(({ type }) => type !== 'idle'))
  const operator = await open()
  const ids: Partial<Record<Special, string>> = {}
  const note = (special: Special, { id }: Pick<RunHandle<unknown>, 'id'>): string => (ids[special] = id)

  // What a worker never gets to see, or gets to see too late.
  note('abandoned', await operator.start(definitions.idle))
  await abandon(store, 'dead', 'idle')
  note('expired', await operator.start(definitions.idle, undefined, { expiresIn: '1 min' }))
  note('overtime', await operator.start(definitions.sleeper, undefined, { timeout: '2 min' }))
  const session = 'alive'
  await store.beat({ session, leaseMs: 1e9 })

  await holdfast.work({ signals: false })
  await startAll(operator, note)
  await decideAll(operator, note)
  await clock.advance('3 min')
  await controlAll(operator, store, ids as Record<Special, string>, note)
  await clock.advance('3 min')
  await operator.pause(ids['asked to pause'] ?? '')
  const missing = specials.filter((special) => ids[special] === undefined)
  if (missing.length > 0) throw new Error(`The corpus lacks ${missing.join(', ')}.`)
  return { store, clock, ids: ids as Record<Special, string>, close: () => store.close() }
}

type Note = (special: Special, run: Pick<RunHandle<unknown>, 'id'>) => string

async function startAll(operator: Holdfast, note: Note): Promise<void> {
  const { plain, idle, failing, stuck, sleeper, retrying, saga, rounds } = definitions
  note('ready', await operator.start(idle, undefined, { tags: ['a', 'b'], metadata: { by: 'test' } }))
  note('timed', await operator.start(idle, undefined, { delay: '1 day', priority: 5 }))
  const options = { key: 'order-1', idempotencyKey: 'once' }
  note('keyed', await operator.start(idle, undefined, options))
  note('succeeded', await operator.start(plain, undefined, options))
  note('failed', await operator.start(failing))
  note('retried', await operator.start(failing))
  note('running', await operator.start(stuck))
  note('asked to pause', await operator.start(stuck))
  note('cancelled now', await operator.start(stuck))
  note('waiting', await operator.start(sleeper))
  note('written to', await operator.start(sleeper))
  note('paused', await operator.start(sleeper))
  note('resumed', await operator.start(sleeper))
  note('cancelled', await operator.start(sleeper))
  note('removed', await operator.start(sleeper))
  note('retrying', await operator.start(retrying))
  note('undone', await operator.start(saga, 'sleeps'))
  note('half undone', await operator.start(saga, 'stubborn'))
  note('cancelling', await operator.start(saga, 'stubborn'))
  note('failed and undone', await operator.start(saga, 'fails'))
  note('continued', await operator.start(rounds, 1))
}

async function decideAll(operator: Holdfast, note: Note): Promise<void> {
  await operator.execute(order, { type: 'Note', orderId: '1' })
  // Its timer is replaced.
  await operator.execute(order, { type: 'Note', orderId: '1' })
  const { runs } = await operator.find({ type: 'order' })
  for (const run of runs) {
    note('deciding', run)
    for (const child of (await operator.find({ parent: run.id })).runs) note('performing', child)
  }
}

async function controlAll(
  operator: Holdfast,
  store: Store,
  ids: Readonly<Record<Special, string>>,
  note: Note,
): Promise<void> {
  flaky.isWell = true
  await operator.retry(ids.retried)
  await operator.pause(ids.paused)
  await operator.pause(ids.resumed)
  await operator.resume(ids.resumed)
  await operator.cancel(ids.cancelled)
  await operator.cancel(ids['cancelled now'], { mode: 'now' })
  for (const special of ['undone', 'half undone', 'cancelling'] as const) await operator.cancel(ids[special])
  await operator.remove(ids.removed, { reason: 'not wanted' })
  const send = (runId: string, id: string, name = 'hurry') =>
    store.deliver([{ id, runId, kind: 'signal', name, data: '1', policy: null }])
  await send(ids['written to'], 'm1')
  await send(ids.running, 'm2')
  note('listening', { id: await listening(store, 'listening') })
  note('woken', { id: await listening(store, 'woken') })
  await send(ids.woken, 'm3', 'go')
}

/** A run that waits for a message. No workflow can, yet. */
async function listening(store: Store, id: string): Promise<string> {
  const lease = { session: 'alive', token: 1 }
  const runId = `01b8d1a4-e000-7000-8000-${Buffer.from(id).toString('hex').padEnd(12, '0').slice(0, 12)}`
  const plain = {
    key: null,
    keyScope: 'workflow',
    idempotencyKey: null,
    parentId: null,
    tags: [],
    metadata: null,
    feed: true,
  } as const
  const bounds = { priority: 0, due: null, timeoutMs: null, expiresInMs: null, leaseMs: null } as const
  const first = { kind: 'started', name: null, meta: null, data: '1' } as const
  const run = { id: runId, shard: 0, type: 'listener', version: 1, ...plain, ...bounds, lease, first }
  await store.start([{ ...run, transition: `${id}-1` }])
  const conditions = [
    { tag: 'go', kind: 'signal', name: 'go' },
    { tag: 'stop', kind: 'signal', name: 'stop' },
  ] as const
  const waiting = { kind: 'waiting', name: 'go', meta: { conditions }, data: null } as const
  const none = { due: null, undo: null, continues: null, takes: [] } as const
  const guard = { seq: 1, lease }
  await store.commit([
    { id: `${id}-2`, runId, guard, append: [waiting], status: 'waiting', parkIf: { inbox: 0 }, ...none },
  ])
  return runId
}
