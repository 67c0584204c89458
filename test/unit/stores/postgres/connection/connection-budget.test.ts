// Who gets a connection, and in which order, when there are too few.

import { fc } from '../../../../support/properties.ts'
import { describe, expect, it } from 'vitest'
import {
  ConnectionBudget,
  type ConnectionUse,
  type GiveBack,
} from '../../../../../src/stores/postgres/connection/connection-budget.ts'

/** Asks for places, and keeps in which order they were given. */
function rig(total: number) {
  const budget = new ConnectionBudget(total)
  const held: { readonly name: string; readonly giveBack: GiveBack }[] = []
  const order: string[] = []
  const ask = async (name: string, use: ConnectionUse, signal?: AbortSignal): Promise<void> => {
    const giveBack = await budget.take(use, { signal })
    order.push(name)
    held.push({ name, giveBack })
  }
  const giveBack = (name: string): void => held.find((one) => one.name === name)?.giveBack()
  return { budget, order, ask, giveBack }
}

const turn = (): Promise<void> => new Promise((resolve) => void setTimeout(resolve, 0))

describe('the connections of a store', () => {
  it('are lent but for three, in the order in which they were asked for', async () => {
    const { order, ask, giveBack } = rig(6)
    for (const name of ['1', '2', '3', '4', '5']) void ask(name, 'lent')
    await turn()
    expect(order).toEqual(['1', '2', '3'])
    void ask('claim', 'general')
    void ask('beat', 'heartbeat')
    void ask('commit', 'commit')
    await turn()
    expect(order).toEqual(['1', '2', '3', 'claim', 'beat', 'commit'])
    giveBack('2')
    giveBack('2')
    await turn()
    expect(order.slice(6)).toEqual(['4'])
    giveBack('1')
    await turn()
    expect(order.slice(7)).toEqual(['5'])
  })

  it('are kept for heartbeats and commits, whatever else is going on', async () => {
    const { order, ask } = rig(4)
    for (const name of ['1', '2', '3', '4']) void ask(name, 'general')
    await turn()
    expect(order).toEqual(['1', '2'])
    void ask('commit', 'commit')
    void ask('commit again', 'commit')
    void ask('beat', 'heartbeat')
    await turn()
    expect(order).toEqual(['1', '2', 'commit', 'beat'])
  })

  it('go to a heartbeat first, then to a commit, then to the call that waits longest', async () => {
    const { order, ask, giveBack } = rig(1)
    await ask('first', 'lent')
    void ask('lent', 'lent')
    void ask('read', 'general')
    void ask('commit', 'commit')
    void ask('beat', 'heartbeat')
    await turn()
    for (const name of ['first', 'beat', 'commit', 'lent', 'read']) {
      expect(order.at(-1)).toBe(name)
      giveBack(name)
      await turn()
    }
  })

  it('are waited for no longer than the caller wants', async () => {
    const { budget, ask, giveBack, order } = rig(1)
    await ask('first', 'general')
    await expect(budget.take('general', { ms: 5 })).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    const aborting = new AbortController()
    const aborted = ask('aborted', 'lent', aborting.signal)
    void ask('next', 'lent')
    aborting.abort(new Error('enough'))
    await expect(aborted).rejects.toThrow('enough')
    await expect(ask('never', 'lent', aborting.signal)).rejects.toThrow('enough')
    giveBack('first')
    await turn()
    expect(order).toEqual(['first', 'next'])
  })

  it('are never more than there are, never lent beyond the bound, and all used in the end', async () => {
    const uses = ['heartbeat', 'commit', 'general', 'lent'] as const
    const plan = fc.record({
      total: fc.integer({ min: 1, max: 8 }),
      asked: fc.array(fc.constantFrom(...uses), { maxLength: 40 }),
    })
    await fc.assert(
      fc.asyncProperty(plan, async ({ total, asked }) => {
        const budget = new ConnectionBudget(total)
        const now = { heartbeat: 0, commit: 0, general: 0, lent: 0 }
        let served = 0
        const all = asked.map(async (use) => {
          const giveBack = await budget.take(use, {})
          now[use] += 1
          expect(now.heartbeat + now.commit + now.general + now.lent).toBeLessThanOrEqual(total)
          expect(now.lent).toBeLessThanOrEqual(Math.max(1, total - 3))
          if (total >= 4 && now.heartbeat === 0) expect(now.commit + now.general + now.lent).toBeLessThan(total)
          await Promise.resolve()
          now[use] -= 1
          served += 1
          giveBack()
        })
        await Promise.all(all)
        expect(served).toBe(asked.length)
      }),
    )
  })
})
