// The rows of sessions that ended long ago go, a few with each end of others, so that there are never more than a day's. An
// ended session comes back without its row as little as with it: only a first heartbeat inserts one.
//
// Nothing is locked: nothing is leased to a session that has ended, so what a look finds stays so. Sessions and runs are
// never joined, because they may be on different machines.

import { endedSessionKeptMs, sessionsForgottenAtOnce } from '../../../core/model/heartbeat.ts'
import { statement, type Dialect } from '../dialect.ts'
import type { Transactions } from '../execution.ts'
import { everyShard } from '../schema/shards.ts'

export interface EndedSessions {
  /** Sessions have just ended. What stands in its way is met again with the next end, so this never fails. */
  forget(transactions: Transactions): Promise<void>
}

export function createEndedSessions(dialect: Dialect, method: 'beat' | 'rescue'): EndedSessions {
  const { schema, now } = dialect
  const shards = everyShard(dialect)
  const given = 'array(select value from json_array_elements_text($2::text::json) as one (value))'
  const old = statement(
    `${method}.old`,
    `
    with clock as materialized (select ${now} as now)
    select id, ended_at from ${schema}.sessions
    where shard = $1::smallint and ended_at is not null and ended_at <= (select now from clock) - ${endedSessionKeptMs}
      and (ended_at, id) > ($2::bigint, $3::text)
    order by ended_at, id limit ${sessionsForgottenAtOnce}`,
  )
  const named = statement(
    `${method}.named`,
    `
    select distinct run.session from ${schema}.runs as run
    where run.shard = $1::smallint and run.status in ('running', 'cancelling') and run.session = any(${given})`,
  )
  const forget = statement(
    `${method}.forget`,
    `delete from ${schema}.sessions where shard = $1::smallint and ended_at is not null and id = any(${given})`,
  )

  /** The first that no run names: as many as go at once. Those that stay are passed over, a page at a time. */
  async function unnamed(transactions: Transactions): Promise<readonly string[]> {
    const found: string[] = []
    for (let after: readonly [number, string] = [0, '']; ;) {
      const rows = await transactions.alone((x) => x.execute(old, [0, ...after]))
      if (rows.length === 0) return found
      const ids = rows.map(({ id }) => id as string)
      const holding = await transactions.alone((x) =>
        Promise.all(shards.map((shard) => x.execute(named, [shard, JSON.stringify(ids)]))),
      )
      const held = new Set(holding.flat().map(({ session }) => session))
      found.push(...ids.filter((id) => !held.has(id)))
      if (rows.length < sessionsForgottenAtOnce || found.length >= sessionsForgottenAtOnce) {
        return found.slice(0, sessionsForgottenAtOnce)
      }
      after = [Number(rows.at(-1)?.['ended_at']), ids.at(-1) ?? '']
    }
  }

  return {
    async forget(transactions) {
      try {
        const ids = await unnamed(transactions)
        if (ids.length === 0) return
        await transactions.alone((x) => x.execute(forget, [0, JSON.stringify(ids)]), `${method}.forget-commit`)
      } catch {
        // The heartbeat or the rescue that it comes with has done its work.
      }
    },
  }
}
