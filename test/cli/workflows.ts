// The workflows of these tests, as a module that a user would name. Its steps are given what to do by their input.

import { topic, workflow } from '../../src/index.ts'

export const greet = workflow('demo.greet', async (ctx, name: string) => {
  const greeting = await ctx.step('greet', () => `Hello, ${name}`)
  return { greeting, at: new Date(0) }
})

export const fail = workflow('demo.fail', { retry: { maxAttempts: 1 } }, async (ctx, message: string) =>
  ctx.step('try', () => {
    throw new Error(message)
  }),
)

/** What is sent in its name is kept if its run has ended. */
export const paid = topic<{ readonly amount: number }>('paid', { onUnread: 'dead-letter' })

/** Sleeps until it is cancelled. */
export const sleepy = workflow('demo.sleepy', async (ctx) => {
  await ctx.step('prepare', () => 'ready')
  await ctx.sleep('1 day')
})

export const many = workflow('demo.many', async (ctx, steps: number) => {
  await Promise.all(Array.from({ length: steps }, (_, at) => ctx.step(`step-${at}`, () => ({ at }))))
  return steps
})

/** A step that takes a while and says so on standard output. */
export const slow = workflow('demo.slow', async (ctx, ms: number) =>
  ctx.step('slow', async () => {
    console.log('slow step begins')
    await new Promise((resolve) => setTimeout(resolve, ms))
    return 'slept'
  }),
)
