// Messages leave their mailbox. Each is looked up by its key and written by its key: an insert with ON CONFLICT DO UPDATE
// uses the key under any plan. An update that joins the given rows reads the whole mailbox of each run, or more. Whether a
// message was taken before is a condition apart from the lookup: the planner would prefer the shorter indexes of unread
// messages, and search one among a hundred thousand.

export interface Taking {
  /** A relation with the run `r` of each, once. */
  readonly from: string
  /** Which message of that run; null if the relation has its `position` already, and so the whole key. */
  readonly found: string | null
  /** The entry with which it leaves, and its fate. */
  readonly take: string
}

/** The statement that takes them, of the shard of the first value, unless they were taken before. */
export function updateMessages(schema: string, { from, found, take }: Taking): string {
  const [relation = ''] = from.split(' ')
  const lookup = `
      from ${from} cross join lateral (
        select message.position, message.taken_by from ${schema}.messages as message
        where message.shard = $1::smallint and message.run_id = ${relation}.r and ${found} offset 0) as message
      where message.taken_by is null`
  return `
      insert into ${schema}.messages as message (
        shard, run_id, position, id, name, data, at, outcome, taken_by, fate)
      select $1::smallint, ${relation}.r, ${found === null ? relation : 'message'}.position, '', '', '', 0, '', ${take}
      ${found === null ? `from ${from}` : lookup}
      on conflict (shard, run_id, position) do update set taken_by = excluded.taken_by, fate = excluded.fate
      where message.taken_by is null`
}
