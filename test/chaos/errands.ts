// What a client of a chaos run does, one errand after the other: starts a run, sends it what it waits for, is impatient with
// it, and waits for its end. An errand is over when its run is.

import { setTimeout } from 'node:timers/promises'
import type { Draw } from '../simulation/draw.ts'
import type { Desk } from './desk.ts'
import type { Inputs, Kind } from './workload.ts'

export interface Errand {
  readonly desk: Desk
  readonly draw: Draw
  /** The client who does it. */
  readonly proc: string
  /** Distinguishes this errand from every other one. */
  readonly name: string
}

type Common = Inputs['saga']

/** How often each kind of errand is done. */
const errands: readonly (readonly [weight: number, run: (errand: Errand, common: Common) => Promise<void>])[] = [
  [5, (errand, common) => controlled(errand, 'line', { ...common, length: errand.draw.pick([1, 1, 3, 8, 16]) })],
  [3, (errand, common) => controlled(errand, 'nap', { ...common, sleepMs: errand.draw.int(50, 2_500) })],
  [3, corresponded],
  [3, offered],
  [3, supplied],
  [1, published],
  [3, accompanied],
  [3, (errand, common) => controlled(errand, 'saga', common)],
  [2, (errand, common) => controlled(errand, 'retry', { ...common, failures: errand.draw.int(0, 3) })],
  [
    2,
    (errand, common) => controlled(errand, 'rounds', { ...common, round: 1, rounds: errand.draw.int(1, 8), seen: [] }),
  ],
]

export function doErrand(errand: Errand): Promise<void> {
  const { draw, name } = errand
  const chosen = draw.pick(errands.flatMap(([weight, run]) => Array.from({ length: weight }, () => run)))
  return chosen(errand, { n: name, ms: draw.pick([10, 40, 150, 400, 900]) })
}

/** Starts a run, sometimes from two sides at once, and sometimes again with another input, which must be refused. */
async function begun<K extends Kind>({ desk, draw, proc, name }: Errand, kind: K, input: Inputs[K]): Promise<string> {
  const twin = draw.chance(0.25) ? desk.start(`${proc}-twin`, kind, input, name) : null
  const [run] = await Promise.all([desk.start(proc, kind, input, name), twin])
  if (draw.chance(0.05)) await desk.start(proc, kind, { ...input, n: `${input.n} otherwise` }, name)
  if (run === null) throw new Error(`The start of ${name} was refused.`)
  return run
}

/** A run to which impatient people do things while it is on its way. */
async function controlled<K extends Kind>(errand: Errand, kind: K, input: Inputs[K]): Promise<void> {
  const run = await begun(errand, kind, input)
  await Promise.all([impatience(errand, run), errand.desk.ended(errand.proc, run)])
}

async function impatience({ desk, draw, proc }: Errand, run: string): Promise<void> {
  const whim = draw.fraction()
  await setTimeout(draw.int(0, 1_500))
  if (whim < 0.12) await desk.cancel(proc, run)
  else if (whim < 0.24) {
    await desk.pause(proc, run)
    await setTimeout(draw.int(50, 1_200))
    await desk.resume(proc, run)
  } else if (whim < 0.5) {
    for (let times = 0; times < 3; times += 1) {
      await desk.query(proc, run, 'done')
      await setTimeout(draw.int(20, 200))
    }
  }
}

/** Letters, one after the other, some of them twice. */
async function corresponded(errand: Errand, common: Common): Promise<void> {
  const { desk, draw, proc, name } = errand
  const count = draw.int(1, 6)
  const run = await begun(errand, 'inbox', { ...common, count })
  const letters = async (): Promise<void> => {
    for (let order = 1; order <= count; order += 1) {
      const id = `${name}-letter-${order}`
      await desk.signal(proc, run, 'mail', id, order)
      if (draw.chance(0.2)) await desk.signal(proc, run, 'mail', id, order)
      await setTimeout(draw.int(0, 300))
    }
  }
  await Promise.all([letters(), impatience(errand, run), desk.ended(proc, run)])
}

/** An offer that may come too late. */
async function offered(errand: Errand, common: Common): Promise<void> {
  const { desk, draw, proc, name } = errand
  const waitMs = draw.int(100, 2_000)
  const run = await begun(errand, 'offer', { ...common, waitMs })
  await setTimeout(draw.int(0, waitMs * 1.5))
  await Promise.all([desk.signal(proc, run, 'offers', `${name}-offer`, 1), desk.ended(proc, run)])
}

/** Items for a queue, and a run that takes some, perhaps others. */
async function supplied(errand: Errand, common: Common): Promise<void> {
  const { desk, draw, proc, name } = errand
  const count = draw.int(1, 4)
  const supply = async (): Promise<void> => {
    for (let item = 1; item <= count; item += 1) await desk.broadcast(proc, `${name}-item-${item}`)
  }
  const isEarly = draw.chance(0.5)
  if (isEarly) await supply()
  const run = await begun(errand, 'consume', { ...common, count, idleMs: draw.int(800, 3_000) })
  await Promise.all([isEarly ? undefined : supply(), impatience(errand, run), desk.ended(proc, run)])
}

/** An issue that is published line by line, and readers who come early and late. */
async function published(errand: Errand, common: Common): Promise<void> {
  const { desk, draw, proc, name } = errand
  const topic = `chaos.issue-${name}`
  const lines = draw.int(2, 5)
  const reader = async (number: number): Promise<void> => {
    const count = draw.int(1, lines)
    await setTimeout(draw.int(0, 1_200))
    const own = { ...errand, name: `${name}-reader-${number}` }
    const run = await begun(own, 'read', { ...common, n: own.name, topic, count })
    await desk.ended(proc, run)
  }
  const press = async (): Promise<void> => {
    for (let line = 1; line <= lines; line += 1) {
      await desk.broadcast(proc, `${name}-line-${line}`, topic)
      await setTimeout(draw.int(0, 300))
    }
  }
  await Promise.all([press(), reader(1), reader(2), reader(3)])
}

async function accompanied(errand: Errand, common: Common): Promise<void> {
  const { draw } = errand
  const children = draw.int(1, 4)
  await controlled(errand, 'parent', { ...common, children, failing: draw.int(-children, children - 1) })
}
