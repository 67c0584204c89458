// A worker of a chaos run, in a process of its own. It notifies its parent when it is at work and until when its leases are
// valid, and goes when its parent is gone. SIGTERM makes it leave in good order, with exit code 0: a parent that sees another one
// knows that it did not.

import pg from 'pg'
import { createHoldfast, type Logger, type Store } from '../../src/index.ts'
import { openPostgresStore } from '../../src/stores/postgres/index.ts'
import { openSqliteStore } from '../../src/stores/sqlite/index.ts'
import { StoreCallLog } from './store-call-log.ts'
import type { WorkerNews, WorkerOrder, WorkerTask } from './testbed-worker.ts'
import { PoolGate } from './pool-gate.ts'
import { plantedStore } from './plants.ts'
import { SinkConnection } from './sink.ts'
import { Tenures } from './tenures.ts'
import { chaosWorkflows } from './workload.ts'

const task = JSON.parse(process.argv[2] ?? '') as WorkerTask
const { leaseMs } = task
process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'))

const say = (level: string, message: string, details: unknown): void =>
  console.log(new Date().toISOString(), level, message, details ?? '')
const logger: Logger = {
  debug: (message, details) => say('debug', message, details),
  info: (message, details) => say('info', message, details),
  warn: (message, details) => say('warn', message, details),
  error: (message, details) => say('error', message, details),
}

const report = (news: WorkerNews): void => void process.send?.(news)
const tenures = new Tenures({ worker: task.id, leaseMs, report })
const sink = await SinkConnection.open(task.sinkUrl, () => tenures.current)
const log = new StoreCallLog({ path: task.calls, worker: task.id, tenure: () => tenures.current })
const gate = PoolGate.install()
const store = log.watch(tenures.watch(plantedStore(await openStore(), task.plant)))
const workflows = Object.values(chaosWorkflows(sink, task.version))
const holdfast = await createHoldfast({ store, workflows, logger })
await holdfast.work({ lease: leaseMs, shutdownTimeout: 2 * leaseMs, concurrency: task.concurrency, signals: false })
process.on('SIGTERM', () => {
  tenures.leave()
  void leave()
})
process.on('message', (order: WorkerOrder) => {
  void gate.shut(order.withholdMs).then((withheld) => report({ withheld }))
})
report({ working: true })

/** Nothing waits for the store for longer than half a lease, as it is with the lease and the timeout of the default. */
function openStore(): Promise<Store> {
  const storageTimeout = leaseMs / 2
  if (task.url.startsWith('sqlite:')) {
    return openSqliteStore({ path: task.url.slice('sqlite:'.length), storageTimeout, logger })
  }
  if (task.pool === 'own') return openPostgresStore({ url: task.url, storageTimeout, connections: 4, logger })
  const url = new URL(task.url)
  const schema = url.searchParams.get('schema') ?? ''
  url.searchParams.delete('schema')
  const lent = new pg.Pool({
    connectionString: url.href,
    max: 4,
    pipeline: true,
    keepAlive: true,
    connectionTimeoutMillis: storageTimeout,
  })
  lent.on('error', (error) => logger.debug('An idle connection to the database broke.', { error }))
  return openPostgresStore({ pool: lent, schema, listen: url.href, storageTimeout, logger })
}

async function leave(): Promise<void> {
  await holdfast.close()
  await store.close()
  process.exit(0)
}
