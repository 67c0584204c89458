// The workflow that `checkout.test.ts` tests: it charges, reserves two things at once, waits for an approval, and ships. If
// nobody approves in time, what was charged is paid back.

import { workflow } from 'holdfast'

export interface Order {
  readonly id: string
  readonly total: number
  readonly goods: readonly string[]
}

/** What the shop needs of the world. Every call that changes something takes a key: the same key, the same deed. */
export interface Shop {
  charge(total: number, key: string): Promise<string>
  refund(receipt: string, key: string): Promise<void>
  reserve(item: string, key: string): Promise<string>
  ship(shelves: readonly string[], key: string): Promise<string>
}

export function checkoutFor(shop: () => Shop) {
  return workflow('shop.checkout', { retry: { maxAttempts: 4, initial: '1 min' } }, async (ctx, order: Order) => {
    const receipt = await ctx.step('charge', ({ idempotencyKey }) => shop().charge(order.total, idempotencyKey), {
      timeout: '30s',
    })
    const shelves = await Promise.all(
      order.goods.map((item) =>
        ctx.step(`reserve-${item}`, ({ idempotencyKey }) => shop().reserve(item, idempotencyKey)),
      ),
    )
    const answer = await ctx.race({ approved: ctx.receive<{ by: string }>('approved'), late: ctx.sleep('2 days') })
    if (answer.tag === 'late') {
      await ctx.step('refund', ({ idempotencyKey }) => shop().refund(receipt, idempotencyKey))
      return { state: 'expired' as const }
    }
    const parcel = await ctx.step('ship', ({ idempotencyKey }) => shop().ship(shelves, idempotencyKey))
    return { state: 'shipped' as const, parcel, by: answer.value.by }
  })
}
