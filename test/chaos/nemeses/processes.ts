// What befalls worker processes.

import { until } from '../../support/until.ts'
import type { Nemesis, OpenTestbed } from '../testbed.ts'
import type { Post } from '../supervisor.ts'
import type { TestbedWorker } from '../testbed-worker.ts'

const everywhere = ['sqlite', 'postgres', 'citus'] as const

/**
 * How long a worker may take to leave in good order: it waits for its runs, then for what it has to write, twice as long as
 * a lease each; and no store that is away in that very moment keeps it for longer than Holdfast allows.
 */
const leavingMs = 45_000

export const kill: Nemesis = {
  name: 'kill',
  stores: everywhere,
  strike: ({ supervisor }, draw) => {
    if (!draw.chance(0.15)) return supervisor.withWorker(draw, (worker) => killed(worker))
    const free = supervisor.posts.filter(({ worker }) => worker.isFree)
    return Promise.all(free.map((post) => supervisor.taken(post, killed))).then(() => free.length > 0)
  },
}

async function killed(worker: TestbedWorker): Promise<void> {
  worker.signal('SIGKILL')
  await worker.exited
}

/** How long each worker lives while all are restarted. */
const lifeMs = 2_000

/**
 * Every worker is killed when it has worked for two seconds, and again, as in a bad deployment. It strikes only when it is
 * asked for: nothing else would hit anything beside it.
 */
export const restarts: Nemesis = {
  name: 'restarts',
  stores: everywhere,
  async strike({ supervisor, leaseMs }, _draw, last) {
    let isOver = false
    const over = last(10 * leaseMs).then(() => (isOver = true))
    let killings = 0
    const restart = async (post: Post): Promise<void> => {
      while (!isOver) {
        const { worker } = post
        if (!(await Promise.race([worker.began, over.then(() => false)]))) {
          await Promise.race([worker.exited, over])
          // Its supervisor replaces it.
          await Promise.race([new Promise((resolve) => void setTimeout(resolve, 50)), over])
          continue
        }
        await last(lifeMs)
        if (isOver) return
        await supervisor.taken(post, killed)
        killings += 1
        await Promise.race([until('a new worker has its place', () => post.worker !== worker, 30_000), over])
      }
    }
    await Promise.all(supervisor.posts.map(restart))
    return killings > 0
  },
}

export const terminate: Nemesis = {
  name: 'terminate',
  stores: everywhere,
  strike: (testbed, draw) => testbed.supervisor.withWorker(draw, (worker) => terminated(testbed, worker)),
}

/** Asks it to leave. To do so in another way than asked, or not at all, is a violation. */
async function terminated({ report }: OpenTestbed, worker: TestbedWorker): Promise<void> {
  worker.signal('SIGTERM')
  const timer = setTimeout(() => {
    report({ kind: 'violation', text: `${worker.id} was asked to leave ${leavingMs} ms ago, and is still here` })
    worker.signal('SIGKILL')
  }, leavingMs)
  const { code, signal } = await worker.exited
  clearTimeout(timer)
  if (code !== 0 && signal !== 'SIGKILL') {
    report({ kind: 'violation', text: `${worker.id} was asked to leave, and ended with ${signal ?? code}` })
  }
}

export const standStill: Nemesis = {
  name: 'stand-still',
  stores: everywhere,
  strike: ({ supervisor, leaseMs, report }, draw, last) =>
    supervisor.withWorker(draw, async (worker) => {
      const { id } = worker
      worker.signal('SIGSTOP')
      report({ kind: 'worker', text: `${id} stands still`, details: { worker: id, state: 'stands still' } })
      await last(draw.between(0.5, 5) * leaseMs)
      worker.signal('SIGCONT')
      report({ kind: 'worker', text: `${id} goes on`, details: { worker: id, state: 'goes on' } })
    }),
}

/** The pool of a worker gives no connection, whatever asks for one: beats, claims and commits alike. */
export const poolEmpty: Nemesis = {
  name: 'pool-empty',
  stores: ['postgres'],
  strike: async ({ supervisor, leaseMs }, draw, last) => {
    let held = 0
    const isFound = await supervisor.withWorker(draw, async (worker) => {
      const ms = draw.between(0.5, 3) * leaseMs
      const withheld = worker.withhold(ms)
      await last(ms)
      held = await withheld
    })
    return isFound && held > 0
  },
}

/** A second process under the name of one that works, as two deployments of one thing. Nothing may depend on names. */
export const twins: Nemesis = {
  name: 'twins',
  stores: everywhere,
  async strike(testbed, draw, last) {
    const { name, version } = draw.pick(testbed.supervisor.posts)
    const twin = testbed.supervisor.hire(name, version)
    twin.isTaken = true
    const began = await twin.began
    if (began) await last(draw.between(0.5, 2) * testbed.leaseMs)
    if (began && draw.chance(0.5)) await terminated(testbed, twin)
    else await killed(twin)
    return began
  },
}

/** One after the other goes, and comes back with the other version of the code. */
export const rollingDeploy: Nemesis = {
  name: 'rolling-deploy',
  stores: everywhere,
  async strike(testbed, draw, last) {
    const { supervisor } = testbed
    let changed = 0
    for (const post of supervisor.posts) {
      post.version = post.version === 1 ? 2 : 1
      // Another nemesis strikes it already, or it is on its way: the next one there has the other version.
      if (!post.worker.isFree) continue
      await supervisor.taken(post, (worker) => terminated(testbed, worker))
      changed += 1
      await last(draw.between(0.1, 1) * testbed.leaseMs)
    }
    return changed > 0
  },
}
