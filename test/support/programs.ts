// Programs for the countdown: small, and together everything that a run can go through.

import { vi } from 'vitest'
import { fatal, workflow, type Workflow } from 'holdfast'
import { order } from '../../examples/order.ts'
import type { Program, Tools } from './countdown.ts'

const id = '01b8dac5-b000-7000-8000-000000000001'

const orders: Program = {
  name: 'the order of the demo',
  runIds: [id],
  workflows: ({ clock }) => {
    // The steps of the demo take their time on the machine's clock.
    vi.stubGlobal('setTimeout', (call: () => void, ms: number) => clock.after(ms, call))
    return [order]
  },
  play: ({ ask }) => ask(async (holdfast) => void (await holdfast.start(order, { id: '42', total: 99 }, { id }))),
}

const trip = ({ effect, pause }: Tools) =>
  workflow('trip', { retry: { maxAttempts: 2, initial: '1s' } }, async (ctx) => {
    for (const part of ['flight', 'hotel']) {
      await ctx.step(part, () => effect(`book ${part}`), { undo: () => effect(`undo ${part}`) })
    }
    await ctx.step('pay', async () => {
      await pause(100)
      effect('pay')
      throw fatal('The card is empty')
    })
  })

const undone: Program = {
  name: 'a failure that is undone',
  runIds: [id],
  workflows: (tools) => [trip(tools)],
  play: ({ ask }) => ask(async (holdfast) => void (await holdfast.start('trip', undefined, { id }))),
}

const rounds: Program = {
  name: 'a run that begins anew, with a key',
  runIds: [id],
  workflows: ({ effect }) => {
    const count: Workflow<number, string> = workflow('count', async (ctx, n: number): Promise<string> => {
      await ctx.step('tick', () => effect(`tick ${n}`))
      if (n === 2) await ctx.sleep('2s')
      return n < 3 ? ctx.continueAsNew(n + 1) : `counted to ${n}`
    })
    return [count]
  },
  play: async ({ ask }) => {
    const start = { id, key: 'counter', idempotencyKey: 'once' }
    await ask((holdfast) => holdfast.start('count', 1, start))
    // A start that is repeated under the same key gets the same run.
    await ask((holdfast) => holdfast.start('count', 1, { idempotencyKey: 'once' }))
  },
}

const patience: Program = {
  name: 'sleeps and retries, short and long',
  runIds: [id],
  workflows: ({ effect, times }) => [
    workflow('patience', async (ctx) => {
      const flaky = (name: string) => () => {
        effect(name)
        if (times(name) < 2) throw new Error('Not yet')
        return name
      }
      const first = await ctx.step('soon', flaky('soon'), { retry: { initial: '1s', jitter: { mode: 'none' } } })
      await ctx.sleep('2s')
      const second = await ctx.step('late', flaky('late'), {
        retry: { initial: '7s', jitter: { mode: 'none' } },
      })
      return [first, second, ctx.uuid().length]
    }),
  ],
  play: ({ ask }) => ask(async (holdfast) => void (await holdfast.start('patience', undefined, { id }))),
}

const halfWay = ({ effect, pause }: Tools) =>
  workflow('half-way', async (ctx) => {
    await ctx.step('book', () => effect('book'), { undo: () => effect('unbook') })
    await ctx.step('think', async () => {
      effect('begin to think')
      await pause(3_000)
    })
    await ctx.sleep('1 h')
    return 'never reached by who is cancelled'
  })

const cancelledAsleep: Program = {
  name: 'cancelled while it sleeps',
  runIds: [id],
  isSteered: true,
  workflows: ({ effect, ...tools }) => [halfWay({ effect, ...tools, pause: async () => effect('thought') })],
  play: async (person) => {
    await person.ask((holdfast) => holdfast.start('half-way', undefined, { id }))
    await person.until('thought')
    await person.clock.advance('1s')
    await person.ask((holdfast) => holdfast.cancel(id, { reason: 'asked to' }))
  },
}

const cancelledBusy: Program = {
  name: 'cancelled in the middle of a step',
  runIds: [id],
  isSteered: true,
  workflows: (tools) => [halfWay(tools)],
  play: async (person) => {
    await person.ask((holdfast) => holdfast.start('half-way', undefined, { id }))
    await person.until('begin to think')
    await person.ask((holdfast) => holdfast.cancel(id, { reason: 'asked to' }))
  },
}

const stops: Program = {
  name: 'paused and resumed, while it sleeps and while it works',
  runIds: [id],
  isSteered: true,
  workflows: ({ effect, pause }) => [
    workflow('stops', async (ctx) => {
      await ctx.step('work', async () => {
        effect('begin to work')
        await pause(2_000)
      })
      await ctx.sleep('2s')
      return ctx.step('end', () => 'done')
    }),
  ],
  play: async (person) => {
    const { ask, untilStatus } = person
    await ask((holdfast) => holdfast.start('stops', undefined, { id }))
    await person.until('begin to work')
    await ask((holdfast) => granted(holdfast.pause(id, { note: 'wait' })))
    await untilStatus(id, 'paused', 'succeeded')
    await ask((holdfast) => granted(holdfast.resume(id)))
  },
}

const secondChance: Program = {
  name: 'retried by an operator after it failed',
  runIds: [id],
  endings: 2,
  workflows: ({ effect, times }) => [
    workflow('second-chance', async (ctx) => {
      await ctx.step('first', () => effect('first'))
      return ctx.step('hard', () => {
        effect('hard')
        if (times('repaired') === 0) throw fatal('Broken')
        return 'done'
      })
    }),
  ],
  play: async ({ ask, effect, untilStatus }) => {
    await ask((holdfast) => holdfast.start('second-chance', undefined, { id }))
    await untilStatus(id, 'failed')
    effect('repaired')
    await ask((holdfast) => granted(holdfast.retry(id)))
  },
}

/** A request that is repeated after it took effect is answered that there is nothing to do. */
async function granted(controlled: Promise<unknown>): Promise<void> {
  await controlled.catch((error: unknown) => {
    if ((error as { readonly code?: unknown }).code !== 'WRONG_STATUS') throw error
  })
}

export const programs: readonly Program[] = [
  orders,
  undone,
  rounds,
  patience,
  cancelledAsleep,
  cancelledBusy,
  stops,
  secondChance,
]
