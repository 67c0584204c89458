// Lets nemeses strike, one after another and several at once, until it is stopped. The seed decides which strikes when, and
// how hard; the machine decides what it hits. Each has hit something, or tries again, before any has a second turn.

import { messageOf } from '../../src/core/errors/error.ts'
import { Draw } from '../simulation/draw.ts'
import type { Last, Nemesis, StoreKind, OpenTestbed } from './testbed.ts'
import { nemeses, onRequest } from './nemeses/index.ts'

export interface StormOptions {
  readonly seed: number
  /** Only these strike, by name. @default all that fit the store */
  readonly only?: readonly string[] | undefined
}

export interface Storm {
  /** How often each has hit something. */
  readonly counts: ReadonlyMap<string, number>
  /** Nothing strikes any more, and what has struck is taken back. */
  stop(): Promise<void>
}

const atOnce = 3
/** How soon one who stays comes back when there is no server for him. */
const retryMs = 200

export function startStorm(testbed: OpenTestbed, { seed, only }: StormOptions): Storm {
  const chosen = choose(testbed.store, only)
  const passing = chosen.filter(({ isLasting }) => isLasting !== true)
  const draw = Draw.of(seed, 'nemesis')
  const counts = new Map(chosen.map(({ name }) => [name, 0]))
  const underway = new Map<string, Promise<void>>()
  /** Who has not had his turn yet. */
  let round: Nemesis[] = []
  let stop: () => void = () => undefined
  let isOver = false
  const over = new Promise<void>((resolve) => (stop = resolve)).then(() => void (isOver = true))
  const last: Last = (ms) => pause(ms, over)

  /** True if it hit something. */
  async function strike(nemesis: Nemesis, own: Draw): Promise<boolean> {
    const { name } = nemesis
    testbed.report({ kind: 'nemesis', text: `${name} strikes` })
    const outcome = await nemesis.strike(testbed, own, last).then(
      (hit) => (hit ? 'is over' : 'hit nothing'),
      // The server may be away, by the blow of another.
      (error: unknown) => `was in vain: ${messageOf(error)}`,
    )
    if (outcome === 'is over') counts.set(name, (counts.get(name) ?? 0) + 1)
    testbed.report({ kind: 'nemesis', text: `${name} ${outcome}` })
    return outcome === 'is over'
  }

  /** Strikes in its turn; if it hit nothing, it has another one in this round. */
  async function strikeInTurn(nemesis: Nemesis, own: Draw): Promise<void> {
    if (!(await strike(nemesis, own))) round.push(nemesis)
    underway.delete(nemesis.name)
  }

  /** Strikes again and again, beside all others. */
  async function stay(nemesis: Nemesis): Promise<void> {
    for (let turn = 1; !isOver; turn += 1) {
      if (!(await strike(nemesis, Draw.of(seed, 'nemesis', turn)))) await last(retryMs)
    }
  }

  async function rage(): Promise<void> {
    for (let turn = 1; !isOver; turn += 1) {
      await last(draw.between(0.1, 0.8) * testbed.leaseMs)
      while (underway.size >= atOnce) await Promise.race(underway.values())
      if (isOver) return
      if (round.length === 0) round = shuffled(passing, draw)
      const at = round.findIndex(({ name }) => !underway.has(name))
      const [nemesis] = at === -1 ? [] : round.splice(at, 1)
      // A stream of its own: what one draws does not shift what befalls the next.
      if (nemesis !== undefined) underway.set(nemesis.name, strikeInTurn(nemesis, Draw.of(seed, 'nemesis', turn)))
    }
  }

  const staying = chosen.filter(({ isLasting }) => isLasting === true).map(stay)
  const raging = rage()
  return {
    counts,
    async stop() {
      stop()
      await raging
      await Promise.all(staying)
      await Promise.all(underway.values())
    },
  }
}

function choose(store: StoreKind, only: readonly string[] | undefined): readonly Nemesis[] {
  const known = only === undefined ? nemeses : [...nemeses, ...onRequest]
  const fitting = known.filter(({ stores }) => stores.includes(store))
  const unknown = only?.filter((wanted) => !fitting.some(({ name }) => name === wanted)) ?? []
  if (unknown.length === 0) return fitting.filter(({ name }) => only?.includes(name) ?? true)
  const names = fitting.map(({ name }) => name).join(', ')
  throw new Error(`No such nemesis for ${store}: ${unknown.join(', ')}. There are: ${names}.`)
}

function shuffled<Item>(items: readonly Item[], draw: Draw): Item[] {
  return items
    .map((item) => ({ item, place: draw.fraction() }))
    .toSorted((a, b) => a.place - b.place)
    .map(({ item }) => item)
}

/** Settles after so long, or when it is over. */
async function pause(ms: number, over: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const long = new Promise<void>((resolve) => (timer = setTimeout(resolve, ms)))
  await Promise.race([long, over])
  clearTimeout(timer)
}
