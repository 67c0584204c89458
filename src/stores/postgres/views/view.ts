// What the views of every design are made of. A view has the names of its design and nothing else in common with it: what
// it shows is computed from our tables when somebody looks.

/** One view: a name, its columns in order, and where they come from. */
export interface View {
  readonly name: string
  /** What is different from the design: what is NULL, what stands for what. It becomes the comment on the view. */
  readonly comment: string
  /** Name to expression. */
  readonly columns: Readonly<Record<string, string>>
  /** All that follows the columns. */
  readonly from: string
}

/** The views of one design. `schema` is the name of the schema with our tables, quoted. */
export type Design = (schema: string, shown: Payloads) => readonly View[]

/** What a set of views shows of payloads. */
export interface Payloads {
  /** The column, or NULL in its place: whoever may not read a column may not even name it. */
  of(column: string): string
  /** What the comments on the views say of it. */
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

/** The data of any entry in `e`. What is kept of a token is no payload. */
export const dataOfAny = `case when e.kind = 'issued' then null else e.data end`

/** Milliseconds as a point in time. */
export const time = (ms: string): string => `to_timestamp((${ms}) / 1000.0)`

/** One word for each of ours; a word that stands here twice is theirs for several of ours. */
export function statusOf(words: Readonly<Record<string, string>>, status = 'r.status'): string {
  const cases = Object.entries(words).map(([ours, theirs]) => `when '${ours}' then ${theirs}`)
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

/** When the lease of a run ends unless somebody keeps it, in milliseconds, of the run in `r`; null if nobody holds it. */
export function leaseEndOf(schema: string): string {
  return `least(r.deadline, (
      select s.alive_until from ${schema}.sessions s where s.shard = 0 and s.id = r.session and s.ended_at is null))`
}

/** The place of every entry that the feed tells of in the order of all of these, to be joined as `f`. It reads the whole feed. */
export function placesOf(schema: string): string {
  return `(select part.run_id, part.seq, part.position from (
      select u.run_id, n.seq, w.position - count(*) over flush + row_number() over (flush order by u.place, n.seq) as position
      from ${schema}.feed w
      cross join lateral unnest(w.runs, w.firsts, w.lasts) with ordinality as u (run_id, first, last, place)
      cross join lateral generate_series(u.first, u.last) as n (seq)
      window flush as (partition by w.shard, w.number)
    ) part) f`
}
