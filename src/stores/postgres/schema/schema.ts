// The tables, as a list of migrations that only ever grows. Each is applied once, in one transaction together with the row
// that says so.
//
// The rules of every table: `shard` leads every key, times are integers in milliseconds, payloads are text after the codec.
// There are no triggers, no functions, no foreign keys and no enums, and the one sequence is drawn from once a flush: the
// same statements run on databases that spread their rows over many machines.
//
// A migration only adds (expand): a client that knows the version before goes on working on it. Objects that only that client
// needs are dropped by a later one (contract), which first raises the setting `min-client` to the oldest version that may
// stay.

/**
 * How tables are vacuumed, by what is done to them. Every vacuum reads the indexes of its table from end to end if a row is
 * dead, so the bound grows with a table that keeps its rows; and none ever locks a table to shorten it.
 */
const gentle = 'autovacuum_vacuum_cost_delay = 1, autovacuum_vacuum_cost_limit = 1000, vacuum_truncate = off'
const vacuumed = {
  // A few rows, written all the time and in place: the table is a page or two, and a vacuum costs nothing.
  tiny: `autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, ${gentle}`,
  // Rows that stay, and change a few times before: each change makes entries of indexes, so none is in place.
  changed: `autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000,
    autovacuum_analyze_scale_factor = 0.05, ${gentle}`,
  // Rows that come and go: what is dead lies before what is looked for next.
  passing: `autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
    autovacuum_analyze_scale_factor = 0.05, ${gentle}`,
  // Rows that are only added. Nothing is dead, so a vacuum reads only the new pages; it freezes them, once, and marks them as
  // visible to all.
  added: `autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 200000,
    autovacuum_freeze_min_age = 0, autovacuum_analyze_scale_factor = 0.05, ${gentle}`,
} as const

/** The statuses that people look for among all that succeeded. Runs rarely get there, so an index of them costs little. */
export const rareStatuses: readonly string[] = ['failed', 'cancelled', 'cancelling', 'paused']

export function isRareStatus(alias: string): string {
  return `${alias}.status in (${rareStatuses.map((status) => `'${status}'`).join(', ')})`
}

/** Runs that nobody holds and that do not wait for their turn: they are over, paused, or wait for others. */
export function isAtRest(alias: string): string {
  return `${alias}.readiness in ('idle', 'blocked')`
}

/** The runs that time may end, as `stores/postgres/claim/rescue-look.ts` asks for them. */
const isBoundByTime = `session is null and status not in ('paused', 'cancelling') and undo <> 'due'
      and deleted_at is null and ended_at is null`

/** 244 bits of the server's cryptographic generator, in hexadecimal digits. */
const randomKey = `replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', '')`

/** The name of a schema, quoted, and how a table is stored there, to the SQL of one version. */
export type Migration = (schema: string, stored?: (settings: string) => string) => string

/** As Postgres wants it. A database that vacuums in its own way refuses these settings, and gets none. */
const storedWith = (settings: string): string => `with (${settings})`

/** Each is one version of the schema; version 1 stands first. */
export const migrations: readonly Migration[] = [
  // No check constraint stands on a table that is written with every commit: the server reads the text of each anew in every
  // statement that writes to its table (record 0033). The doctor looks for values that no statement writes.
  (schema, stored = storedWith) => `
  create table ${schema}.runs (
    shard smallint not null,
    id uuid not null,
    type text not null,
    version integer not null,
    status text not null default 'pending',
    readiness text not null default 'ready',
    -- The priority with its sign turned, so that the order of a claim is ascending in every column.
    rank integer not null default 0,
    due bigint,
    seq integer not null default 1,
    base integer not null default 1,
    inbox integer not null default 0,
    control_request text,
    undo text not null default 'none',
    crashes integer not null default 0,
    token bigint not null default 0,
    session text,
    deadline bigint,
    timeout_at bigint,
    expires_at bigint,
    key text,
    key_scope text not null default 'workflow',
    -- The business key with its scope: that of one live run, in the table of keys.
    unique_key text,
    idempotency_key text,
    -- The type that its idempotency key belongs to: that of its start, also when the run goes on as another.
    started_as text,
    parent_id uuid,
    tags text,
    metadata text,
    created_at bigint not null,
    updated_at bigint not null,
    ended_at bigint,
    deleted_at bigint,
    delete_reason text,
    primary key (shard, id)
  ) ${stored(`fillfactor = 80, ${vacuumed.changed}`)};

  -- The next runs to claim: the columns that must be equal, then the order of the claim. Runs that are not due yet stand apart.
  create index runs_ready on ${schema}.runs (shard, type, version, rank, due, id) where readiness = 'ready';
  create index runs_timed on ${schema}.runs (shard, type, version, due, id) where readiness = 'timed';
  -- For takeovers and heartbeats.
  create index runs_held on ${schema}.runs (shard, session, id) where session is not null;
  create index runs_deadline on ${schema}.runs (shard, deadline, id) where deadline is not null;
  create index runs_timeout on ${schema}.runs (shard, timeout_at, id)
    where timeout_at is not null and ended_at is null and deleted_at is null;
  create index runs_expiry on ${schema}.runs (shard, expires_at, id) where expires_at is not null and deleted_at is null;
  create index runs_control_requested on ${schema}.runs (shard, session, id) where control_request is not null;
  -- For lists of runs and their filters.
  create index runs_key on ${schema}.runs (shard, key, id) where key is not null;
  -- A rare type among a million runs. The others stand in an index by type already, or are held by a session: to have all of
  -- them in here cost 226 bytes of log in the life of a run, and this costs one entry, when it ends.
  create index runs_at_rest on ${schema}.runs (shard, type, id) where ${isAtRest('runs')};
  create index runs_parent on ${schema}.runs (shard, parent_id, id) where parent_id is not null;
  create index runs_rare_status on ${schema}.runs (shard, status, id) where ${isRareStatus('runs')};

  -- Rows are written once and read by their key.
  create table ${schema}.journal (
    shard smallint not null,
    run_id uuid not null,
    seq integer not null,
    kind text not null,
    name text,
    meta text,
    data text,
    at bigint not null,
    transition_id text,
    primary key (shard, run_id, seq)
  ) ${stored(vacuumed.added)};

  create table ${schema}.messages (
    shard smallint not null,
    run_id uuid not null,
    position integer not null,
    id text not null,
    name text not null,
    data text not null,
    at bigint not null,
    outcome text not null,
    -- The entry with which the run took it.
    taken_by integer,
    primary key (shard, run_id, position)
  ) ${stored(vacuumed.changed)};
  create unique index messages_id on ${schema}.messages (shard, run_id, id);
  -- The unread messages of a mailbox.
  create index messages_open on ${schema}.messages (shard, run_id, position) where taken_by is null;

  -- Which run has a key: an idempotency key that belongs to a type, or, without a type, a business key with its scope. Each is
  -- in its own shard; a run lives in that of its business key. No index over runs is unique but that of their ids, so runs
  -- and their journals can be partitioned by id.
  create table ${schema}.keys (
    shard smallint not null,
    type text not null,
    key text not null,
    run_id uuid not null,
    primary key (shard, key, type)
  ) ${stored(vacuumed.passing)};

  create table ${schema}.tags (
    shard smallint not null,
    tag text not null,
    run_id uuid not null,
    primary key (shard, tag, run_id)
  ) ${stored(vacuumed.added)};

  -- One row a flush: which entries of which runs, in order. Its number is drawn when those runs are locked; its position,
  -- that of its last entry in the feed, is given later by the sequencer, to rows that are committed by then.
  create sequence ${schema}.feed_number;
  create table ${schema}.feed (
    shard smallint not null,
    number bigint not null,
    runs uuid[] not null,
    firsts integer[] not null,
    lasts integer[] not null,
    position bigint,
    primary key (shard, number)
  ) ${stored(`fillfactor = 90, ${vacuumed.changed}`)};
  create index feed_unstamped on ${schema}.feed (shard, number) where position is null;
  create unique index feed_position on ${schema}.feed (shard, position) where position is not null;

  create table ${schema}.sequencer (
    shard smallint not null,
    last bigint not null,
    primary key (shard)
  ) ${stored(`fillfactor = 50, ${vacuumed.tiny}`)};
  insert into ${schema}.sequencer (shard, last) values (0, 0);

  create table ${schema}.sessions (
    shard smallint not null,
    id text not null,
    opened_at bigint not null,
    alive_until bigint not null,
    ended_at bigint,
    primary key (shard, id)
  ) ${stored(`fillfactor = 70, ${vacuumed.tiny}`)};
  create index sessions_alive on ${schema}.sessions (shard, id) where ended_at is null;

  create table ${schema}.workflows (
    shard smallint not null,
    type text not null,
    version integer not null,
    style text not null,
    queue text,
    seen_at bigint not null,
    primary key (shard, type, version)
  );

  -- Settings of all clients of the schema: over how many shards runs are spread, and which version of the schema a client
  -- must know at least.
  create table ${schema}.settings (
    shard smallint not null,
    name text not null,
    value text not null,
    primary key (shard, name)
  );
  insert into ${schema}.settings (shard, name, value) values (0, 'min-client', '1');
  `,

  // The messages between runs, and between runs and topics.
  (schema, stored = storedWith) => `
  -- Other runs are notified of its end, or cancelled with it. No index has it, so that setting it stays cheap.
  alter table ${schema}.runs add column watched boolean not null default false;

  alter table ${schema}.messages add column kind text not null default 'signal';
  -- The policy if its run ends without reading it: it is discarded, a dead letter, or a broadcast to the topic of its name,
  -- which delivers and retains it like this. And its fate then.
  alter table ${schema}.messages add column on_unread text;
  alter table ${schema}.messages add column delivery text;
  alter table ${schema}.messages add column retain_ms bigint;
  alter table ${schema}.messages add column fate text;
  create index messages_named on ${schema}.messages (shard, run_id, name, position) where taken_by is null;
  create index messages_dead on ${schema}.messages (shard, at, run_id, id collate "C") where fate = 'dead';

  -- Runs that wait on the end of a run, or on a topic: in the shard of that run or topic.
  create table ${schema}.waits (
    shard smallint not null,
    kind text not null,
    target text not null,
    run_id uuid not null,
    effect text not null,
    delivery text,
    opened_at bigint not null,
    primary key (shard, kind, target, run_id, effect)
  ) ${stored(vacuumed.passing)};
  -- Topics only, so that no lookup of a wait by its key walks this index, past all older waits.
  create index waits_longest on ${schema}.waits (shard, kind, target, opened_at, run_id) where delivery is not null;

  create table ${schema}.topics (
    shard smallint not null,
    name text not null,
    -- The position of its last broadcast.
    position integer not null default 0,
    primary key (shard, name)
  ) ${stored(`fillfactor = 50, ${vacuumed.passing}`)};

  create table ${schema}.broadcasts (
    shard smallint not null,
    topic text not null,
    position integer not null,
    id text not null,
    delivery text not null,
    data text not null,
    -- The policy of its unread messages, as JSON: no statement reads inside it.
    policy text,
    at bigint not null,
    expires_at bigint,
    taken_by uuid,
    -- How many runs got it when it was sent.
    delivered_to integer not null,
    primary key (shard, topic, position)
  ) ${stored(vacuumed.passing)};
  -- True for every row: only a query that repeats the condition uses the index. Without statistics, a broadcast that is looked up by its
  -- position would otherwise be looked for here, among all of its topic.
  create unique index broadcasts_id on ${schema}.broadcasts (shard, topic, id) where delivered_to >= 0;
  -- Broadcasts that wait for a run; those of them that expire; and those that may be deleted later.
  create index broadcasts_open on ${schema}.broadcasts (shard, topic, position)
    where delivery = 'one' and taken_by is null;
  create index broadcasts_expiring on ${schema}.broadcasts (shard, topic, expires_at)
    where delivery = 'one' and taken_by is null and expires_at is not null;
  create index broadcasts_closed on ${schema}.broadcasts (shard, topic, at)
    where delivery = 'all' or taken_by is not null;
  `,

  // Which messages wake a run that waits, as `core/rows/wake-names.ts` writes it; null if any does. No index has it.
  (schema) => `alter table ${schema}.runs add column wake_names text;`,

  // Suspects, which are performed in isolation.
  (schema) => `
  create index runs_isolated on ${schema}.runs (shard, type, version, due, id) where readiness = 'isolated';
  `,

  // Only the runs that a timeout may end: a run that is held, paused or undone is no more looked at when its time is over.
  // The queries of the version before have the same conditions, and so use these indexes.
  (schema) => `
  drop index ${schema}.runs_timeout;
  drop index ${schema}.runs_expiry;
  create index runs_bound_timeout on ${schema}.runs (shard, timeout_at, id)
    where timeout_at is not null and ${isBoundByTime};
  create index runs_bound_expiry on ${schema}.runs (shard, expires_at, id)
    where expires_at is not null and ${isBoundByTime};
  `,

  // The work that an end or a broadcast leaves to be written in pages (`core/model/chore.ts`): in the shard of its run or
  // topic. A client that does not know of this writes everything at once, and may overtake a broadcast that is still being
  // passed on.
  (schema, stored = storedWith) => `
  create table ${schema}.chores (
    shard smallint not null,
    kind text not null,
    target text not null,
    position integer not null,
    -- The last subscriber that got the broadcast of that position.
    after_opened_at bigint,
    after_run uuid,
    -- The time from which a worker may take it.
    due bigint not null,
    primary key (shard, kind, target)
  ) ${stored(vacuumed.tiny)};
  create index chores_due on ${schema}.chores (shard, due, kind, target);
  -- The position of the topic when the run subscribed: it gets the broadcasts after that.
  alter table ${schema}.waits add column since integer not null default 0;
  `,

  // The key that the payloads of a run were last written with. The index has only live runs that need a key, for a worker
  // that starts without it; runs without a key are not in it, and so cost nothing more.
  (schema) => `
  alter table ${schema}.runs add column key_id text;
  create index runs_keyed on ${schema}.runs (shard, key_id)
    where key_id is not null and ended_at is null and deleted_at is null;
  `,

  // Keys, which the database makes: no process and no printed SQL ever holds them. A column for each, because rights are
  // given by column: a role that starts runs sends hints of them, and cannot make completion tokens.
  (schema) => `
  create table ${schema}.secrets (
    shard smallint not null,
    -- The key that signs completion tokens.
    token_key text not null default ${randomKey},
    -- The key that seals notices to other processes.
    notice_key text not null default ${randomKey},
    primary key (shard)
  );
  insert into ${schema}.secrets (shard) values (0);
  `,

  // The waits on a run, in pages, which are chores of a new kind. A statement that deletes a wait does not name the delivery,
  // and so looks it up by its key and not in here. A client of the version before would take such a chore for one of
  // messages, and forget the waiting runs: it is admitted no more.
  (schema) => `
  create index waits_on_run on ${schema}.waits (shard, kind, target, opened_at, run_id, effect) where delivery is null;
  update ${schema}.settings set value = '9' where shard = 0 and name = 'min-client';
  `,

  // The subscribers that did not get a broadcast, because a foreign transaction had locked their rows, and since which one. A
  // client of the version before would deliver later broadcasts first, and would take a chore of these for one of messages:
  // it is admitted no more.
  (schema) => `
  alter table ${schema}.waits add column missed integer;
  create index waits_late on ${schema}.waits (shard, target, opened_at, run_id) where missed is not null;
  update ${schema}.settings set value = '10' where shard = 0 and name = 'min-client';
  `,

  // Whether a run is in the feed. All runs were before, and those stay in it until they end. No index has it.
  (schema) => `alter table ${schema}.runs add column feed boolean not null default true;`,

  // The sessions that have ended; when to look whether a topic is in use, and for how long it keeps its broadcasts. The row with
  // an empty name has the highest position of all topics of its shard that are gone. A client that does not know it would begin a
  // topic at 1 again: it is admitted no more.
  (schema) => `
  create index sessions_ended on ${schema}.sessions (shard, ended_at, id) where ended_at is not null;
  alter table ${schema}.topics add column retain_ms bigint;
  alter table ${schema}.topics add column look_at bigint default 0;
  create index topics_look on ${schema}.topics (shard, look_at, name) where look_at is not null;
  update ${schema}.settings set value = '12' where shard = 0 and name = 'min-client';
  `,

  // Projections: how far each is, and who moves it on. While one is built anew it has a second row.
  (schema, stored = storedWith) => `
  create table ${schema}.projections (
    shard smallint not null,
    name text not null,
    part text not null,
    definition text not null,
    status text not null,
    begun smallint not null,
    position bigint not null,
    session text,
    token bigint not null,
    alive_until bigint,
    -- The event at which it is parked, and those that were skipped, as JSON: no statement reads inside them.
    failure text,
    skipped text not null,
    created_at bigint not null,
    updated_at bigint not null,
    primary key (shard, name, part)
  ) ${stored(`fillfactor = 50, ${vacuumed.tiny}`)};
  `,
]
