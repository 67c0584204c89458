// A foreign transaction holds the row from which the feed gives positions. Readers of the feed get what has a position already, and
// the rest when the row is free: no reader waits, and none skips anything.

import { expect, it } from 'vitest'
import { migratedSchema } from '../support/postgres-shared.ts'
import { connectedTo } from './lent.ts'
import { opened } from './proxied.ts'

it('a locked sequencer keeps no reader of the feed waiting', { timeout: 60_000 }, async () => {
  const { url, schema } = await migratedSchema()
  const { bench, store } = await opened({ url, schema })
  const idsOf = async (): Promise<readonly string[]> => (await store.changes(0, 100)).map(({ runId }) => runId)
  const first = await bench.start({ feed: true })
  expect(await idsOf()).toEqual([first.id])
  const second = await bench.start({ feed: true })

  const user = await connectedTo(url)
  await user.query('begin')
  await user.query(`select 1 from ${schema}.sequencer for update`)
  expect(await idsOf()).toEqual([first.id])
  // Nothing was given up: the lock is still held.
  await user.query('rollback')
  expect(await idsOf()).toEqual([first.id, second.id])
})
