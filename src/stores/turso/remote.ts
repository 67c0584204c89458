// The driver over `libsql` for a database on a server. Each statement is one request that this thread waits for. A
// transaction lives in a stream on the server, and the library goes on with a stream also when the server has forgotten it
// or cannot be reached any more: so after such an error the connection is opened anew, outside of transactions only.
// Outside of them nothing but reads and the beginning of a transaction is sent, which may be sent again.

import { isDefect } from '../../core/errors/driver-error.ts'
import { HoldfastError } from '../../core/errors/error.ts'
import type { Driver, Row, Statement } from '../sqlite/driver/driver.ts'
import { loadLibsql, type DatabaseLike } from '../sqlite/driver/libsql.ts'

export interface Server {
  readonly url: string
  readonly authToken: string | null
}

type Connect = (server: Server) => DatabaseLike

export async function openRemote(server: Server): Promise<Driver> {
  const Database = await loadLibsql('A store on a libsql server')
  // The library takes a token, but its types do not say so.
  const options: object = server.authToken === null ? {} : { authToken: server.authToken }
  return overRemote(({ url }) => new Database(url, options), server)
}

function overRemote(connect: Connect, server: Server): Driver {
  const remote = new Remote(connect, server)
  return {
    name: 'libsql',
    database: remote,
    prepare: (sql) => remote.prepare(sql),
    exec: (sql) => remote.exec(sql),
    close: () => remote.close(),
  }
}

class Remote {
  private readonly connect: Connect
  private readonly server: Server
  private database: DatabaseLike
  private inTransaction = false
  private broken: HoldfastError | null = null

  constructor(connect: Connect, server: Server) {
    this.connect = connect
    this.server = server
    this.database = connect(server)
  }

  prepare(sql: string): Statement {
    let prepared: ReturnType<DatabaseLike['prepare']> | null = null
    let of: DatabaseLike | null = null
    const current = (): ReturnType<DatabaseLike['prepare']> => {
      if (prepared === null || of !== this.database) {
        prepared = this.database.prepare(sql)
        of = this.database
      }
      return prepared
    }
    return {
      run: (values) => this.send(() => current().run(values).changes),
      get: (values) => this.send(() => current().get(values) as Row | undefined),
      all: (values) => this.send(() => current().all(values) as Row[]),
    }
  }

  exec(sql: string): void {
    const ends = sql === 'commit' || sql === 'rollback'
    try {
      this.send(() => void this.database.exec(sql))
      if (sql.startsWith('begin')) this.inTransaction = true
    } finally {
      if (ends) this.inTransaction = false
    }
  }

  close(): void {
    this.database.close()
  }

  private send<Result>(request: () => Result): Result {
    if (this.inTransaction) {
      // The transaction is lost with its stream: nothing more of it may reach the server.
      if (this.broken !== null) throw this.broken
      return this.once(request)
    }
    if (this.broken === null) {
      try {
        return this.once(request)
      } catch (error) {
        // Most often a stream that the server dropped because it was idle.
        if (this.broken === null) throw error
      }
    }
    this.broken = null
    this.database = this.connect(this.server)
    return this.once(request)
  }

  private once<Result>(request: () => Result): Result {
    try {
      return request()
    } catch (error) {
      const translated = this.translated(error)
      if (translated instanceof HoldfastError) this.broken = translated
      throw translated
    }
  }

  /** An error of the database gets SQLite's code; every other is about the connection. */
  private translated(error: unknown): Error {
    const text = this.withoutToken(error instanceof Error ? error.message : String(error))
    const code =
      /\bSQLITE_[A-Z_]+/.exec(text)?.[0] ?? (/constraint failed/i.test(text) ? 'SQLITE_CONSTRAINT' : undefined)
    if (code !== undefined) return Object.assign(new Error(text), { code })
    // A value that cannot be sent says nothing of the server.
    if (isDefect(error)) return error as Error
    const isRefusal = /status=40[13]\b/.test(text)
    const message = isRefusal
      ? 'The libsql server refuses the token. Check the authToken of the address, and whether it may write.'
      : 'The libsql server cannot be reached, or does not answer as one.'
    return new HoldfastError(isRefusal ? 'STORE_REFUSED' : 'STORE_UNAVAILABLE', `${message} libsql says: ${text}`, {
      details: { server: new URL(this.server.url).host },
    })
  }

  private withoutToken(text: string): string {
    const { authToken } = this.server
    return authToken === null || authToken === '' ? text : text.replaceAll(authToken, '…')
  }
}
