// A worker of a chaos run, in a process of its own. It tells its parent when it is at work and until when its leases are
// valid, and goes when its parent is gone. SIGTERM makes it leave in good order, with exit code 0: whoever sees another one
// knows that it did not.

import { createHoldfast, type Logger, type Store } from '../../src/index.ts'
import { openPostgresStore } from '../../src/stores/postgres/index.ts'
import { openSqliteStore } from '../../src/stores/sqlite/index.ts'
import type { HandNews, HandTask } from './field-hand.ts'
import { plantedStore } from './plants.ts'
import { SinkConnection } from './sink.ts'
import { Tenures } from './tenures.ts'
import { chaosWorkflows } from './workload.ts'

const task = JSON.parse(process.argv[2] ?? '') as HandTask
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

const tell = (news: HandNews): void => void process.send?.(news)
const tenures = new Tenures({ hand: task.id, leaseMs, tell })
const sink = await SinkConnection.open(task.sinkUrl, () => tenures.current)
const store = tenures.watch(plantedStore(await openStore(), task.plant))
const workflows = Object.values(chaosWorkflows(sink, task.version))
const holdfast = await createHoldfast({ store, workflows, logger })
await holdfast.work({ lease: leaseMs, shutdownTimeout: 2 * leaseMs, concurrency: 20, signals: false })
process.on('SIGTERM', () => {
  tenures.leave()
  void leave()
})
tell({ working: true })

/** Nothing waits for the store for longer than half a lease, as it is with the lease and the timeout of the default. */
function openStore(): Promise<Store> {
  const storageTimeout = leaseMs / 2
  return task.url.startsWith('sqlite:')
    ? openSqliteStore({ path: task.url.slice('sqlite:'.length), storageTimeout, logger })
    : openPostgresStore({ url: task.url, storageTimeout, connections: 4, logger })
}

async function leave(): Promise<void> {
  await holdfast.close()
  await store.close()
  process.exit(0)
}
