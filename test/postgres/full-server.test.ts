// A server that gives no more connections to anybody. A worker goes on with those that it has, and lives: the connection that
// is kept for heartbeats is an open one, not a right to ask for one.

import { describe, expect, it, onTestFinished } from 'vitest'
import { openPostgresStore } from '../../src/stores/postgres/index.ts'
import { freshDatabase } from '../support/postgres-shared.ts'
import { connectedTo, never } from './lent.ts'

/** A database and a user for whom its limit of connections holds; it does not for a superuser. */
async function limited(): Promise<{ readonly url: string; readonly fill: () => Promise<unknown> }> {
  const url = new URL(await freshDatabase())
  const database = url.pathname.slice(1)
  const client = await connectedTo(url.href)
  const user = `user_${database}`
  await client.query(
    `create role "${user}" login password '${user}'; grant create on database "${database}" to "${user}"`,
  )
  url.username = user
  url.password = user
  return { url: url.href, fill: () => client.query(`alter database "${database}" connection limit 0`) }
}

describe('a server without a connection left', { timeout: 60_000 }, () => {
  it('is beaten to all the same, whatever the connections of this process are used for', async () => {
    const { url, fill } = await limited()
    const store = await openPostgresStore({ url, connections: 4, listen: false })
    onTestFinished(() => store.close())
    await store.migrate()
    const beat = () => store.beat({ session: 'one', leaseMs: 60_000 })
    await beat()
    // It takes one that was open already.
    let isOpen: () => void = () => undefined
    const opened = new Promise<void>((resolve) => (isOpen = resolve))
    const hung = store
      .transact(async () => {
        isOpen()
        return never()
      })
      .catch((error: unknown) => error)
    await opened
    await fill()
    expect(await beat()).toMatchObject({ alive: true })
    await store.close()
    expect(await hung).toMatchObject({ code: 'CLOSED' })
  })
})
