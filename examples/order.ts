// The workflow of the demo: an ordinary async function. Each step says what it does, so that you can watch it happen.

import { workflow } from '../src/index.ts'

export interface Order {
  readonly id: string
  readonly total: number
}

export const order = workflow('shop.order', { retry: { initial: '400ms' } }, async (ctx, { id, total }: Order) => {
  const receipt = await ctx.step('charge', async ({ attempt, idempotencyKey }) => {
    say(`charge    asks the bank for ${total} euros, attempt ${attempt}`)
    await takesAbout(300)
    if (attempt === 1) throw new Error('The bank did not answer')
    say('charge    the bank has paid')
    return `receipt-${idempotencyKey.slice(0, 8)}`
  })
  const [shelf, label] = await Promise.all([
    ctx.step('reserve', async () => {
      say('reserve   looks for the goods')
      await takesAbout(500)
      return 'shelf 12'
    }),
    ctx.step('label', async () => {
      say('label     prints the label')
      await takesAbout(300)
      return `parcel-${id}`
    }),
  ])
  await ctx.sleep('1s')
  const packed = await ctx.step('pack', async () => {
    say('pack      begins to pack: this takes a while')
    await takesAbout(1_500)
    say('pack      the parcel is closed')
    return 'one box'
  })
  const carrier = await ctx.step('ship', async () => {
    say('ship      hands the parcel over')
    await takesAbout(350)
    return 'Harbour Post'
  })
  return { receipt, shelf, label, packed, carrier }
})

function say(line: string): void {
  console.log(line)
}

function takesAbout(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
