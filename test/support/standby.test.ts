// The servers of the failover tests do what they are for: a standby that follows synchronously has everything that was
// acknowledged, and one that has lost touch does not.

import { Client } from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { startPostgres, type Cluster } from './postgres.ts'
import { startRelay } from './relay.ts'
import { startStandby } from './standby.ts'

async function ask(url: string, text: string): Promise<readonly unknown[]> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    const { rows } = await client.query<{ readonly n: number }>(text)
    return rows.map(({ n }) => n)
  } finally {
    await client.end()
  }
}

async function ownCluster(): Promise<Cluster> {
  const cluster = await startPostgres({ version: 'embedded' })
  onTestFinished(() => cluster.remove())
  await ask(cluster.url, 'create table acknowledged (n integer)')
  return cluster
}

describe('a standby', { timeout: 60_000 }, () => {
  it.each([
    ['has what was acknowledged when the primary is killed', true, [1]],
    ['that has lost touch lacks it', false, []],
  ] as const)('%s', async (_, isInTouch, expected) => {
    const primary = await ownCluster()
    const standby = await startStandby(primary)
    onTestFinished(() => standby.remove())
    if (isInTouch) await standby.followSynchronously()
    else await standby.loseTouch()
    const address = await startRelay(primary.port)
    onTestFinished(() => address.close())
    const url = new URL(primary.url)
    url.port = `${address.port}`
    await ask(url.href, 'insert into acknowledged values (1)')
    await primary.kill()
    await standby.promote()
    address.aim(standby.port)
    expect(await ask(url.href, 'select n from acknowledged')).toEqual(expected)
    // It waits for no standby of its own.
    await ask(url.href, 'insert into acknowledged values (2)')
    expect(await ask(url.href, 'select n from acknowledged')).toEqual([...expected, 2])
  })
})
