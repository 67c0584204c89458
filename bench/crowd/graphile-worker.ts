// graphile-worker beside us: as it comes, and with what its documentation says about speed: a local queue, and jobs that are
// completed together.

import { peer, timedBatches, typeName, type Queue } from './queue.ts'

interface Runner {
  stop(): Promise<void>
}

interface GraphileWorker {
  run(options: object): Promise<Runner>
  makeWorkerUtils(options: object): Promise<{
    migrate(): Promise<void>
    addJobs(specs: readonly object[]): Promise<unknown>
    release(): Promise<void>
  }>
  readonly Logger: new (factory: () => () => void) => unknown
}

export function graphileWorker({ tuned }: { readonly tuned: boolean }): Queue | null {
  const library = peer('graphile-worker') as GraphileWorker | null
  if (library === null) return null
  const logger = new library.Logger(() => () => undefined)
  return {
    name: tuned ? 'graphile-worker, tuned' : 'graphile-worker',

    async enqueue({ url, schema, types }, jobs) {
      const utils = await library.makeWorkerUtils({ connectionString: url, schema, logger })
      await utils.migrate()
      const ms = await timedBatches(jobs, async (first, length) => {
        await utils.addJobs(
          Array.from({ length }, (_, index) => ({ identifier: typeName((first + index) % types), payload: {} })),
        )
      })
      await utils.release()
      return ms
    },

    async open({ url, schema, types }, slots, performed) {
      const taskList = Object.fromEntries(Array.from({ length: types }, (_, index) => [typeName(index), performed]))
      const batches = { localQueue: { size: Math.max(slots, 500) }, completeJobBatchDelay: 0, failJobBatchDelay: 0 }
      let runner: Runner | null = null
      return {
        async start() {
          const worker = { connectionString: url, schema, concurrentJobs: slots, ...(tuned ? batches : {}) }
          runner = await library.run({ taskList, logger, noHandleSignals: true, preset: { worker } })
        },
        async stop() {
          await runner?.stop()
        },
        claims: () => null,
      }
    },

    left: ({ schema }) => `select exists (select from "${schema}"._private_jobs) as left`,
  }
}
