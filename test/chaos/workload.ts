// The workflows of a chaos run. Each answer can be computed from the input and from what was sent, so that any other one
// is wrong; `workload-answers.ts` does that. Every step reports to the sink what it does and returns the mark of that, so that a
// recorded result can be traced to the execution that made it.
//
// There are two builds of this code, as in a rolling deploy: build 2 has changed a live workflow with `ctx.patched`, and
// both perform the same runs. A run that went the new way and falls to a worker of build 1 is paused for drift, and goes on
// when it is resumed. The change stands beside the last step of its body, because a run that has only decided for it,
// and done nothing of it yet, may still end the old way.

import { setTimeout } from 'node:timers/promises'
import { fatal, isHoldfastError, topic, workflow, type Context, type StepTools } from '../../src/index.ts'
import type { Version } from './testbed.ts'
import type { Sink } from './sink.ts'

/** What a step returns. */
export interface Trace {
  readonly mark: string
  readonly value: string
}

/** What can be sent: the payload is its id, whatever way it goes. */
export interface Sent {
  readonly id: string
}

/** What nobody took in time is kept as a dead letter. */
export const offers = topic<Sent>('chaos.offers', { onUnread: 'dead-letter' })

/** Each item goes to exactly one run. */
export const items = topic<Sent>('chaos.items', { delivery: 'one' })

/** Everyone who reads an issue reads all that it says, from its beginning. */
export const issue = (name: string): ReturnType<typeof topic<Sent>> => topic<Sent>(name, { retain: '1h' })

/** What the types of all of them begin with. */
export const typePrefix = 'chaos.'

interface Common {
  /** Distinguishes this run from others, in every value that it makes. */
  readonly n: string
  /** How long each step takes. */
  readonly ms: number
}

export interface Inputs {
  readonly line: Common & { readonly length: number }
  readonly nap: Common & { readonly sleepMs: number }
  readonly inbox: Common & { readonly count: number }
  readonly offer: Common & { readonly waitMs: number }
  readonly consume: Common & { readonly count: number; readonly idleMs: number }
  readonly read: Common & { readonly topic: string; readonly count: number }
  readonly parent: Common & { readonly children: number; readonly failing: number }
  readonly child: Common & { readonly fails: boolean }
  readonly saga: Common
  readonly retry: Common & { readonly failures: number }
  readonly rounds: Common & { readonly round: number; readonly rounds: number; readonly seen: readonly string[] }
}

export type Kind = keyof Inputs

const often = { maxAttempts: 6, kind: 'constant', initial: 60, jitter: { mode: 'none' } } as const

/** A client that only starts and reads runs needs no sink. */
export function chaosWorkflows(sink: Sink | null, build: Version) {
  async function act(ctx: Context, name: string, ms: number, tools: StepTools): Promise<string> {
    if (sink === null) throw new Error('This process does not perform runs.')
    const { attempt, idempotencyKey: key, abortSignal: signal } = tools
    const mark = await sink.begin({ run: ctx.run.id, step: name, attempt, key })
    try {
      await setTimeout(ms / 2, undefined, { signal })
    } finally {
      // Who is asked to stop has stopped.
      await sink.end(mark)
    }
    // Then nothing but a timer lies between it and its commit: a process that slept past its lease writes at once.
    await setTimeout(ms / 2, undefined, { signal })
    return mark
  }

  const step = (ctx: Context, name: string, { n, ms }: Common, failures = 0): Promise<Trace> =>
    ctx.step(
      name,
      async (tools) => {
        const mark = await act(ctx, name, ms, tools)
        if (tools.attempt <= failures) throw new Error(`Attempt ${tools.attempt} was to fail.`)
        return { mark, value: `${name} of ${n}` }
      },
      { retry: often },
    )

  const undoable = (ctx: Context, name: string, { n, ms }: Common): Promise<Trace> =>
    ctx.step(name, async (tools) => ({ mark: await act(ctx, name, ms, tools), value: `${name} of ${n}` }), {
      retry: often,
      undo: (_, tools) => act(ctx, undoOf(name), ms, tools),
    })

  const child = workflow('chaos.child', { retry: 'none' }, async (ctx, input: Inputs['child']) => {
    const { value } = await step(ctx, 'only', input)
    if (input.fails) throw new Error(`${value} fails`)
    return value
  })

  return {
    child,

    line: workflow('chaos.line', async (ctx, input: Inputs['line']) => {
      const done: Trace[] = []
      while (done.length < input.length) {
        done.push(await step(ctx, `a${done.length + 1}`, input))
        ctx.expose('done', done.length)
      }
      done.push(...(await Promise.all([step(ctx, 'b', input), step(ctx, 'c', input)])))
      ctx.expose('done', done.length)
      const isChecked = build === 2 && ctx.patched('checked')
      const check = isChecked ? [step(ctx, 'check', { ...input, ms: 10 })] : []
      // Long enough for the other build to find it half done.
      done.push(...(await Promise.all([step(ctx, 'd', { ...input, ms: input.ms + 600 }), ...check])))
      return done.map(({ value }) => value)
    }),

    nap: workflow('chaos.nap', async (ctx, input: Inputs['nap']) => {
      const before = await step(ctx, 'before', input)
      await ctx.sleep(input.sleepMs)
      return [before.value, (await step(ctx, 'after', input)).value]
    }),

    inbox: workflow('chaos.inbox', async (ctx, input: Inputs['inbox']) => {
      const seen: string[] = []
      while (seen.length < input.count) {
        seen.push((await ctx.receive<Sent>('mail')).id)
        ctx.expose('done', seen.length)
        if (seen.length % 2 === 0) await step(ctx, `after ${seen.length}`, input)
      }
      return seen
    }),

    offer: workflow('chaos.offer', async (ctx, input: Inputs['offer']) => {
      const { tag, value } = await ctx.race({ taken: ctx.receive(offers), late: ctx.sleep(input.waitMs) })
      await step(ctx, tag, input)
      return tag === 'taken' ? [value.id] : []
    }),

    consume: workflow('chaos.consume', async (ctx, input: Inputs['consume']) => {
      const seen: string[] = []
      while (seen.length < input.count) {
        const { tag, value } = await ctx.race({ item: ctx.receive(items), idle: ctx.sleep(input.idleMs) })
        if (tag === 'idle') break
        seen.push(value.id)
        await step(ctx, `use ${seen.length}`, input)
      }
      return seen
    }),

    read: workflow('chaos.read', async (ctx, input: Inputs['read']) => {
      const seen: string[] = []
      while (seen.length < input.count) seen.push((await ctx.receive(issue(input.topic))).id)
      await step(ctx, 'close', input)
      return seen
    }),

    parent: workflow('chaos.parent', async (ctx, input: Inputs['parent']) => {
      const numbers = Array.from({ length: input.children }, (_, index) => index)
      return Promise.all(
        numbers.map((index) =>
          ctx.branch(`branch ${index}`, async (own) => {
            try {
              return await own.child(child, { ...input, n: `${input.n}.${index}`, fails: index === input.failing })
            } catch (error) {
              if (isHoldfastError(error, 'CHILD_FAILED')) return 'failed'
              throw error
            }
          }),
        ),
      )
    }),

    saga: workflow('chaos.saga', { retry: 'none' }, async (ctx, input: Inputs['saga']) => {
      for (const name of ['book', 'charge', 'ship']) await undoable(ctx, name, input)
      throw fatal(`${input.n} gives up`)
    }),

    retry: workflow('chaos.retry', async (ctx, input: Inputs['retry']) => {
      return [(await step(ctx, 'stubborn', input, input.failures)).value]
    }),

    rounds: workflow('chaos.rounds', async (ctx, input: Inputs['rounds']) => {
      const { value } = await step(ctx, `round ${input.round}`, input)
      const seen = [...input.seen, value]
      if (input.round < input.rounds) await ctx.continueAsNew({ ...input, round: input.round + 1, seen })
      return seen
    }),
  } as const
}

/** What the undo of a step is called in the sink. */
export function undoOf(step: string): string {
  return `${step}:undo`
}

export type ChaosWorkflows = ReturnType<typeof chaosWorkflows>
