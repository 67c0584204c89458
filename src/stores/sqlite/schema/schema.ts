// The tables, as a list of migrations that only ever grows. Each is applied once, in one transaction together with the row
// that says so, so that any number of processes may start at once on a missing file.
//
// The rules of every table: `shard` leads every key (0 for now), times are integers in milliseconds, payloads are text after
// the codec. There are no triggers, no foreign keys and no WITHOUT ROWID: Turso shares this SQL.

import { HoldfastError } from '../../../core/errors/error.ts'
import type { Connection } from '../driver/connection.ts'

/** Each string is one version; version 1 stands first. */
export const migrations: readonly string[] = [
  `
  create table runs (
    shard integer not null,
    id text not null,
    type text not null,
    version integer not null,
    status text not null default 'pending',
    readiness text not null default 'ready',
    priority integer not null,
    due integer,
    seq integer not null default 1,
    base integer not null default 1,
    inbox integer not null default 0,
    control_request text,
    crashes integer not null default 0,
    token integer not null default 0,
    session text,
    deadline integer,
    timeout_at integer,
    expires_at integer,
    created_at integer not null,
    updated_at integer not null,
    ended_at integer,
    primary key (shard, id)
  ) strict;

  -- The next runs to claim: the columns that must be equal, then the order of the claim. Runs that are not due yet stand apart.
  create index runs_ready on runs (shard, type, version, priority desc, due, id) where readiness = 'ready';
  create index runs_timed on runs (shard, type, version, due, id) where readiness = 'timed';
  -- For takeovers.
  create index runs_held on runs (shard, session, id) where session is not null;
  create index runs_deadline on runs (shard, deadline, id) where deadline is not null;
  create index runs_timeout on runs (shard, timeout_at, id) where timeout_at is not null and ended_at is null;
  create index runs_expiry on runs (shard, expires_at, id) where expires_at is not null;

  create table journal (
    shard integer not null,
    run_id text not null,
    seq integer not null,
    kind text not null,
    name text,
    meta text,
    data text,
    at integer not null,
    transition_id text,
    primary key (shard, run_id, seq)
  ) strict;

  create table messages (
    shard integer not null,
    run_id text not null,
    position integer not null,
    id text not null,
    name text not null,
    data text not null,
    at integer not null,
    outcome text not null,
    primary key (shard, run_id, position)
  ) strict;
  create unique index messages_id on messages (shard, run_id, id);

  -- One row a flush. Its position is that of its last entry; its entries are [run, first seq, last seq], in order.
  create table feed (
    shard integer not null,
    position integer not null,
    entries text not null,
    primary key (shard, position)
  ) strict;

  create table sessions (
    shard integer not null,
    id text not null,
    opened_at integer not null,
    alive_until integer not null,
    ended_at integer,
    primary key (shard, id)
  ) strict;
  create index sessions_alive on sessions (shard, alive_until) where ended_at is null;

  create table workflows (
    shard integer not null,
    type text not null,
    version integer not null,
    style text not null,
    queue text,
    seen_at integer not null,
    primary key (shard, type, version)
  ) strict;
  `,
  `
  -- In quotes, or libsql writes it in capitals on the way to a server.
  alter table runs add column "key" text;
  alter table runs add column key_scope text not null default 'workflow';
  -- The business key with its scope: unique among live runs.
  alter table runs add column unique_key text;
  alter table runs add column idempotency_key text;
  -- The type that its idempotency key belongs to: that of its start, also when the run goes on as another.
  alter table runs add column started_as text;
  alter table runs add column parent_id text;
  alter table runs add column tags text;
  alter table runs add column metadata text;
  alter table runs add column undo text not null default 'none';
  alter table runs add column deleted_at integer;
  alter table runs add column delete_reason text;
  -- The entry with which the run took it.
  alter table messages add column taken_by integer;

  create unique index runs_unique on runs (shard, unique_key)
    where unique_key is not null and ended_at is null and deleted_at is null;
  create unique index runs_idempotency on runs (shard, idempotency_key, started_as)
    where idempotency_key is not null and deleted_at is null;
  -- For lists of runs and their filters.
  create index runs_key on runs (shard, key, id) where key is not null;
  create index runs_parent on runs (shard, parent_id, id) where parent_id is not null;
  create table tags (
    shard integer not null,
    tag text not null,
    run_id text not null,
    primary key (shard, tag, run_id)
  ) strict;
  -- For heartbeats.
  create index runs_control_requested on runs (shard, session, id) where control_request is not null;
  -- A removed run has no timeout.
  drop index runs_timeout;
  create index runs_timeout on runs (shard, timeout_at, id)
    where timeout_at is not null and ended_at is null and deleted_at is null;
  drop index runs_expiry;
  create index runs_expiry on runs (shard, expires_at, id) where expires_at is not null and deleted_at is null;
  `,
  `
  -- Other runs are notified of its end, or cancelled with it.
  alter table runs add column watched integer not null default 0;
  alter table messages add column kind text not null default 'signal';
  -- The policy if its run ends without taking it: it is discarded, a dead letter, or a broadcast to the topic of
  -- its name, which delivers and retains it like this. And its fate then.
  alter table messages add column on_unread text;
  alter table messages add column delivery text;
  alter table messages add column retain_ms integer;
  alter table messages add column fate text;
  -- A mailbox may be long, and most of it taken: unread messages are found in order, and by name.
  create index messages_unread on messages (shard, run_id, position) where taken_by is null;
  create index messages_named on messages (shard, run_id, name, position) where taken_by is null;
  create index messages_dead on messages (shard, at, run_id, id) where fate = 'dead';

  -- Runs that wait on the end of a run or on a topic, found by that run or topic.
  create table waits (
    shard integer not null,
    kind text not null,
    target text not null,
    run_id text not null,
    effect text not null,
    delivery text,
    opened_at integer not null,
    primary key (shard, kind, target, run_id, effect)
  ) strict;

  create table topics (
    shard integer not null,
    name text not null,
    position integer not null,
    primary key (shard, name)
  ) strict;

  create table broadcasts (
    shard integer not null,
    topic text not null,
    position integer not null,
    id text not null,
    delivery text not null,
    data text not null,
    -- The policy of its unread messages, as JSON: no statement reads inside it.
    policy text,
    at integer not null,
    expires_at integer,
    taken_by text,
    delivered_to integer not null,
    primary key (shard, topic, position)
  ) strict;
  create unique index broadcasts_id on broadcasts (shard, topic, id);
  -- Broadcasts that wait for a run; those that went to all subscribers, or to one; and those that expire.
  create index broadcasts_open on broadcasts (shard, topic, position) where delivery = 'one' and taken_by is null;
  create index broadcasts_to_all on broadcasts (shard, topic, at) where delivery = 'all';
  create index broadcasts_taken on broadcasts (shard, topic, at) where delivery = 'one' and taken_by is not null;
  create index broadcasts_expiry on broadcasts (shard, topic, expires_at)
    where expires_at is not null and taken_by is null;
  `,
  `
  -- Which messages wake a run that waits, as \`core/rows/wake-names.ts\` writes it; null if any does.
  alter table runs add column wake_names text;
  `,

  // Suspects, which are performed in isolation.
  `
  create index runs_isolated on runs (shard, type, version, due, id) where readiness = 'isolated';
  `,

  // Only the runs that time may end: a run that is held, paused or undone is no more looked at when its time is over.
  // Processes of the version before go on with the indexes that they name.
  `
  create index runs_bound_timeout on runs (shard, timeout_at, id)
    where timeout_at is not null and session is null and status not in ('paused', 'cancelling') and undo <> 'due'
      and deleted_at is null and ended_at is null;
  create index runs_bound_expiry on runs (shard, expires_at, id)
    where expires_at is not null and session is null and status not in ('paused', 'cancelling') and undo <> 'due'
      and deleted_at is null and ended_at is null;
  `,

  // The work that an end or a broadcast leaves to be written in pages (`core/model/chore.ts`).
  `
  create table chores (
    shard integer not null,
    kind text not null,
    target text not null,
    position integer not null,
    -- The last subscriber that got the broadcast of that position.
    after_opened_at integer,
    after_run text,
    -- The time from which a worker may take it.
    due integer not null,
    primary key (shard, kind, target)
  ) strict;
  create index chores_due on chores (shard, due, kind, target);
  -- The position of the topic when the run subscribed: it gets the broadcasts after that.
  alter table waits add column since integer not null default 0;
  create index waits_longest on waits (shard, kind, target, opened_at, run_id) where delivery is not null;
  `,
  `
  -- The key that its payloads were last written with. The index has the live runs that need one, for workers that start without it.
  alter table runs add column key_id text;
  create index runs_keyed on runs (shard, key_id) where key_id is not null and ended_at is null and deleted_at is null;
  `,

  // The key from which the secrets of completion tokens are derived: 256 random bits.
  `
  create table secrets (
    shard integer not null primary key,
    token_key text not null
  ) strict;
  insert into secrets (shard, token_key) values (0, lower(hex(randomblob(32))));
  `,

  // The waits on a run, in pages. Deletes do not name the delivery, so that they look up a wait by its key.
  `
  create index waits_on_run on waits (shard, kind, target, opened_at, run_id, effect) where delivery is null;
  `,

  // The first broadcast that a subscriber could not be given. With one writer that never is so; the stores have one shape.
  `
  alter table waits add column missed integer;
  create index waits_late on waits (shard, target, opened_at, run_id) where missed is not null;
  `,

  // Whether a run is in the feed. All runs were before, and those stay in it until they end.
  `
  alter table runs add column feed integer not null default 1;
  `,

  // The sessions that have ended; when to look whether a topic is in use, and for how long it keeps its broadcasts. The row with
  // an empty name has the highest position of all topics that are gone, and is not looked at.
  `
  create index sessions_ended on sessions (shard, ended_at, id) where ended_at is not null;
  alter table topics add column retain_ms integer;
  alter table topics add column look_at integer default 0;
  -- For lists of runs of a type. No change of a run changes it, so only a start pays for it. The condition is true of every row:
  -- only a query that repeats it uses the index, which Turso would otherwise take where a run is looked up by its id.
  create index runs_type on runs (shard, type, id) where created_at >= 0;
  create index topics_look on topics (shard, look_at, name) where look_at is not null;
  insert into topics (shard, name, position)
  select distinct 0, target, 0 from waits where shard = 0 and kind = 'topic' on conflict do nothing;
  `,

  // Projections: how far each is, and who moves it on. While one is built anew it has a second row.
  `
  create table projections (
    shard integer not null,
    name text not null,
    part text not null,
    definition text not null,
    status text not null,
    begun integer not null,
    position integer not null,
    session text,
    token integer not null,
    alive_until integer,
    -- The event at which it is parked, and those that were skipped, as JSON: no statement reads inside them.
    failure text,
    skipped text not null,
    created_at integer not null,
    updated_at integer not null,
    primary key (shard, name, part)
  ) strict;
  `,
]

/** The tables that each version brings. */
const tables: readonly (readonly string[])[] = [
  ['feed', 'journal', 'messages', 'migrations', 'runs', 'sessions', 'workflows'],
  ['tags'],
  ['broadcasts', 'topics', 'waits'],
  [],
  [],
  [],
  ['chores'],
  [],
  ['secrets'],
  [],
  [],
  [],
  [],
  ['projections'],
]

/** The version of the schema that this code knows. */
export const schemaVersion = migrations.length

const ledger = 'create table if not exists migrations (version integer primary key, at integer not null) strict'

/** Brings the schema to the version that this code knows. Must be called outside of a transaction. */
export function migrate(db: Connection, now: () => number): void {
  if (db.read(() => versionOf(db)) === schemaVersion) return
  db.write(() => {
    const from = versionOf(db)
    if (from > 0) assertFree(tablesNamed(db, tables.slice(from).flat()))
    db.exec(ledger)
    for (let version = from + 1; version <= schemaVersion; version += 1) {
      db.exec(migrations[version - 1] ?? '')
      db.run('insert into migrations (version, at) values (?, ?)', [version, now()])
    }
  })
}

/** The statements that `migrate()` would execute on a schema of that version, in one transaction. */
export function migrationSql(from: number): readonly string[] {
  if (from === schemaVersion) return []
  const changes = migrations.slice(from).flatMap((sql, index) => {
    const row = `insert into migrations (version, at) values (${from + index + 1}, unixepoch() * 1000)`
    return [sql, row]
  })
  return ['begin immediate', ledger, ...changes, 'commit']
}

/** The version of the schema; 0 if there is none. */
export function versionOf(db: Connection): number {
  if (!hasOurTables(db)) return 0
  const row = db.get('select max(version) as version from migrations', []) as { readonly version: number | null }
  const version = row.version ?? 0
  if (version <= schemaVersion) return version
  throw new HoldfastError(
    'SCHEMA_TOO_NEW',
    `The database has version ${version} of the schema, and this Holdfast knows ${schemaVersion}. ` +
      'A newer Holdfast has migrated it: update this process, too.',
    { details: { found: version, known: schemaVersion } },
  )
}

/** Whether the schema is there at all. Tables of another application that have our names are not touched. */
function hasOurTables(db: Connection): boolean {
  const found = tablesNamed(db, tables.flat())
  if (found.includes('migrations') && found.includes('runs')) return true
  assertFree(found)
  return false
}

function tablesNamed(db: Connection, names: readonly string[]): readonly string[] {
  const sql = 'select name from sqlite_master where name in (select value from json_each(?)) order by name'
  return db.all(sql, [JSON.stringify(names)]).map(({ name }) => name as string)
}

/** Throws if a foreign object has a name that we need. */
function assertFree(found: readonly string[]): void {
  if (found.length === 0) return
  const needed = tables.flat().toSorted().join(', ')
  throw new HoldfastError(
    'INVALID_OPTION',
    `The database has something of its own that is named ${found.join(', ')}, and Holdfast needs ${needed}. ` +
      'Give Holdfast a file of its own.',
    { details: { found } },
  )
}
