// The process that performs the runs, and nothing else: its memory is what a soak is about. It says which runs have ended, as
// soon as that is committed, and how it is when it is asked. On SQLite it also starts them: see sender.ts.

import { monitorEventLoopDelay } from 'node:perf_hooks'
import { createHoldfast, type Store } from 'holdfast'
import { logger } from '../logger.ts'
import { serveParent } from './child-process.ts'
import { workflows } from './mix.ts'
import { openPlace, type Place } from './place.ts'
import { messageOf, perform, type Request } from './sender.ts'
import { wallMs } from './wall.ts'

export interface WorkerTask {
  readonly place: Place
  readonly concurrency: number
}

/** A run that has ended: its id, how, and when that was known to be committed, by the clock on the wall. */
export type Ending = readonly [runId: string, status: string, at: number]

/** What it sends unasked: what has ended, and what could not be done. */
export interface News {
  readonly endings: readonly Ending[]
  readonly failures: readonly { readonly request: Request; readonly why: string }[]
}

/** How the process is, and what it used since it was asked before. */
export interface Vitals {
  readonly rssBytes: number
  readonly heapBytes: number
  readonly cpuMs: number
  readonly lagMs: number
}

/** How often endings are reported: seldom enough to cost little, often enough for a load that waits for them. */
const reportEveryMs = 20
const lookEveryMs = 100
const loopResolutionMs = 5

await serveParent(async (task, parent) => {
  const { place, concurrency } = task as WorkerTask
  const store = await openPlace(place)
  const endings: Ending[] = []
  const failures: News['failures'][number][] = []
  watchEndings(store, endings)
  const holdfast = await createHoldfast({ store, workflows, logger })
  const worker = await holdfast.work({ concurrency, signals: false })
  const report = (): void => {
    if (endings.length + failures.length > 0)
      parent.report({ endings: endings.splice(0), failures: failures.splice(0) })
  }
  const reporting = setInterval(report, reportEveryMs)
  const vitals = watchVitals()
  return {
    answer: async () => vitals.take(),
    hear(requests) {
      for (const request of requests as readonly Request[]) {
        perform(holdfast, request).catch((error: unknown) => failures.push({ request, why: messageOf(error) }))
      }
    },
    async close() {
      await worker.stop()
      clearInterval(reporting)
      vitals.stop()
      report()
      await holdfast.close()
      await store.close()
    },
  }
})

/** From now on notes each run whose end this store has committed. */
function watchEndings(store: Store, endings: Ending[]): void {
  const commit = store.commit.bind(store)
  store.commit = async (transitions) => {
    const answers = await commit(transitions)
    const at = wallMs()
    transitions.forEach(({ runId, status }, index) => {
      const isEnd = status === 'succeeded' || status === 'failed' || status === 'cancelled'
      if (isEnd && answers[index]?.outcome === 'committed') endings.push([runId, status, at])
    })
    return answers
  }
}

function watchVitals(): { take(): Vitals; stop(): void } {
  const loop = monitorEventLoopDelay({ resolution: loopResolutionMs })
  loop.enable()
  let cpu = process.cpuUsage()
  let heapBytes = process.memoryUsage().heapUsed
  const look = setInterval(() => (heapBytes = Math.min(heapBytes, process.memoryUsage().heapUsed)), lookEveryMs)
  return {
    take() {
      const { user, system } = process.cpuUsage(cpu)
      const { rss, heapUsed } = process.memoryUsage()
      // The timer that measures the delay fires every so often: that much is no delay.
      const lagMs = Math.max(0, loop.percentile(99) / 1e6 - loopResolutionMs)
      const vitals = { rssBytes: rss, heapBytes: Math.min(heapBytes, heapUsed), cpuMs: (user + system) / 1_000, lagMs }
      cpu = process.cpuUsage()
      heapBytes = heapUsed
      loop.reset()
      return vitals
    },
    stop() {
      clearInterval(look)
      loop.disable()
    },
  }
}
