// Far more transactions than connections, each of two seconds, under a lease that all of them together outlast many times:
// heartbeats are in time, and nothing is begun twice.

import { expect, it } from 'vitest'
import { workflow } from 'holdfast'
import { place, type Tx } from './lent.ts'

it.for([undefined, 10])(
  'a hundred transactions of two seconds over %s connections',
  { timeout: 180_000 },
  async (connections) => {
    const here = await place(connections === undefined ? {} : { connections })
    const beats: number[] = []
    const beat = here.store.beat.bind(here.store)
    here.store.beat = async (request) => {
      const from = performance.now()
      const answer = await beat(request)
      beats.push(performance.now() - from)
      return answer
    }
    let begun = 0
    let now = 0
    let most = 0
    const long = workflow('long', (ctx) =>
      ctx.transaction('hold', async (tx: Tx) => {
        begun += 1
        most = Math.max(most, (now += 1))
        await tx.query('select pg_sleep(2)')
        now -= 1
      }),
    )
    const holdfast = await here.open({ workflows: [long] })
    await holdfast.work({ lease: '10s' })
    const from = performance.now()
    const runs = await Promise.all(Array.from({ length: 100 }, () => holdfast.start(long)))
    await Promise.all(runs.map((run) => run.result({ timeout: '150s' })))
    const seconds = (performance.now() - from) / 1_000
    expect(begun).toBe(100)
    expect(most).toBe((connections ?? 13) - 3)
    expect(here.lines.filter(({ level }) => level === 'warn' || level === 'error')).toEqual([])
    expect((await here.connections()).length).toBeLessThanOrEqual(connections ?? 13)
    const slowest = Math.max(...beats)
    console.log(
      `${most} at once: ${seconds.toFixed(1)} s, ${beats.length} beats, the slowest in ${slowest.toFixed(0)} ms`,
    )
  },
)
