// The runs that are raced: each waits shortly for something that others send it at about the time when it parks, wakes or ends.

import { topic } from '../../src/core/definition/declared-topic.ts'
import { workflow } from '../../src/functions/api/workflow.ts'

export const jobs = topic<string>('jobs', { delivery: 'one' })
export const news = topic<string>('news')

export interface Sending {
  readonly afterMs: number
  /** A run, or a topic. */
  readonly to: string
  readonly id: string
}

/** Waits twice, each time no longer than so. */
const signalled = workflow('race.signalled', async (ctx, ms: number) => {
  const first = await ctx.race({ got: ctx.receive<string>('go'), late: ctx.sleep(ms) })
  const second = await ctx.race({ got: ctx.receive<string>('go'), late: ctx.sleep(ms) })
  return [first, second].flatMap(({ tag, value }) => (tag === 'got' ? [value] : []))
})

const worker = workflow('race.worker', async (ctx, ms: number) => {
  const job = await ctx.race({ got: ctx.receive(jobs), late: ctx.sleep(ms) })
  return job.tag === 'got' ? [job.value] : []
})

const reader = workflow('race.reader', async (ctx, ms: number) => {
  const heard = await ctx.race({ got: ctx.receive(news), late: ctx.sleep(ms) })
  return heard.tag === 'got' ? [heard.value] : []
})

const child = workflow('race.child', async (ctx, ms: number) => {
  if (ms > 0) await ctx.sleep(ms)
  return ms
})

/** Ends together with its child, or shortly before or after it. */
const parent = workflow('race.parent', async (ctx, ms: number) => {
  const about = Math.round(ms * ctx.random())
  const first = await ctx.race({ child: ctx.child(child, about), late: ctx.sleep(ms) })
  return first.tag === 'child' ? await ctx.child(child, 0) : -1
})

export const racers = [signalled, worker, reader, child, parent]
