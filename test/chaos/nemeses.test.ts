// Every nemesis strikes once, on a real field with work in it, and hits; afterwards everything works again. What it leaves
// behind is judged elsewhere: here it is shown that a storm is one.

import { setTimeout } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createHoldfast, type Holdfast } from '../../src/index.ts'
import { Draw } from '../simulation/draw.ts'
import { openField, type FieldEvent, type StoreKind, type StrikeField } from './field.ts'
import { nemeses } from './nemeses/index.ts'
import { startStorm } from './storm.ts'
import { chaosWorkflows } from './workload.ts'

const silent = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }
// Both versions of the code have it, and neither has changed it.
const { retry } = chaosWorkflows(null, 1)

describe.each<StoreKind>(['sqlite', 'postgres'])('on %s', { timeout: 60_000 }, (store) => {
  const events: FieldEvent[] = []
  let field: StrikeField
  let client: Holdfast
  let isOver = false
  let load: Promise<void>

  beforeAll(async () => {
    field = await openField({ store, workers: 2, leaseMs: 1_500, onEvent: (event) => events.push(event) })
    client = await createHoldfast({ store: field.url, workflows: [retry], logger: silent })
    load = keepBusy()
  }, 60_000)

  afterAll(async () => {
    isOver = true
    await load
    await client.close()
    await field.close()
  }, 60_000)

  /** Without work a nemesis hits nobody. */
  async function keepBusy(): Promise<void> {
    for (let n = 1; !isOver; n += 1) {
      // A server that is down is down for this client, too: then it comes later.
      await client.start(retry, { n: `${n}`, ms: 50, failures: 0 })
      await setTimeout(60)
    }
  }

  // Once is enough; the storm has some of those again that fit every store.
  const own = nemeses.filter(({ stores }) => stores.at(-1) === store).map((one) => [one.name, one] as const)

  it.each(own)('%s strikes, and is taken back', async (_, nemesis) => {
    const last = (ms: number): Promise<void> => setTimeout(Math.min(ms, 300))
    // A blow may hit nothing, as when nobody asks for anything while statements are cancelled: then it is dealt again, as in
    // a storm.
    let blow = 0
    const strike = (): Promise<boolean> => nemesis.strike(field, Draw.of(1, 'nemesis', ++blow), last)
    await expect.poll(strike, { timeout: 30_000 }).toBe(true)
    await field.heal()
    const run = await client.start(retry, { n: 'after', ms: 1, failures: 0 })
    expect(await run.result({ timeout: '20s' })).toEqual(['stubborn of after'])
  })

  it('strikes one after another in a storm, until it is over', async () => {
    const only = ['kill', 'stand-still']
    const storm = startStorm(field, { seed: 1, only })
    await expect.poll(() => Math.min(...storm.counts.values()), { timeout: 30_000 }).toBeGreaterThan(0)
    await storm.stop()
    const struck = [...storm.counts.values()]
    await field.heal()
    expect([...storm.counts.keys()]).toEqual(only)
    expect([...storm.counts.values()]).toEqual(struck)
    expect(() => startStorm(field, { seed: 1, only: ['meteor'] })).toThrow('No such nemesis')
  })

  it('tells what happened to whom, and that nothing happened that must not', () => {
    expect(events.filter(({ kind }) => kind === 'violation')).toEqual([])
    const died = field.crew.hands.filter(({ exit }) => exit !== null)
    expect(died.length).toBeGreaterThan(0)
    // Every effect is of a tenure that is known to be over, or of one that is not yet.
    const alive = new Set(field.crew.posts.map(({ hand }) => hand.id))
    const effects = field.effects()
    expect(effects.length).toBeGreaterThan(50)
    const { goneAt } = field
    const unknown = effects.filter(({ hand }) => !goneAt.has(hand) && !alive.has(hand.split('/')[0] ?? ''))
    expect(unknown).toEqual([])
    expect(field.hands.at(-1)?.tail.length).toBeGreaterThan(0)
  })
})
