// A schema as it is after a long standstill: hundreds of thousands of runs that are ready, scheduled, blocked, asleep, held
// and over, with their journals, messages, tags and their place in the feed, who waits on what, and what topics keep. Made by SQL, in the forms that the store writes.

import { Client, escapeIdentifier } from 'pg'

/** How many runs there are of each. They lie in this order: what is over is the oldest. */
export interface BacklogSizes {
  readonly over: number
  readonly held: number
  readonly asleep: number
  readonly ready: number
  readonly timed: number
  readonly blocked: number
}

/** Who holds runs: this many sessions, called `holder-0` and so on. */
export const holders = 20

/** The run that has a long journal and a long mailbox, all taken. It is the first of those asleep. */
const longest = { entries: 3_000, messages: 3_000 }

/** About so many of the second type (one run in six is of it) are due, and not among the ready ones yet. */
const dueAlready = 1_500

const exchanged = ['waits', 'topics', 'broadcasts']

/** On every topic so many wait. */
const subscribers = 5

export class Backlog {
  readonly url: string
  readonly schema: string
  readonly sizes: BacklogSizes
  private readonly baseMs: number

  constructor(url: string, schema: string, sizes: BacklogSizes) {
    this.url = url
    this.schema = schema
    this.sizes = sizes
    this.baseMs = Date.now() - 86_400_000
  }

  /** The id of a run of some kind, counted from 1. */
  id(kind: keyof BacklogSizes, index: number): string {
    const place = this.before(kind) + index
    const digits = (number: number, length: number): string => number.toString(16).padStart(length, '0')
    const ms = digits(this.baseMs + place, 12)
    return `${ms.slice(0, 8)}-${ms.slice(8)}-7000-8000-${digits(place, 12)}`
  }

  /** The number of a run among all, which its keys carry. */
  place(kind: keyof BacklogSizes, index: number): number {
    return this.before(kind) + index
  }

  get total(): number {
    return Object.values(this.sizes).reduce<number>((sum, size: number) => sum + size, 0)
  }

  /** Whatever was there goes, row by row: nothing may show the database that the tables are others now. */
  async fill(): Promise<void> {
    const at = escapeIdentifier(this.schema)
    const tables = ['runs', 'keys', 'journal', 'messages', 'tags', 'feed', 'sessions', ...exchanged]
    await this.execute(...tables.map((table) => `delete from ${at}.${table}`))
    await this.execute(this.runsSql(), this.keysSql(), this.journalSql(), this.restSql(), this.exchangeSql())
  }

  /** Brings the statistics up to date. */
  async analyze(): Promise<void> {
    const tables = [
      'runs',
      'journal',
      'messages',
      'tags',
      'feed',
      'sessions',
      'sequencer',
      'keys',
      'workflows',
      ...exchanged,
    ]
    await this.execute(...tables.map((table) => `vacuum (analyze) ${escapeIdentifier(this.schema)}.${table}`))
  }

  /** From here on nobody but the test brings statistics up to date or cleans up. */
  async leaveAlone(): Promise<void> {
    const tables = ['runs', 'keys', 'journal', 'messages', 'tags', 'feed', 'sessions', ...exchanged]
    const at = escapeIdentifier(this.schema)
    await this.execute(...tables.map((table) => `alter table ${at}.${table} set (autovacuum_enabled = off)`))
  }

  async execute(...statements: readonly string[]): Promise<void> {
    const client = new Client({ connectionString: this.url })
    await client.connect()
    try {
      for (const text of statements) await client.query(text)
    } finally {
      await client.end()
    }
  }

  private before(kind: keyof BacklogSizes): number {
    const kinds = Object.keys(this.sizes) as (keyof BacklogSizes)[]
    return kinds.slice(0, kinds.indexOf(kind)).reduce((sum, one) => sum + this.sizes[one], 0)
  }

  /** A column of numbers from 1 on, each with what a run of that number is. */
  private get numbered(): string {
    const { over, held, asleep, ready, timed } = this.sizes
    const kind = `case when n <= ${over} then 'over' when n <= ${over + held} then 'held'
      when n <= ${over + held + asleep} then 'asleep' when n <= ${over + held + asleep + ready} then 'ready'
      when n <= ${over + held + asleep + ready + timed} then 'timed' else 'blocked' end`
    return `(select n, ${kind} as kind, ${this.baseMs}::bigint + n as at, ${idSql(this.baseMs, 'n')} as id,
      case when n % 60000 = 1 then 'audit' when n % 6 = 0 then 'ship' else 'charge' end as type
      from generate_series(1, ${this.total}) as n) as one`
  }

  private runsSql(): string {
    const future = Date.now() + 86_400_000
    return `insert into ${escapeIdentifier(this.schema)}.runs (shard, id, type, version, status, readiness, rank, due, seq,
        token, session, deadline, timeout_at, expires_at, key, unique_key, idempotency_key, started_as, parent_id, tags,
        created_at, updated_at, ended_at)
      select 0, id, type, 1,
        case kind when 'over' then case when n % 1000 = 0 then 'failed' else 'succeeded' end
          when 'held' then 'running' when 'asleep' then 'waiting' else 'pending' end,
        case kind when 'over' then 'idle' when 'held' then 'leased' when 'asleep' then 'idle' else kind end,
        case when n % 10 = 0 then -1 else 0 end,
        case kind when 'ready' then at
          when 'timed' then case when type = 'ship' and n % 1000 < 30 and n < ${this.before('timed') + dueAlready * 40}
            then at else ${future} + n end end,
        case when kind in ('held', 'asleep') then 3 else 1 end,
        case when kind in ('held', 'asleep', 'over') then 1 else 0 end,
        case kind when 'held' then 'holder-' || n % ${holders} end,
        case when kind = 'held' and n % 2 = 0 then ${future} + n end,
        case when kind <> 'over' and n % 2 = 0 then ${future} + n end,
        case when kind in ('ready', 'timed') and n % 5 = 0 then ${future} + n end,
        'key-' || n, 'workflow ' || type || ' key-' || n, 'once-' || n, type,
        case when n % 10 = 0 then ${idSql(this.baseMs, '1')} when n % 10 = 1 then ${idSql(this.baseMs, '(n / 100)')} end,
        case when n % 50000 = 1 then '["eu","rare"]' when n % 2 = 0 then '["eu"]' end,
        at, at, case kind when 'over' then at end
      from ${this.numbered}`
  }

  private keysSql(): string {
    const at = escapeIdentifier(this.schema)
    return `insert into ${at}.keys (shard, type, key, run_id)
      select shard, '', unique_key, id from ${at}.runs where unique_key is not null and ended_at is null
      union all
      select shard, started_as, idempotency_key, id from ${at}.runs where idempotency_key is not null`
  }

  private journalSql(): string {
    return `insert into ${escapeIdentifier(this.schema)}.journal (shard, run_id, seq, kind, name, meta, data, at, transition_id)
      select 0, id, seq, case seq when 1 then 'started' else 'step-succeeded' end, case when seq > 1 then 'charge' end,
        case when seq > 1 then '{"attempt":1,"ms":1}' end, '{}', at, 'made-' || n || '-' || seq
      from ${this.numbered} cross join lateral generate_series(1, case when n = ${this.place('asleep', 1)}
        then ${longest.entries} when kind in ('held', 'asleep') then 3 else 1 end) as seq`
  }

  private restSql(): string {
    const at = escapeIdentifier(this.schema)
    const alive = Date.now() + 86_400_000
    return `
      update ${at}.runs set seq = ${longest.entries}, inbox = ${longest.messages}
      where shard = 0 and id = '${this.id('asleep', 1)}';
      insert into ${at}.messages (shard, run_id, position, id, name, data, at, outcome, taken_by)
      select 0, id, position, 'message-' || n || '-' || position, 'approved', '{}', at, 'delivered', position
      from ${this.numbered} cross join lateral generate_series(1, case when n = ${this.place('asleep', 1)}
        then ${longest.messages} when kind = 'asleep' then 3 else 0 end) as position;
      update ${at}.runs set inbox = 3 where shard = 0 and status = 'waiting' and inbox = 0;
      insert into ${at}.tags (shard, tag, run_id)
      select 0, 'eu', id from ${this.numbered} where n % 2 = 0 or n % 50000 = 1
      union all select 0, 'rare', id from ${this.numbered} where n % 50000 = 1;
      insert into ${at}.feed (shard, number, runs, firsts, lasts, position)
      select 0, n / 10, array_agg(id), array_agg(1), array_agg(1), n / 10 * 10 from ${this.numbered} group by n / 10;
      update ${at}.sequencer set last = ${Math.floor(this.total / 10) * 10};
      select setval('${at}.feed_number', ${this.total});
      insert into ${at}.sessions (shard, id, opened_at, alive_until, ended_at)
      select 0, 'holder-' || n, 1, ${alive}, null from generate_series(0, ${holders - 1}) as n
      union all select 0, 'gone-' || n, 1, 1, 1 from generate_series(1, 5000) as n;`
  }

  /**
   * Topics on which few wait, and to which much was sent; a queue on which all wait who sleep; one on which nobody does, and
   * that keeps much; and a dead letter of every tenth run that is over.
   */
  private exchangeSql(): string {
    const at = escapeIdentifier(this.schema)
    const groups = Math.max(1, Math.floor(this.sizes.asleep / subscribers))
    return `
      insert into ${at}.topics (shard, name, position)
      select 0, 'topic-' || n, 100 from generate_series(0, ${groups - 1}) as n
      union all values (0, 'idlers', 0), (0, 'jobs', 5000);
      insert into ${at}.waits (shard, kind, target, run_id, effect, delivery, opened_at)
      select 0, 'topic', 'topic-' || n % ${groups}, id, 'notify', 'all', at from ${this.numbered} where kind = 'asleep'
      union all select 0, 'topic', 'idlers', id, 'notify', 'one', at from ${this.numbered} where kind = 'asleep'
      union all select 0, 'run', ${idSql(this.baseMs, this.place('held', 1).toString())}::text, id, 'notify', null, at
        from ${this.numbered} where kind = 'asleep';
      insert into ${at}.broadcasts (shard, topic, position, id, delivery, data, at, expires_at, taken_by, delivered_to)
      select 0, 'topic-' || n, position, 'b' || position, 'all', '{}', ${this.baseMs}, null::bigint, null::uuid, 5
      from generate_series(0, ${groups - 1}) as n cross join generate_series(1, 20) as position
      union all select 0, 'jobs', n, 'b' || n, 'one', '{}', ${this.baseMs}, null,
        case when n <= 2500 then ${idSql(this.baseMs, '1')} end, 0 from generate_series(1, 5000) as n;
      insert into ${at}.messages (shard, run_id, position, id, name, data, at, outcome, taken_by, on_unread, fate)
      select 0, id, 1, 'dead', 'approved', '{}', at, 'queued', 1, 'dead-letter', 'dead'
      from ${this.numbered} where kind = 'over' and n % 10 = 0;
      update ${at}.runs set inbox = 1 where shard = 0 and id in (
        select run_id from ${at}.messages where shard = 0 and fate = 'dead');`
  }
}

/** Of version 7, in shard 0, in the order of their numbers. */
function idSql(baseMs: number, n: string): string {
  return `(lpad(to_hex(${baseMs}::bigint + ${n}), 12, '0') || '70008000' || lpad(to_hex(${n}), 12, '0'))::uuid`
}
