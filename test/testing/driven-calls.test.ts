// An input that another process holds back is answered although no call of the test lets time pass.

import { expect, it } from 'vitest'
import type { Holdfast } from 'holdfast'
import { drivenBy } from '../../src/testing/kit/driven-calls.ts'
import { createVirtualClock } from '../../src/testing/virtual-clock.ts'

it('lets time pass for an input that waits, and none for one that does not', async () => {
  const clock = createVirtualClock(0)
  const execute = (_decider: unknown, waitMs: number): Promise<unknown> =>
    waitMs === 0 ? Promise.resolve(0) : new Promise((resolve) => clock.after(waitMs, () => resolve(clock.now())))
  const failing = (): Promise<never> => Promise.reject(new Error('No such instance'))
  const holdfast = { execute, executeDynamic: execute, enqueue: failing } as unknown as Holdfast
  const driven = drivenBy(clock, holdfast)
  expect(await driven.executeDynamic('order', 0)).toBe(0)
  expect(clock.now()).toBe(0)
  expect(await driven.executeDynamic('order', 500)).toBe(500)
  expect(await driven.executeDynamic('order', 90_000)).toBe(90_500)
  await expect(driven.enqueue('order', 1)).rejects.toThrow('No such instance')
  expect(clock.now()).toBe(90_500)
})

it('gives what is wrong with the world as the answer of a call that waits', async () => {
  const clock = createVirtualClock(0, () => Promise.reject(new Error('A process could not begin')))
  const unanswered = (): Promise<never> => new Promise(() => undefined)
  const holdfast = { execute: unanswered, executeDynamic: unanswered, enqueue: unanswered } as unknown as Holdfast
  const driven = drivenBy(clock, holdfast)
  await expect(driven.executeDynamic('order', 1)).rejects.toThrow('A process could not begin')
})
