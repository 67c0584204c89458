// The place of a chaos run: a store, worker processes on it, the sink of their effects, and what can go wrong with all of
// them. Onlookers learn everything as events; whatever happens, no process outlives the testbed.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Draw } from '../simulation/draw.ts'
import type { StoreCall } from './store-call-log.ts'
import { Supervisor } from './supervisor.ts'
import { translatePrograms, type Programs } from './testbed-programs.ts'
import { TestbedServer } from './testbed-server.ts'
import { SinkFile } from './sink-file.ts'
import { startSink } from './sink.ts'

export type StoreKind = 'sqlite' | 'postgres' | 'citus'

/** What is wrong with the store of the workers, or with its standby, on purpose, so that a chaos run must fail. */
export type Plant = 'none' | 'no-fence' | 'blind-retry' | 'lost-touch'

export type Version = 1 | 2

export interface TestbedOptions {
  readonly store: StoreKind
  /** @default 4 */
  readonly workers?: number
  /** @default 2,000 */
  readonly leaseMs?: number
  /** @default 'none' */
  readonly plant?: Plant
  /** Is called with everything that happens to processes and to the server. */
  readonly onEvent: (event: TestbedEvent) => void
}

export interface TestbedEvent {
  readonly at: number
  /** `violation`: something that must not be, whatever the histories say. */
  readonly kind: 'nemesis' | 'worker' | 'server' | 'violation'
  readonly text: string
  readonly details?: Readonly<Record<string, unknown>>
}

/** A worker process. */
export interface WorkerInfo {
  readonly id: string
  /** What its operator calls it. Several may be called the same. */
  readonly name: string
  readonly pid: number
  readonly version: Version
  /** The last 200 lines that it has logged. */
  readonly tail: readonly string[]
}

export interface Testbed {
  /** The direct address of the store, for clients that are not struck. A server that is down is down for them, too. */
  readonly url: string
  readonly sinkUrl: string
  /** Everyone who ever worked here. */
  readonly workers: readonly WorkerInfo[]
  /**
   * Until when the leases of a tenure could be valid, by its name (`Effect.worker`). A tenure is what a process does between
   * two losses of its leases: it died, was cut off, let go, or stood still for too long. One that still has its leases is
   * not here.
   */
  readonly goneAt: ReadonlyMap<string, number>
  /** Everything that the sink has acknowledged, in the order in which it began. */
  effects(): readonly Effect[]
  /** Everything that workers have asked of the store. */
  calls(): readonly StoreCall[]
  /** Everything works again: the server, the network, and all workers. */
  heal(): Promise<void>
  close(): Promise<void>
  /** What the server has logged, if there is one. */
  serverLog(): string
}

/** One execution of the body of a step, by the clock of the sink. */
export interface Effect {
  /** The tenure in which it was done: see `goneAt`. */
  readonly worker: string
  readonly run: string
  readonly step: string
  readonly attempt: number
  /** The step's idempotency key. */
  readonly key: string
  /** Distinguishes this execution from every other one. */
  readonly mark: string
  readonly began: number
  /** Null if its process died first, or has not come to it yet. */
  readonly ended: number | null
}

/** Something that goes wrong, and can be put right. */
export interface Nemesis {
  readonly name: string
  readonly stores: readonly StoreKind[]
  /** Strikes once, and takes it back. Resolves when it is over: true if it hit something. */
  strike(testbed: OpenTestbed, draw: Draw, last: Last): Promise<boolean>
  /** It strikes as soon as a storm begins, beside all others, and again if it is over before the storm is. @default false */
  readonly isLasting?: boolean
}

/** Lets what was begun last for so long; shorter, if the storm is over before. */
export type Last = (ms: number) => Promise<void>

/** The testbed, for those who strike it. */
export interface OpenTestbed extends Testbed {
  readonly store: StoreKind
  readonly plant: Plant
  readonly leaseMs: number
  readonly supervisor: Supervisor
  /** The file of the store, if it is SQLite. */
  readonly file: string
  readonly programs: Programs
  /** The server of the store; throws if it has none. */
  readonly server: TestbedServer
  readonly report: (event: Omit<TestbedEvent, 'at'>) => void
}

export async function openTestbed(options: TestbedOptions): Promise<OpenTestbed> {
  const { leaseMs = 2_000, plant = 'none', workers = 4, onEvent } = options
  const report: OpenTestbed['report'] = (event) => onEvent({ at: Date.now(), ...event })
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-chaos-'))
  const file = join(folder, 'runs.db')
  const effects = new SinkFile(join(folder, 'effects'))
  const programs = await translatePrograms(join(folder, 'programs'))
  const sink = await startSink(programs('sink-child'), join(folder, 'effects'))
  const server = options.store === 'sqlite' ? null : await TestbedServer.start(options.store)
  const url = server?.url ?? `sqlite:${file}`
  const task = { url: server?.proxy.url ?? url, sinkUrl: sink.url, leaseMs, plant }
  const supervisor = new Supervisor({
    places: workers,
    program: programs('testbed-worker-child'),
    folder,
    task,
    report,
  })

  async function close(): Promise<void> {
    await supervisor.dismiss()
    await sink.stop()
    await server?.remove()
    rmSync(folder, { recursive: true })
  }

  async function heal(): Promise<void> {
    await server?.heal()
    await supervisor.complete()
  }

  // Its opener finds it at work, or gone.
  await supervisor.complete().catch(async (error: unknown) => {
    await close()
    throw error
  })
  return {
    url,
    sinkUrl: sink.url,
    workers: supervisor.workers,
    get goneAt() {
      return new Map(supervisor.workers.flatMap(({ goneAt }) => goneAt))
    },
    effects: () => effects.effects(),
    calls: () => supervisor.workers.flatMap((worker) => worker.calls),
    heal,
    close,
    serverLog: () => server?.cluster.log() ?? '',
    store: options.store,
    plant,
    leaseMs,
    supervisor,
    file,
    programs,
    get server() {
      if (server === null) throw new Error('The store of this testbed has no server.')
      return server
    },
    report,
  }
}
