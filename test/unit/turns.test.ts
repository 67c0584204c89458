// The turns of all runs of a process are called by one event of the loop: what one of them does must stay its own matter.

import { expect, it, onTestFinished } from 'vitest'
import { createTurns } from '../../src/system.ts'

/** What reaches the process instead of a caller. */
function uncaught(): unknown[] {
  const errors: unknown[] = []
  const others = process.listeners('uncaughtException')
  process.removeAllListeners('uncaughtException')
  process.on('uncaughtException', (error) => errors.push(error))
  onTestFinished(() => {
    process.removeAllListeners('uncaughtException')
    for (const other of others) process.on('uncaughtException', other)
  })
  return errors
}

it('a throw in the turn of one run does not cost another run its turn, and is not swallowed', async () => {
  const errors = uncaught()
  const turns = createTurns()
  const called: string[] = []
  const boom = new Error('boom')
  const call = (name: string, then = (): void => undefined) =>
    turns.next(() => {
      called.push(name)
      then()
    })
  const raise = (): never => {
    throw boom
  }
  call('a', () => call('next'))
  call('b', raise)
  call('c', raise)
  call('d')
  await new Promise((resolve) => setTimeout(resolve, 20))
  expect(called).toEqual(['a', 'b', 'c', 'd', 'next'])
  expect(errors).toEqual([boom, boom])
})
