// The common parts of all sets of views. The names of tables, columns and statuses are those of another engine; the rows of a
// view are computed from our tables at each query.

/** One view: a name, its columns in order, and where they come from. */
export interface View {
  readonly name: string
  /**
   * How it differs from the promise of its names: which columns are NULL, and which stand for others. It becomes the comment
   * on the view.
   */
  readonly comment: string
  /** Name to expression. */
  readonly columns: Readonly<Record<string, string>>
  /** All that follows the columns. */
  readonly from: string
}

/** A set of views. `schema` is the name of the schema with our tables, quoted. */
export type ViewSet = (schema: string, shown: Payloads) => readonly View[]

/** The payload columns of a set of views. */
export interface Payloads {
  /** The column, or NULL in its place: a role that may not read a column may not even name it. */
  of(column: string): string
  /** The comments of the views about payloads. */
  readonly note: string
}

export const hidden: Payloads = {
  of: () => 'null::text',
  note: 'Payloads are not shown: their columns are NULL. A second set of these views has them.',
}

export const shown: Payloads = {
  of: (column) => column,
  note: 'Payloads are text as in the journal, after the codec.',
}

/** The data of any entry in `e`. The stored secret of a completion token, or its hash, is no payload. */
export const dataOfAny = `case when e.kind = 'issued' then null else e.data end`

/** Milliseconds as a point in time. */
export const time = (ms: string): string => `to_timestamp((${ms}) / 1000.0)`

/** The word of a view for each of our statuses; one word may stand for several of them. */
export function statusOf(words: Readonly<Record<string, string>>, status = 'r.status'): string {
  const cases = Object.entries(words).map(([status, word]) => `when '${status}' then ${word}`)
  return `case ${status} ${cases.join(' ')} end`
}

/** The data of a run's last entry of some kinds, of the run in `r`. */
export function lastData(schema: string, kinds: readonly string[], column = 'data'): string {
  const list = kinds.map((kind) => `'${kind}'`).join(', ')
  return `(select e.${column} from ${schema}.journal e
      where e.shard = r.shard and e.run_id = r.id and e.kind in (${list}) order by e.seq desc limit 1)`
}

/** The input of a run, of the run in `r`. */
export function inputOf(schema: string): string {
  return `(select e.data from ${schema}.journal e where e.shard = r.shard and e.run_id = r.id and e.seq = r.base)`
}

/** When the lease of a run ends unless its session renews it, in milliseconds, of the run in `r`; null if it has no holder. */
export function leaseEndOf(schema: string, run = 'r'): string {
  return `least(${run}.deadline, (
      select s.alive_until from ${schema}.sessions s where s.shard = 0 and s.id = ${run}.session and s.ended_at is null))`
}

/** The position of every entry of the feed in the order of all commits, to be joined as `f`. It reads the whole feed. */
export function placesOf(schema: string): string {
  return `(select part.run_id, part.seq, part.position from (
      select u.run_id, n.seq, w.position - count(*) over flush + row_number() over (flush order by u.place, n.seq) as position
      from ${schema}.feed w
      cross join lateral unnest(w.runs, w.firsts, w.lasts) with ordinality as u (run_id, first, last, place)
      cross join lateral generate_series(u.first, u.last) as n (seq)
      window flush as (partition by w.shard, w.number)
    ) part) f`
}
