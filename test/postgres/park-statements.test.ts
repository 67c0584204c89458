// Parking and delivery, statement by statement on a real Postgres: one of the two is held up after a statement that the
// database has executed and its caller has not heard of, and the other one comes in between.

import { describe, expect, it } from 'vitest'
import type { Committed } from '../../src/store.ts'
import { opened, proxied } from './proxied.ts'

const wait = { kind: 'waiting', name: 'w', meta: { conditions: [] }, data: null } as const
const lateMs = 100

const delivering = {
  'its beginning': /^begin\b/,
  'its lock': /for no key update/,
  'its look': /as sent/,
  'its message': /insert into \S+messages/,
  'its COMMIT': /^commit$/,
} as const

/** What moves the grade of undoing is judged under a lock, in a transaction; everything else is one statement. */
const parkings = {
  'in one statement': [null, { 'its update': /update \S+runs as run set seq = given\.seq/ }],
  'under a lock': [
    'possible',
    {
      'its beginning': /^begin\b/,
      'its lock': /for no key update/,
      'its look': /as place/,
      'its write': /update \S+runs as run set type = given\.type/,
      'its COMMIT': /^commit$/,
    },
  ],
} as const

const cases = Object.entries(parkings).flatMap(([how, [undo, parking]]) => [
  ...Object.entries(delivering).map(([after, on]) => ({ late: 'delivery', after, how, undo, on })),
  ...Object.entries(parking).map(([after, on]) => ({ late: 'parking', after, how, undo, on })),
])

describe('WC-S1 IF-C1 parking and delivery, one of them held up', () => {
  it.for(cases)('$late after $after, parking $how: the run does not sleep on', async ({ late, undo, on }) => {
    const { url, schema, proxy } = await proxied()
    const { store: near, bench } = await opened({ url, schema })
    const { store: far } = await opened({ url: proxy.url, schema })
    const held = await bench.hold()
    const park = bench.transition(held, { append: [wait], status: 'waiting', parkIf: { inbox: 0 }, undo })
    const message = bench.message(held.runId)
    const [parker, deliverer] = late === 'parking' ? [far, near] : [near, far]
    const struck = proxy.strike({ on, how: lateMs })
    // Apart, so that they wait for each other: what goes with others is answered as busy instead, and is sent again.
    const acts = {
      parking: () => parker.commit([park], { mayWait: true }),
      delivery: () => deliverer.deliver([message], { mayWait: true }),
    }
    const first = acts[late as keyof typeof acts]()
    await struck
    const second = late === 'parking' ? acts.delivery() : acts.parking()
    const [[parked], [delivered]] = (await Promise.all(late === 'parking' ? [first, second] : [second, first])) as [
      readonly Committed[],
      readonly { readonly outcome: string }[],
    ]
    const [row] = await near.get([held.runId])
    expect(row?.inbox).toBe(1)
    if (delivered?.outcome === 'delivered') {
      expect(parked).toMatchObject({ outcome: 'committed', released: true })
      expect(row).toMatchObject({ status: 'waiting', readiness: 'ready', session: null })
    } else {
      expect(delivered?.outcome).toBe('queued')
      expect(parked).toMatchObject({ outcome: 'committed', released: false, inbox: 1 })
      expect(row).toMatchObject({ status: 'running', readiness: 'leased', session: held.lease.session })
    }
  })
})
