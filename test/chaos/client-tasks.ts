// What a client of a chaos run does, one task after the other: starts a run, sends it what it waits for, is impatient with
// it, and waits for its end. A task is over when its run is.

import { setTimeout } from 'node:timers/promises'
import type { Draw } from '../simulation/draw.ts'
import type { RecordingClient } from './recording-client.ts'
import type { Inputs, Kind } from './workload.ts'

export interface ClientTask {
  readonly client: RecordingClient
  readonly draw: Draw
  /** The client who does it. */
  readonly proc: string
  /** Distinguishes this task from every other one. */
  readonly name: string
}

type Common = Inputs['saga']

/** How often each kind of task is done. */
const tasks: readonly (readonly [weight: number, run: (task: ClientTask, common: Common) => Promise<void>])[] = [
  [5, (task, common) => controlled(task, 'line', { ...common, length: task.draw.pick([1, 1, 3, 8, 16]) })],
  [3, (task, common) => controlled(task, 'nap', { ...common, sleepMs: task.draw.int(50, 2_500) })],
  [3, corresponded],
  [3, offered],
  [3, supplied],
  [1, published],
  [3, accompanied],
  [3, (task, common) => controlled(task, 'saga', common)],
  [2, (task, common) => controlled(task, 'retry', { ...common, failures: task.draw.int(0, 3) })],
  [2, (task, common) => controlled(task, 'rounds', { ...common, round: 1, rounds: task.draw.int(1, 8), seen: [] })],
]

export function performTask(task: ClientTask): Promise<void> {
  const { draw, name } = task
  const chosen = draw.pick(tasks.flatMap(([weight, run]) => Array.from({ length: weight }, () => run)))
  return chosen(task, { n: name, ms: draw.pick([10, 40, 150, 400, 900]) })
}

/** Starts a run, sometimes from two sides at once, and sometimes again with another input, which must be refused. */
async function begun<K extends Kind>(
  { client, draw, proc, name }: ClientTask,
  kind: K,
  input: Inputs[K],
): Promise<string> {
  const twin = draw.chance(0.25) ? client.start(`${proc}-twin`, kind, input, name) : null
  const [run] = await Promise.all([client.start(proc, kind, input, name), twin])
  if (draw.chance(0.05)) await client.start(proc, kind, { ...input, n: `${input.n} otherwise` }, name)
  if (run === null) throw new Error(`The start of ${name} was refused.`)
  return run
}

/** A run to which impatient people do things while it is on its way. */
async function controlled<K extends Kind>(task: ClientTask, kind: K, input: Inputs[K]): Promise<void> {
  const run = await begun(task, kind, input)
  await Promise.all([impatience(task, run), task.client.ended(task.proc, run)])
}

async function impatience({ client, draw, proc }: ClientTask, run: string): Promise<void> {
  const whim = draw.fraction()
  await setTimeout(draw.int(0, 1_500))
  if (whim < 0.12) await client.cancel(proc, run)
  else if (whim < 0.24) {
    await client.pause(proc, run)
    await setTimeout(draw.int(50, 1_200))
    await client.resume(proc, run)
  } else if (whim < 0.5) {
    for (let times = 0; times < 3; times += 1) {
      await client.query(proc, run, 'done')
      await setTimeout(draw.int(20, 200))
    }
  }
}

/** Letters, one after the other, some of them twice. */
async function corresponded(task: ClientTask, common: Common): Promise<void> {
  const { client, draw, proc, name } = task
  const count = draw.int(1, 6)
  const run = await begun(task, 'inbox', { ...common, count })
  const letters = async (): Promise<void> => {
    for (let order = 1; order <= count; order += 1) {
      const id = `${name}-letter-${order}`
      await client.signal(proc, run, 'mail', id, order)
      if (draw.chance(0.2)) await client.signal(proc, run, 'mail', id, order)
      await setTimeout(draw.int(0, 300))
    }
  }
  await Promise.all([letters(), impatience(task, run), client.ended(proc, run)])
}

/** An offer that may come too late. */
async function offered(task: ClientTask, common: Common): Promise<void> {
  const { client, draw, proc, name } = task
  const waitMs = draw.int(100, 2_000)
  const run = await begun(task, 'offer', { ...common, waitMs })
  await setTimeout(draw.int(0, waitMs * 1.5))
  await Promise.all([client.signal(proc, run, 'offers', `${name}-offer`, 1), client.ended(proc, run)])
}

/** Items for a queue, and a run that takes some, perhaps others. */
async function supplied(task: ClientTask, common: Common): Promise<void> {
  const { client, draw, proc, name } = task
  const count = draw.int(1, 4)
  const supply = async (): Promise<void> => {
    for (let item = 1; item <= count; item += 1) await client.broadcast(proc, `${name}-item-${item}`)
  }
  const isEarly = draw.chance(0.5)
  if (isEarly) await supply()
  const run = await begun(task, 'consume', { ...common, count, idleMs: draw.int(800, 3_000) })
  await Promise.all([isEarly ? undefined : supply(), impatience(task, run), client.ended(proc, run)])
}

/** An issue that is published line by line, and readers who come early and late. */
async function published(task: ClientTask, common: Common): Promise<void> {
  const { client, draw, proc, name } = task
  const topic = `chaos.issue-${name}`
  const lines = draw.int(2, 5)
  const reader = async (number: number): Promise<void> => {
    const count = draw.int(1, lines)
    await setTimeout(draw.int(0, 1_200))
    const own = { ...task, name: `${name}-reader-${number}` }
    const run = await begun(own, 'read', { ...common, n: own.name, topic, count })
    await client.ended(proc, run)
  }
  const press = async (): Promise<void> => {
    for (let line = 1; line <= lines; line += 1) {
      await client.broadcast(proc, `${name}-line-${line}`, topic)
      await setTimeout(draw.int(0, 300))
    }
  }
  await Promise.all([press(), reader(1), reader(2), reader(3)])
}

async function accompanied(task: ClientTask, common: Common): Promise<void> {
  const { draw } = task
  const children = draw.int(1, 4)
  await controlled(task, 'parent', { ...common, children, failing: draw.int(-children, children - 1) })
}
