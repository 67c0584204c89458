// Where the time of a scenario goes inside of Postgres: the time of each statement as the server measured it, without the
// wait for the disk at its commit. Every sample has its own schema, so a statement is known by what it does to which tables.

import { withClient } from './postgres.ts'

const shown = 12

interface Times {
  readonly text: string
  readonly calls: number
  readonly ms: number
  readonly rows: number
}

export async function renderStatementTimes(url: string): Promise<string> {
  const found = await withClient(url, async (client) => {
    const known = await client.query("select from pg_extension where extname = 'pg_stat_statements'")
    if (known.rows.length === 0) return null
    const { rows } = await client.query<Times>(
      `select query as text, calls::float, total_exec_time as ms, rows::float
      from pg_stat_statements where dbid = (select oid from pg_database where datname = current_database())`,
    )
    return rows
  })
  if (found === null) return 'This server has no pg_stat_statements, so it does not say how long each statement took.'
  const sums = new Map<string, Times>()
  for (const { text, calls, ms, rows } of found) {
    const name = nameOf(text)
    const before = sums.get(name) ?? { text: name, calls: 0, ms: 0, rows: 0 }
    sums.set(name, { text: name, calls: before.calls + calls, ms: before.ms + ms, rows: before.rows + rows })
  }
  const all = [...sums.values()].sort((a, b) => b.ms - a.ms)
  const total = all.reduce((sum, { ms }) => sum + ms, 0)
  const lines = all.slice(0, shown).map(({ text, calls, ms, rows }) => {
    const share = `${((100 * ms) / total).toFixed(1).padStart(6)} %`
    const each = `${(ms / calls).toFixed(3).padStart(8)} ms`
    return `${share}  ${each}  ${String(calls).padStart(7)}  ${(rows / calls).toFixed(1).padStart(7)}  ${text}`
  })
  return `Time in Postgres by statement, the first ${shown}: share, mean, calls, rows a call\n${lines.join('\n')}`
}

/** What it does to our tables, in the order of its text; its beginning if it touches none. */
function nameOf(text: string): string {
  const touches = Array.from(text.matchAll(/\b(insert into|update|delete from|from|join)\s+"?bench_\w+"?\.(\w+)/g))
  if (touches.length === 0) return text.trim().replaceAll(/\s+/g, ' ').slice(0, 60)
  return [...new Set(touches.map(([, verb, table]) => `${verb} ${table}`))].join(', ')
}
