// Tests of a workflow, for any test runner: `node --import tsx --test examples/testing/checkout.test.ts` runs them, and so does
// vitest. All they need is a function that takes a name and a test.

import assert from 'node:assert/strict'
import { createTest, crashEverywhere } from 'holdfast/testing'
import { checkoutFor } from './checkout.ts'
import { FakeShop } from './fake-shop.ts'
import { test } from './runner.ts'

let shop = new FakeShop()
const checkout = checkoutFor(() => shop)
const order = { id: '42', total: 99, goods: ['tea', 'pot'] }
const freshShop = (): { shop: FakeShop } => ({ shop: (shop = new FakeShop()) })

test('an approved order is shipped, and its two days pass in a moment', async () => {
  freshShop()
  const t = await createTest({ workflows: [checkout] })
  const run = await t.start(checkout, order)
  const [waiting] = await t.drain()
  assert.deepEqual(waiting?.waitsFor[0], { kind: 'signal', name: 'approved' })
  await t.advance('47h')
  await t.signal(run, 'approved', { by: 'Ada' })
  await t.drain()
  assert.deepEqual(await run.result(), { state: 'shipped', parcel: 'done: ship 2', by: 'Ada' })
  await t.close()
})

test('an order that nobody approves is paid back', async () => {
  freshShop()
  const t = await createTest({ workflows: [checkout] })
  const run = await t.start(checkout, order)
  assert.deepEqual(await t.drain({ time: true }), [])
  assert.deepEqual(await run.result(), { state: 'expired' })
  assert.deepEqual(shop.deeds, ['charge 99', 'reserve tea', 'reserve pot', 'refund done: charge 99'])
  await t.close()
})

test('a bank that fails, or hangs, is asked again', async () => {
  freshShop()
  const t = await createTest({ workflows: [checkout] })
  t.fail('charge', { times: 2, error: new Error('The bank is away') })
  t.slow('charge', '1 min', { times: 1 })
  const run = await t.start(checkout, order)
  await t.signal(run, 'approved', { by: 'Ada' })
  await t.drain({ time: true })
  assert.equal((await run.result()).state, 'shipped')
  assert.deepEqual(
    t.attempts('charge').map(({ attempt, outcome }) => `${attempt} ${outcome}`),
    ['1 timed-out', '2 failed', '3 succeeded'],
  )
  await t.close()
})

test('a process that dies does no harm', async () => {
  freshShop()
  const t = await createTest({ workflows: [checkout] })
  t.slow('charge', '20s', { times: 1 })
  const run = await t.start(checkout, order)
  await t.signal(run, 'approved', { by: 'Ada' })
  await t.advance('10s')
  await t.crash()
  await t.drain({ time: true })
  assert.equal((await run.result()).state, 'shipped')
  assert.equal(t.attempts('charge').length, 2)
  assert.equal(shop.deeds.filter((deed) => deed.startsWith('charge')).length, 1)
  await t.close()
})

test('wherever its process dies, and whichever reservation is first, an order is charged and shipped once', async () => {
  const report = await crashEverywhere(checkout, order, {
    services: freshShop,
    during: async (t, run) => {
      await t.drain()
      await run.signal('approved', { by: 'Ada' })
    },
    check: ({ services }) =>
      assert.deepEqual(services.shop.deeds.toSorted(), ['charge 99', 'reserve pot', 'reserve tea', 'ship 2']),
  })
  assert.equal(report.cut, null)
  assert.equal(report.orders, 2)
  assert.ok(report.trials > 20)
})

test('a shop that does not heed keys is found out', async () => {
  const careless = (): { shop: FakeShop } => ({ shop: (shop = new FakeShop({ heedsKeys: false })) })
  const trying = crashEverywhere(checkout, order, {
    services: careless,
    during: (_, run) => run.signal('approved', { by: 'Ada' }),
    check: ({ services }) => assert.equal(services.shop.deeds.filter((deed) => deed === 'charge 99').length, 1),
  })
  await assert.rejects(trying, /the process died after step "charge" had run and before its result was recorded/)
})
