// One connection: statements are prepared once and kept, transactions take the write lock at their start, and every error of
// the library leaves here as one of our own. SQLite never waits for a lock in here: it would stop the process.

import { isStoreAway } from '../../../core/errors/error.ts'
import { SubscriberCounts } from '../../subscriber-counts.ts'
import type { Driver, Row, Statement, Value } from './driver.ts'
import { closed, translated } from './sqlite-errors.ts'

/** Rows go into a table in statements of this many, then of one: measured, 16 cost a third less than 1, and 50 more. */
const rowsAtOnce = 16

/**
 * A transaction that a user began without `immediate` may have to wait for the write lock. A statement without values asks
 * for it, because a prepared one that is refused stays open in libsql, and then no savepoint can be made any more.
 */
const takeLock = 'delete from sessions where false'

/** A savepoint that no end of a transaction leaves as it is. */
const lentMark = 'holdfast_lent'

/** As many pages as SQLite allows a file to have. */
const mostPages = 4_294_967_294

export class Connection {
  /** The counts of this process through this connection. */
  readonly crowds = new SubscriberCounts()
  private readonly driver: Driver
  private readonly statements = new Map<string, Statement>()
  private readonly inserts = new Map<string, string>()
  private readonly isTheirs: boolean
  private readonly mayWait: boolean
  private isClosed = false
  /** A user's function may have forbidden writes, and they could not be allowed again since. */
  private mustAllowWrites = false

  /** A connection that a user has opened may have a busy timeout of theirs. */
  constructor(driver: Driver, { isTheirs = false }: { readonly isTheirs?: boolean } = {}) {
    this.driver = driver
    this.isTheirs = isTheirs
    this.mayWait = isTheirs && this.read(() => this.busyTimeout()) > 0
  }

  run(sql: string, values: readonly Value[]): number {
    return this.prepared(sql).run(values)
  }

  get(sql: string, values: readonly Value[]): Row | undefined {
    return this.prepared(sql).get(values)
  }

  all(sql: string, values: readonly Value[]): readonly Row[] {
    return this.prepared(sql).all(values)
  }

  exec(sql: string): void {
    this.driver.exec(sql)
  }

  /** Inserts rows whose values lie one after the other; `into` names the table and its columns. */
  insert(into: string, width: number, values: readonly Value[]): void {
    const step = width * rowsAtOnce
    let at = 0
    for (; at + step <= values.length; at += step) {
      this.run(this.insertOf(into, width, rowsAtOnce), values.slice(at, at + step))
    }
    for (; at < values.length; at += width) this.run(this.insertOf(into, width, 1), values.slice(at, at + width))
  }

  /** Reads, with errors translated into our own codes. Several reads see one state only if no writer commits between them. */
  read<Result>(work: () => Result): Result {
    this.assertOpen()
    try {
      return this.withoutWaiting(work)
    } catch (error) {
      throw translated(error)
    }
  }

  /** All or nothing, and alone: no other connection writes meanwhile. */
  write<Result>(work: () => Result): Result {
    this.assertOpen()
    let begun = false
    try {
      return this.withoutWaiting(() => {
        if (this.mustAllowWrites) this.allowWrites()
        this.driver.exec('begin immediate')
        begun = true
        const result = work()
        this.driver.exec('commit')
        return result
      })
    } catch (error) {
      if (begun) this.rollBack()
      throw translated(error)
    }
  }

  /** All or nothing inside of a transaction that is open, which stays usable either way. */
  savepoint<Result>(work: () => Result): Result {
    this.assertOpen()
    let begun = false
    try {
      return this.withoutWaiting(() => {
        this.driver.exec('savepoint holdfast')
        begun = true
        if (this.isTheirs) this.driver.exec(takeLock)
        const result = work()
        this.driver.exec('release holdfast')
        return result
      })
    } catch (error) {
      if (begun) this.rollBack('rollback to holdfast', 'release holdfast')
      throw translated(error)
    }
  }

  /** Begins a transaction in which others write, with a mark that lasts exactly as long as it does. */
  begin(): void {
    this.assertOpen()
    let begun = false
    try {
      if (this.mustAllowWrites) this.allowWrites()
      this.withoutWaiting(() => this.driver.exec('begin immediate'))
      begun = true
      this.driver.exec(`savepoint ${lentMark}`)
    } catch (error) {
      if (begun) this.rollBack()
      throw translated(error)
    }
  }

  /** Takes the mark of `begin` back; false if it is gone, and so the transaction that is open now is another one. */
  takeMark(): boolean {
    try {
      this.driver.exec(`release ${lentMark}`)
      return true
    } catch (error) {
      if (error instanceof Error && error.message.includes('no such savepoint')) return false
      throw translated(error)
    }
  }

  /**
   * A user's function may have forbidden writes for the whole connection, kept its locks, or bounded the size of the file.
   * Bounds on a connection of the user's own stay. Nothing to do on one that is closed.
   */
  allowWrites(): void {
    if (this.isClosed) return
    this.mustAllowWrites = true
    this.driver.exec('pragma query_only = off; pragma locking_mode = normal')
    if (!this.isTheirs) this.driver.exec(`pragma max_page_count = ${mostPages}`)
    this.mustAllowWrites = false
  }

  /** The same at the end of a transaction, which must settle either way: if it fails, the next write does it, or reports why not. */
  tryToAllowWrites(): void {
    try {
      this.allowWrites()
    } catch {
      // The next write meets the same error, if it lasts.
    }
  }

  /** Commits what `begin` began. If SQLite refuses to, nothing has happened. */
  commit(): void {
    try {
      this.driver.exec('commit')
    } catch (error) {
      this.rollBack()
      const storeError = translated(error)
      // A constraint that is checked at the end is the user's own, and so is its error.
      throw isStoreAway(storeError) ? storeError : error
    }
  }

  /** The library's own object. */
  get database(): object {
    return this.driver.database
  }

  close(): void {
    if (this.isClosed) return
    this.isClosed = true
    this.statements.clear()
    this.driver.close()
  }

  /** Forgets the statements, but leaves the connection to its opener. */
  letGo(): void {
    this.isClosed = true
    this.statements.clear()
  }

  private prepared(sql: string): Statement {
    let statement = this.statements.get(sql)
    if (statement === undefined) this.statements.set(sql, (statement = this.driver.prepare(sql)))
    return statement
  }

  private insertOf(into: string, width: number, count: number): string {
    const key = `${count} ${into}`
    let sql = this.inserts.get(key)
    if (sql === undefined) {
      const row = `(0${', ?'.repeat(width)})`
      sql = `insert into ${into} values ${Array.from({ length: count }, () => row).join(', ')}`
      this.inserts.set(key, sql)
    }
    return sql
  }

  rollBack(...how: readonly string[]): void {
    try {
      for (const sql of how.length === 0 ? ['rollback'] : how) this.driver.exec(sql)
    } catch {
      // Some errors end the transaction by themselves; then there is nothing to roll back.
    }
  }

  /** A busy timeout that the owner of the connection has set is theirs; it does not hold for what we do. */
  private withoutWaiting<Result>(work: () => Result): Result {
    const ms = this.mayWait ? this.busyTimeout() : 0
    if (ms === 0) return work()
    this.driver.exec('pragma busy_timeout = 0')
    try {
      return work()
    } finally {
      this.driver.exec(`pragma busy_timeout = ${ms}`)
    }
  }

  private busyTimeout(): number {
    return Number(this.get('pragma busy_timeout', [])?.['timeout'] ?? 0)
  }

  private assertOpen(): void {
    if (this.isClosed) throw closed()
  }
}
