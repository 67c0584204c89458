// What every way to open a database of this kind does alike: the file is made for its owner alone, and the connection is
// set up so that what was answered as committed survives a loss of power.

import { closeSync, openSync } from 'node:fs'
import { HoldfastError } from '../../core/error.ts'
import type { Logger } from '../../core/ports.ts'
import type { Connection } from './connection.ts'

/** How much SQLite waits for the disk, least first. */
export const synchronousLevels = ['off', 'normal', 'full', 'extra'] as const

export type Synchronous = (typeof synchronousLevels)[number]

/** The database's clock: the one expression from which every time in this store comes. */
export const nowExpression = `cast(round((julianday('now') - 2440587.5) * 86400000) as integer)`
export const nowSql = `select ${nowExpression} as now`

/** Creates a file with the rights of its owner only, unless it is there; answers whether it did. */
export function createPrivately(path: string): boolean {
  try {
    closeSync(openSync(path, 'wx', 0o600))
    return true
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    if (code === 'EEXIST') return false
    const message = `The SQLite file "${path}" cannot be created: does its folder exist, and may it be written to?`
    throw new HoldfastError('INVALID_OPTION', message, { cause: error, details: { path, code } })
  }
}

export function setBusyTimeout(db: Connection, ms: number): void {
  db.exec(`pragma busy_timeout = ${Math.max(1, Math.round(ms))}`)
}

export function warnIfLoose(db: Connection, logger: Pick<Logger, 'warn'> | undefined): void {
  const level = Number(db.get('pragma synchronous', [])?.['synchronous'] ?? 2)
  if (level >= 2) return
  logger?.warn(
    `SQLite runs with synchronous=${synchronousLevels[level] ?? level}: what was answered as committed may be lost when ` +
      'the power fails. Use synchronous=full where that matters.',
  )
}
