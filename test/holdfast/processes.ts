// Processes that share a SQLite file, one after the other or at once, in a time that the test owns. Each has a connection
// and a Holdfast of its own. They end in good order or crash: then nothing that they do reaches the file any more.

import Database from 'libsql'
import { onTestFinished } from 'vitest'
import { createHoldfast, type Holdfast, type HoldfastOptions, type Store } from 'holdfast'
import { openSqliteStore } from 'holdfast/sqlite'
import { keepLines, type Line } from './open.ts'
import { virtualTime, type VirtualTime } from './virtual-world.ts'

export interface Process {
  readonly holdfast: Holdfast
  /** The way to the file, as this process sees it. */
  readonly store: Store
  readonly lines: readonly Line[]
  /** How many calls reached the store. */
  readonly calls: () => number
  readonly end: () => Promise<void>
  readonly crash: () => Promise<void>
}

export interface Machine extends VirtualTime {
  readonly path: string
  readonly begin: (workflows?: HoldfastOptions['workflows'], changes?: (store: Store) => Store) => Promise<Process>
  /** Reads the file past the engine. */
  readonly rows: (sql: string) => readonly Readonly<Record<string, unknown>>[]
}

export function machine(path: string): Machine {
  const time = virtualTime()
  const { clock, after } = time
  return {
    ...time,
    path,
    rows: (sql) => {
      const database = new Database(path, { readonly: true })
      try {
        return database.prepare(sql).all([]) as Readonly<Record<string, unknown>>[]
      } finally {
        database.close()
      }
    },
    begin: async (workflows = [], changes = (store) => store) => {
      const file = await openSqliteStore({ path, clock })
      const store = changes(file)
      const state = { isOver: false, calls: 0 }
      const outbound = new Proxy(store, {
        get(target, key) {
          const value: unknown = Reflect.get(target, key)
          if (typeof value !== 'function') return value
          return (...request: unknown[]): unknown => {
            state.calls += 1
            return state.isOver ? new Promise(() => undefined) : value.apply(target, request)
          }
        },
      })
      const logger = keepLines()
      const holdfast = await createHoldfast({ store: outbound, workflows, logger, ports: { clock } })
      const end = async (): Promise<void> => {
        if (state.isOver) return
        await after(holdfast.close())
        await crash()
      }
      const crash = async (): Promise<void> => {
        state.isOver = true
        await file.close()
      }
      onTestFinished(end)
      return { holdfast, store: file, lines: logger.lines, calls: () => state.calls, end, crash }
    },
  }
}
