// The database's time, in the hands of a test. A store that is given `expression` for its clock reads a table of one row,
// and time passes when the test writes to it. For worlds whose clock lives in JavaScript and moves without waiting,
// `withClock` brings the table up to date before every call.

import { escapeIdentifier } from 'pg'

/** What is needed of a `pg` pool or client. */
interface Queryable {
  query(text: string, values?: unknown[]): Promise<unknown>
}

export interface PostgresClock {
  /** SQL for the time in milliseconds, a bigint. */
  readonly expression: string
  now(): number
  advance(ms: number): Promise<void>
  set(ms: number): Promise<void>
}

/** 1 January 2030, where the virtual clock begins as well. */
const defaultStartMs = 1_893_456_000_000

/** Makes the schema if there is none, and in it the clock, which stands still. */
export async function createPostgresClock(
  pool: Queryable,
  schema: string,
  startMs = defaultStartMs,
): Promise<PostgresClock> {
  const table = `${escapeIdentifier(schema)}.clock`
  await pool.query(`create schema if not exists ${escapeIdentifier(schema)}`)
  await pool.query(`create table ${table} (ms bigint not null)`)
  await pool.query(`insert into ${table} (ms) values ($1)`, [startMs])
  let now = startMs
  const set = async (ms: number): Promise<void> => {
    await pool.query(`update ${table} set ms = $1`, [ms])
    now = ms
  }
  return { expression: `(select ms from ${table})`, now: () => now, advance: (ms) => set(now + ms), set }
}

/** The same store, whose table shows the clock's time whenever a call begins. */
export function withClock<Subject extends object>(
  store: Subject,
  table: PostgresClock,
  clock: { now(): number },
): Subject {
  let shown = table.now()
  let writing: Promise<void> = Promise.resolve()

  /** Calls that begin while the time is written wait for it too. */
  const show = (): Promise<void> => {
    const ms = clock.now()
    if (ms !== shown) {
      shown = ms
      writing = writing.then(() => table.set(ms))
    }
    return writing
  }

  const follow = <Part extends object>(part: Part): Part =>
    new Proxy(part, {
      get(target, key) {
        const value: unknown = Reflect.get(target, key)
        if (typeof value !== 'function') return value
        const call = (given: unknown[]): unknown => Reflect.apply(value, target, given) as unknown
        // After the end nothing can be written, and nothing needs to know the time.
        if (key === 'close') return (...given: unknown[]) => call(given)
        // It gives what has calls of its own, at once.
        if (key === 'inTransaction') return (...given: unknown[]) => follow(call(given) as object)
        return (...given: unknown[]) => show().then(() => call(given))
      },
    })

  return follow(store)
}
