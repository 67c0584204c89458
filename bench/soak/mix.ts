// The work of a soak: of everything that runs do, a little, in fixed shares. What a kind says of itself is what the load must
// know to count fairly: how long its runs rest because they were written so, and how they have to end.

import { fatal, topic, workflow, type Workflow } from 'holdfast'

export interface Order {
  readonly number: number
  readonly customer: string
  readonly items: readonly string[]
}

export interface Kind {
  readonly name: string
  readonly about: string
  /** Of a hundred arrivals. */
  readonly share: number
  readonly workflow: Workflow<Order, unknown>
  /** How long a run rests of its own will, which is not latency; null if that is not known beforehand. */
  readonly restsMs: number | null
  readonly endsAs: 'succeeded' | 'failed'
  /** It waits for this signal, which is sent so long after it was to arrive. */
  readonly signal?: { readonly name: string; readonly afterMs: number }
}

/** A client sends to it once in so many milliseconds. */
export const news = topic<number>('soak.news')
export const newsEveryMs = 1_000

const sleepMs = 1_000
const approvalMs = 250
const retryMs = 50

const order = workflow('soak.order', async (ctx, { number, items }: Order) => {
  const price = await ctx.step('price', async () => items.length * 99 + number)
  const receipt = await ctx.step('charge', async ({ idempotencyKey }) => ({ price, key: idempotencyKey }))
  return ctx.step('ship', async () => ({ receipt, parcel: `parcel-${number}` }))
})

const reminder = workflow('soak.reminder', async (ctx, { customer }: Order) => {
  const letter = await ctx.step('write', async () => `Dear ${customer}`)
  await ctx.sleep(sleepMs)
  return ctx.step('send', async () => letter.length)
})

const approval = workflow('soak.approval', async (ctx, { number }: Order) => {
  await ctx.step('ask', async () => number)
  const by = await ctx.receive<string>('approved')
  return ctx.step('note', async () => ({ number, by }))
})

const booking = workflow('soak.booking', (ctx, item: string) => ctx.step('book', async () => `${item} booked`))

const trip = workflow('soak.trip', async (ctx, { items }: Order) => {
  const [there = '', back = ''] = items
  const booked = await ctx.all([ctx.child(booking, there), ctx.child(booking, back)])
  return ctx.step('confirm', async () => booked)
})

const retried = { maxAttempts: 3, kind: 'constant', initial: retryMs, jitter: { mode: 'none' } } as const

const payment = workflow('soak.payment', { retry: retried }, (ctx, { number }: Order) =>
  ctx.step('pay', async ({ attempt }) => {
    if (attempt === 1) throw new Error('The bank did not answer')
    return number
  }),
)

const refund = workflow('soak.refund', async (ctx, { number }: Order) => {
  await ctx.step('reserve', async () => number, { undo: async () => undefined })
  await ctx.step('charge', async () => number, { undo: async () => undefined })
  await ctx.step('ship', async () => {
    throw fatal('There is nothing left to ship')
  })
})

const reader = workflow('soak.reader', async (ctx, { number }: Order) => {
  const received = await ctx.receive(news)
  return ctx.step('read', async () => received + number)
})

export const kinds: readonly Kind[] = [
  { name: 'order', about: 'three steps', share: 50, workflow: order, restsMs: 0, endsAs: 'succeeded' },
  {
    name: 'reminder',
    about: 'a step, a sleep of 1 s, a step',
    share: 12,
    workflow: reminder,
    restsMs: sleepMs,
    endsAs: 'succeeded',
  },
  {
    name: 'approval',
    about: 'waits for a signal, which is sent after 250 ms',
    share: 12,
    workflow: approval,
    restsMs: approvalMs,
    endsAs: 'succeeded',
    signal: { name: 'approved', afterMs: approvalMs },
  },
  { name: 'trip', about: 'two children at once', share: 10, workflow: trip, restsMs: 0, endsAs: 'succeeded' },
  {
    name: 'payment',
    about: 'a step that fails once, tried again after 50 ms',
    share: 6,
    workflow: payment,
    restsMs: retryMs,
    endsAs: 'succeeded',
  },
  {
    name: 'refund',
    about: 'fails for good, two steps undone',
    share: 4,
    workflow: refund,
    restsMs: 0,
    endsAs: 'failed',
  },
  {
    name: 'reader',
    about: 'waits for a broadcast, one a second: not in the latency',
    share: 6,
    workflow: reader,
    restsMs: null,
    endsAs: 'succeeded',
  },
]

export const workflows = [...kinds.map((kind) => kind.workflow), booking]

/** The kind that a number between 0 and 1 falls on. */
export function kindAt(fraction: number): Kind {
  let left = fraction * kinds.reduce((sum, { share }) => sum + share, 0)
  for (const kind of kinds) {
    left -= kind.share
    if (left < 0) return kind
  }
  return kinds[0]!
}

export function orderOf(number: number): Order {
  const customer = `customer-${number % 10_000}`
  return { number, customer, items: Array.from({ length: 2 + (number % 4) }, (_, at) => `item-${number}-${at}`) }
}
