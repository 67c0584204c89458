// Timers that gave up, and what an operator does about them, on every store.

import { describe, expect, it } from 'vitest'
import { decider, decision } from 'holdfast'
import { everyStore } from '../stores.ts'
import { until } from '../../support/until.ts'

type Input =
  | { readonly type: 'Set'; readonly id: string; readonly key: string | null }
  | { readonly type: 'Note' | 'Close'; readonly id: string }
  | { readonly type: 'Ring'; readonly of: string }

/** A clock whose alarms cannot be decided while it is broken. */
function clockOf(world: { isBroken: boolean }) {
  return decider('clock', {
    initial: () => [] as readonly string[],
    evolve: (seen, event: { type: 'Set' | 'Noted' | 'Rang' | 'Closed' }) => [...seen, event.type],
    decide: (_seen, input: Input) => {
      switch (input.type) {
        case 'Note':
          return decision({ type: 'Noted' })
        case 'Close':
          return decision({ type: 'Closed' })
        case 'Ring':
          if (world.isBroken) throw new Error(`Too loud: ${input.of}`)
          return decision({ type: 'Rang' })
        case 'Set': {
          const { key } = input
          const ring: Input = { type: 'Ring', of: key ?? 'none' }
          const set = decision({ type: 'Set' })
          return key === null ? set.timer({ after: 1 }, ring) : set.timer(key, { after: 1 }, ring)
        }
      }
    },
    id: { '*': 'id', Ring: null },
    isTerminal: (seen) => seen.includes('Closed'),
    retry: { maxAttempts: 2, kind: 'constant', initial: 1 },
  })
}

describe.each(everyStore)('a timer that gave up, on $name,', ({ make }) => {
  /** An instance with a dead timer of that key. */
  const broken = async (key: string | null) => {
    const { open, store } = await make()
    const world = { isBroken: true }
    const clock = clockOf(world)
    const [holdfast, operator] = [await open({ workflows: [clock] }), await open({ workflows: [clock] })]
    await holdfast.work()
    await holdfast.execute(clock, { type: 'Set', id: '1', key })
    await until('it gave up', async () => (await operator.deadTimers(clock, '1')).length === 1)
    const isSound = async (): Promise<void> => {
      const found = (await store.doctor()).filter(({ offenders }) => offenders.length > 0)
      expect(found).toEqual([])
    }
    return { holdfast, operator, clock, world, isSound }
  }

  it('IF-R4 IF-R7 is listed, and decided when it is retried', async () => {
    const { holdfast, operator, clock, world, isSound } = await broken('alarm')
    await isSound()
    expect(await operator.deadTimers(clock, '1')).toMatchObject([{ name: 'alarm', key: 'alarm', attempts: 2 }])
    world.isBroken = false
    expect(await operator.retryDeadTimer(clock, '1', 'alarm')).toEqual({ outcome: 'retried' })
    await until('it rang', async () => (await operator.state(clock, '1'))?.includes('Rang') === true)
    expect(await operator.deadTimers(clock, '1')).toEqual([])
    expect(await operator.retryDeadTimer(clock, '1', 'alarm')).toEqual({ outcome: 'not-dead' })
    expect(await holdfast.history(clock, '1')).toMatchObject([
      { event: { type: 'Set' } },
      { event: { type: 'Rang' }, cause: { input: 'Ring', from: { kind: 'timer', name: 'alarm' } } },
    ])
    await isSound()
  })

  it('IF-R4 has all its attempts again when it is retried, also without a key', async () => {
    const { operator, clock } = await broken(null)
    const [first] = await operator.deadTimers(clock, '1')
    expect(first).toMatchObject({ key: null, attempts: 2 })
    const name = first?.name ?? ''
    expect(name).toMatch(/^#\d+$/)
    expect(await operator.retryDeadTimer('clock', '1', name)).toEqual({ outcome: 'retried' })
    const again = async () => (await operator.deadTimers(clock, '1')).filter(({ seq }) => seq !== first?.seq)
    await until('it gave up again', async () => (await again()).length === 1)
    expect(await again()).toMatchObject([{ name, key: null, attempts: 2 }])
  })

  it('IF-R4 is listed no more when it is discarded, and nothing fires', async () => {
    const { holdfast, operator, clock, world, isSound } = await broken('alarm')
    world.isBroken = false
    expect(await operator.discardDeadTimer(clock, '1', 'alarm')).toEqual({ outcome: 'discarded' })
    expect(await operator.deadTimers(clock, '1')).toEqual([])
    expect(await operator.discardDeadTimer(clock, '1', 'alarm')).toEqual({ outcome: 'not-dead' })
    // Also where the instance was in memory before.
    await holdfast.execute(clock, { type: 'Note', id: '1' })
    expect(await holdfast.state(clock, '1')).toEqual(['Set', 'Noted'])
    expect((await holdfast.inspect(clock, '1'))?.timers).toEqual([])
    await isSound()
  })

  it('is dead no more when its key is used again, or when the instance is over', async () => {
    const { holdfast, operator, clock, world } = await broken('alarm')
    world.isBroken = false
    await holdfast.execute(clock, { type: 'Set', id: '1', key: 'alarm' })
    expect(await operator.deadTimers(clock, '1')).toEqual([])
    expect(await operator.discardDeadTimer(clock, '1', 'alarm')).toEqual({ outcome: 'not-dead' })
    world.isBroken = true
    await holdfast.execute(clock, { type: 'Set', id: '2', key: 'alarm' })
    await until('that gave up', async () => (await operator.deadTimers(clock, '2')).length === 1)
    await holdfast.execute(clock, { type: 'Close', id: '2' })
    expect(await operator.retryDeadTimer(clock, '2', 'alarm')).toEqual({ outcome: 'not-dead' })
    expect(await operator.retryDeadTimer(clock, 'none', 'alarm')).toEqual({ outcome: 'not-dead' })
  })

  it('stays as it is while its instance is paused', async () => {
    const { operator, clock } = await broken('alarm')
    const { id } = await operator.instance(clock, '1')
    await operator.pause(id)
    const error = { code: 'WRONG_STATUS', details: { id: '1', status: 'paused' } }
    await expect(operator.retryDeadTimer(clock, '1', 'alarm')).rejects.toMatchObject(error)
    await expect(operator.discardDeadTimer(clock, '1', 'alarm')).rejects.toMatchObject(error)
    await operator.resume(id)
    expect(await operator.discardDeadTimer(clock, '1', 'alarm')).toEqual({ outcome: 'discarded' })
  })

  it('is asked for by its name', async () => {
    const { open } = await make()
    const clock = clockOf({ isBroken: false })
    const holdfast = await open({ workflows: [clock] })
    const error = { code: 'INVALID_OPTION' }
    await expect(holdfast.retryDeadTimer(clock, '1', 7 as never)).rejects.toMatchObject(error)
    await expect(holdfast.discardDeadTimer(clock, '1', 7 as never)).rejects.toMatchObject(error)
  })
})
