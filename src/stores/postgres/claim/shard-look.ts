// Which shards a claim asks where rows are spread over machines. A claim is a statement of many parts, and Citus takes 5 to 10 ms
// to send one to the machine of its shard; a statement that names a shard and looks into one table takes it 0.4 ms. So all
// shards are looked at first, by such statements, in one round trip, and a claim is sent to those where one may find something.
// A run that becomes ready meanwhile is hinted at, like any other.

import type { ClaimRequest } from '../../../store.ts'
import { statement, type Dialect } from '../dialect.ts'
import type { Transactions } from '../execution.ts'
import { everyShard } from '../schema/shards.ts'

export interface ShardLook {
  /** The shards in which there may be something to claim. */
  readonly shards: ReadonlySet<number>
  /** When the next run of the others comes due; null if there is none. */
  readonly nextDue: number | null
  readonly now: number
}

export interface ShardLookQueries {
  /** Null if the claim is for so many types that it is cheaper to ask every shard. */
  look(transactions: Transactions, request: ClaimRequest): Promise<ShardLook | null>
}

/** Each type takes two statements for each shard. */
const mostTypes = 8

export function createShardLookQueries(dialect: Dialect): ShardLookQueries {
  const { schema, now } = dialect
  const shards = everyShard(dialect)
  const time = statement([], `select ${now} as now`)
  const ofType = `from ${schema}.runs where shard = $1::smallint and type = $2::text and version = $3::integer`
  const ready = statement([], `select 0::bigint as due ${ofType} and readiness = 'ready' limit 1`)
  const timed = statement([], `select due ${ofType} and readiness = 'timed' order by due limit 1`)
  // Suspects are due by their own time.
  const isolated = statement([], `select due ${ofType} and readiness = 'isolated' order by due limit 1`)

  return {
    async look(transactions, { selectors, isolated: isApart = false }) {
      if (selectors.length > mostTypes) return null
      const statements = isApart ? [isolated] : [ready, timed]
      const asked = shards.flatMap((shard) =>
        selectors.flatMap(({ type, version }) => statements.map((one) => ({ shard, one, type, version }))),
      )
      const [[row], ...answers] = await transactions.alone((x) =>
        Promise.all([
          x.execute(time, []),
          ...asked.map(({ shard, one, type, version }) => x.execute(one, [shard, type, version])),
        ]),
      )
      const at = Number(row?.['now'])
      const found = new Set<number>()
      let nextDue: number | null = null
      for (const [index, { shard }] of asked.entries()) {
        const due = answers[index]?.[0]?.['due'] ?? null
        if (due === null) continue
        if (Number(due) <= at) found.add(shard)
        else nextDue = Math.min(nextDue ?? Number(due), Number(due))
      }
      return { shards: found, nextDue, now: at }
    },
  }
}
