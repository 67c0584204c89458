// Workflows that are wrong in the ways that people get them wrong: each works as long as no process dies.

import { workflow } from '../../src/index.ts'

/** A bank as most of them are: every call is a charge, unless it comes with a key that was there before. */
export class Bank {
  readonly charges: number[] = []
  private readonly keys = new Map<string, number>()

  async charge(total: number, key?: string): Promise<number> {
    const known = key === undefined ? undefined : this.keys.get(key)
    if (known !== undefined) return known
    const receipt = this.charges.push(total)
    if (key !== undefined) this.keys.set(key, receipt)
    return receipt
  }
}

let bank = new Bank()

export function freshBank(): { bank: Bank } {
  bank = new Bank()
  return { bank }
}

/** Charges again when it is run again. */
export const careless = workflow('careless', {}, async (ctx, total: number) => {
  await ctx.step('check-stock', () => 'there')
  await ctx.step('charge', () => bank.charge(total))
  await ctx.step('mail', ({ idempotencyKey }) => idempotencyKey.length > 0)
  return 'charged'
})

/** Makes a key of its own for each attempt. */
export const wrongKey = workflow('wrong-key', {}, async (ctx, total: number) => {
  let attempts = 0
  await ctx.step('charge', ({ idempotencyKey }) =>
    bank.charge(total, `${idempotencyKey}${(attempts += 1)}${Math.random()}`),
  )
})

/** What it returns shows how often it was run. */
export const receipts = workflow('receipts', {}, async (ctx, total: number) =>
  ctx.step('charge', () => bank.charge(total)),
)

/** Does outside of a step what belongs into one. */
export const effectInBody = workflow('effect-in-body', {}, async (ctx, total: number) => {
  await ctx.step('look', () => 1)
  await bank.charge(total)
  await ctx.step('mail', () => 2)
})

/** Undoes twice. */
export const carelessUndo = workflow('careless-undo', { retry: { maxAttempts: 1 } }, async (ctx, total: number) => {
  await ctx.step('charge', ({ idempotencyKey }) => bank.charge(total, idempotencyKey), {
    undo: () => bank.charge(-total),
  })
  await ctx.step('ship', () => Promise.reject(new Error('Out of stock')))
})

export const randomBranch = workflow('random-branch', {}, async (ctx) => {
  if (Math.random() < 0.5) return ctx.step('heads', () => 'tails')
  return ctx.step('tails', () => 'tails')
})

export const clockBranch = workflow('clock-branch', {}, async (ctx) => {
  const isMorning = new Date().getHours() < 12
  await ctx.step(isMorning ? 'good-morning' : 'good-evening', () => 1)
})

export const clockName = workflow('clock-name', {}, async (ctx) => {
  await ctx.step(`batch-${Math.floor(Date.now() / 60_000)}`, () => 1)
})

export const clockOutput = workflow('clock-output', {}, async (ctx) => {
  await ctx.step('work', () => 1)
  return { at: Date.now() }
})

let started = 0
export const counter = workflow('counter', {}, async (ctx) => {
  started += 1
  await ctx.step(`worker-${started % 4}`, () => 1)
})

const seen = new Set<string>()
export const cache = workflow('cache', {}, async (ctx, customer: string) => {
  if (!seen.has(customer)) await ctx.step('welcome', () => 1)
  seen.add(customer)
  await ctx.step('serve', () => 1)
})

const queue = new Map<string, number>([['first', 1]])
export const mapOrder = workflow('map-order', {}, async (ctx) => {
  const [next = 'none'] = [...queue.keys()]
  queue.delete(next)
  queue.set(next, 1)
  queue.set(`${next}-again`, 1)
  await ctx.step(next, () => 1)
})

/** The result is that of whichever step is first. */
export const firstWins = workflow('first-wins', {}, async (ctx) => {
  const finished: string[] = []
  const note = async (name: string): Promise<void> => void finished.push(await ctx.step(name, () => name))
  await Promise.all([note('express'), note('post')])
  return finished[0]
})

/** Counts in memory how often it looked: a replay of it begins to count anew. */
export const neverSure = workflow('never-sure', {}, async (ctx) => {
  let looks = 0
  return ctx.until('sure', () => (looks += 1) > 2, { every: '1h' })
})
