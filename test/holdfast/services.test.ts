// What a worker does in the background, when it goes wrong: at the start, at the end and in between.

import { describe, expect, it } from 'vitest'
import { workflow } from 'holdfast'
import { keepLines } from './open.ts'
import { stuckOnce } from './stuck.ts'
import { abandon, changed, gone, kindsOf, unreliable, virtualWorld } from './virtual-world.ts'

describe('a worker', () => {
  it('that cannot look around at its start leaves nothing behind, and the next one begins', async () => {
    const { open, after, clock, store } = virtualWorld()
    const logger = keepLines()
    const quick = workflow('quick', () => 'done')
    const { line, store: flaky } = unreliable(store)
    const holdfast = await open({
      store: changed(flaky, { beat: (request) => store.beat(request) }),
      workflows: [quick],
      logger,
    })
    line.isUp = false
    await expect(holdfast.work()).rejects.toThrow('The store is gone')
    expect(clock.pending).toBe(0)
    line.isUp = true
    await holdfast.work()
    expect(await after((await holdfast.start(quick)).result())).toBe('done')
    expect(logger.lines).toEqual([])
  })

  it('that cannot give back or say goodbye stops all the same, and others take over from it', async () => {
    const { open, until, after, clock, store } = virtualWorld()
    const logger = keepLines()
    const { stuck, signals } = stuckOnce()
    const { line, store: flaky } = unreliable(store)
    const mute = changed(flaky, { release: (leases) => (line.isUp ? store.release(leases) : gone()) })
    const first = await open({ store: mute, workflows: [stuck], logger })
    const worker = await first.work({ shutdownTimeout: '1s' })
    const run = await first.start(stuck)
    await until(() => signals.length === 1)
    line.isUp = false
    await after(worker.stop())
    expect(clock.pending).toBe(0)
    expect(logger.lines.map(({ message }) => message)).toEqual([
      'Could not release the held runs; other workers will recover them.',
      'The session could not be ended; it ends with its lease.',
    ])

    const second = await open({ workflows: [stuck] })
    await second.work()
    expect(await after(second.run(run).result())).toEqual(['kept', 'at time 2'])
  })

  it('that is stopped and started again goes on as a newcomer, and nobody thinks it dead', async () => {
    const { open, after } = virtualWorld()
    const logger = keepLines()
    const quick = workflow('quick', () => 'done')
    const holdfast = await open({ workflows: [quick], logger })
    for (let time = 0; time < 3; time += 1) {
      const worker = await holdfast.work()
      expect(await after((await holdfast.start(quick)).result())).toBe('done')
      await worker.stop()
    }
    expect(logger.lines).toEqual([])
  })
})

describe('a background service that throws', () => {
  it.each(['rescue', 'claim', 'beat'] as const)(
    'IF-P5, HE-P3: is logged and goes on alone, the others are not disturbed: %s',
    async (service) => {
      const { open, after, clock, store } = virtualWorld()
      const logger = keepLines()
      const failing = { isOn: false, count: 0 }
      const broken = changed(store, {
        [service]: (...request: never[]) => {
          if (!failing.isOn) return (store[service] as (...all: never[]) => unknown).apply(store, request)
          failing.count += 1
          throw new TypeError('A defect in the service')
        },
      })
      const quick = workflow('quick', (ctx) => ctx.step('go', () => 'done'))
      const foreign = workflow('foreign', () => 'done elsewhere')
      const { stuck, signals, letGo } = stuckOnce()
      const holdfast = await open({ store: broken, workflows: [quick, stuck], logger })
      await holdfast.work()
      const before = await holdfast.start(stuck)
      const starter = await open({ workflows: [quick, foreign] })
      const orphan = await starter.start(foreign)
      await abandon(store, 'dead', 'foreign')
      failing.isOn = true
      await clock.advance('25s')
      expect(failing.count).toBeGreaterThan(0)
      const logged = logger.lines.filter(({ details }) => details['error'] instanceof TypeError)
      expect(logged.map(({ level }) => level)).toEqual(Array.from({ length: failing.count }, () => 'warn'))
      // What was moving goes on.
      letGo()
      expect(await after(before.result())).toEqual(['kept', 'at time 1'])
      expect(signals[0]?.aborted).toBe(false)

      failing.isOn = false
      expect(await after((await starter.start(quick)).result())).toBe('done')
      await clock.advance('30s')
      expect(await kindsOf(starter, orphan)).toEqual(['started', 'crashed'])
    },
  )
})
