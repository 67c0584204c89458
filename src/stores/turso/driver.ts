// The driver over `@tursodatabase/database`, which runs in this process. Its synchronous entry has the calls that the
// SQLite store asks for. Its errors carry no code, only text: here they get the code that SQLite has for the same, so that
// the one translation of the SQLite store knows them.

import { isDefect } from '../../core/errors/driver-error.ts'
import { loadNativeDriver } from '../load-driver.ts'
import type { Driver, Row, Value } from '../sqlite/driver/driver.ts'

/** The part of a `Database` of `@tursodatabase/database/compat` that we use. */
export interface TursoDatabase {
  prepare(sql: string): {
    run(values: readonly Value[]): { readonly changes: number }
    get(values: readonly Value[]): unknown
    all(values: readonly Value[]): unknown[]
  }
  exec(sql: string): void
  close(): void
}

export interface TursoModule {
  readonly Database: new (path: string) => TursoDatabase
}

/** Loads the package, which only its users install. */
export function loadTurso(): Promise<TursoModule> {
  return loadNativeDriver<TursoModule>('@tursodatabase/database/compat', 'A turso: store')
}

export function openTurso({ Database }: TursoModule, path: string): Driver {
  return overTurso(named(() => new Database(path)))
}

export function overTurso(database: TursoDatabase): Driver {
  return {
    name: 'turso',
    database,
    prepare(sql) {
      const statement = named(() => database.prepare(sql))
      return {
        run: (values) => named(() => statement.run(values).changes),
        get: (values) => named(() => statement.get(values) as Row | undefined),
        all: (values) => named(() => statement.all(values) as Row[]),
      }
    },
    exec: (sql) => named(() => database.exec(sql)),
    close: () => named(() => database.close()),
  }
}

function named<Result>(work: () => Result): Result {
  try {
    return work()
  } catch (error) {
    throw withCode(error)
  }
}

/** The messages of Turso, and SQLite's codes for them. The first that fits counts. */
const codes: readonly (readonly [says: RegExp, code: string])[] = [
  [/locked by another process/i, 'SQLITE_BUSY'],
  [/failed to open database.*(corrupt|not a database)/is, 'SQLITE_NOTADB'],
  [/failed to open database/i, 'SQLITE_CANTOPEN'],
  [/constraint failed|cannot store .* value in|\(19\)$/i, 'SQLITE_CONSTRAINT'],
  [/table is locked/i, 'SQLITE_LOCKED'],
  [/is locked|is busy|snapshot is stale|write-write conflict|^conflict:/i, 'SQLITE_BUSY'],
  [/schema (has )?changed/i, 'SQLITE_SCHEMA'],
  [/not a database/i, 'SQLITE_NOTADB'],
  [/corrupt|checksum mismatch/i, 'SQLITE_CORRUPT'],
  [/too big|too large/i, 'SQLITE_TOOBIG'],
  [/database is full|no space|storage full/i, 'SQLITE_FULL'],
  [/read-?only/i, 'SQLITE_READONLY'],
  [/out of memory/i, 'SQLITE_NOMEM'],
  [/interrupt/i, 'SQLITE_INTERRUPT'],
  [/i\/o error|locking error|completion was aborted|checkpoint failed/i, 'SQLITE_IOERR'],
]

/** The error with the code that SQLite has for it, if it has one. */
export function withCode(error: unknown): unknown {
  // An error of the language is none of the database, even if its text matches.
  if (!(error instanceof Error) || isDefect(error)) return error
  const code = codes.find(([says]) => says.test(error.message))?.[1]
  return code === undefined ? error : Object.assign(error, { code })
}
