// What each method of the port asks of a database that serves many at once: named statements, in order. A statement at READ
// COMMITTED sees what was committed when it began, not what is committed while it waits for a lock. So the plan is a list of
// what must stay apart, and the one rule behind it is: lock and look are two statements.
//
//   lock    takes rows until the end of the transaction, and reads them as they are then: runs in the order of their ids, then
//           topics in the order of their names
//   look    reads; what it may rely on was locked by a statement before it
//   write   changes rows that are locked, or judges and changes a row in one (a condition on the row itself is judged anew
//           after a wait; one on any other row is not, and does not belong into a write)
//   end     commits
//
// What reaches other runs and topics does not know them before it looks, and may not look before it has locked them. So it
// looks twice: once without locks for who has to be locked (`candidates`), and once more under the locks (`look`). If a run
// is found then who is not locked, the transaction is rolled back and begins again. One rule decides for both.
//
// The read-committed store executes it; a test compares. SQLite has one lock for all, so there only the writes are the same.

import type { Store, StoreAdmin, StoreProjections } from '../../src/store.ts'

export type PlannedMethod = Exclude<keyof Store | keyof StoreAdmin | keyof StoreProjections, 'capabilities'>

export interface PlannedStatement {
  readonly name: string
  readonly kind: 'lock' | 'look' | 'write' | 'end'
  /** When it is executed; null for always. */
  readonly when: string | null
  /** From here the plan may go back to one of these statements. */
  readonly backTo?: readonly string[]
}

const newEntries = 'there is something to append'
const fedEntries = 'something is appended to a run that the feed lists'
const topics = 'a topic is among those who may be reached'
const mayConclude = 'a run may end that is watched, or has messages'
const toOthers = 'a message is put into a mailbox by a rule'
const keysMove = 'a run with a key ends, goes on after its end, or goes on as another'
const giveUps = 'a run ends with messages that it has not read'
const newWaits = 'a wait begins, or is over'
const toTopics = 'something is sent to a topic, or taken from it'
const leftToDo = 'there is more to write for others than one transaction may'
const taken = 'a chore was taken'

/** Nothing is executed for an empty batch, and everything from the start again after 40P01 and 23505. */
export const statementPlan = {
  // Nothing here depends on who else is at work.
  migrate: [],
  listen: [],
  close: [],

  start: [
    // In the order of the keys, and before any row. The primary key decides who is first.
    { name: 'start.keys', kind: 'write', when: 'a run has keys' },
    // Apart from the insert, which may have waited for a row that its own snapshot need not show.
    { name: 'start.holders', kind: 'look', when: 'a key is taken' },
    // Not locked: a run that is leased to a session which ends at the same time is found by a later rescue.
    { name: 'start.session', kind: 'look', when: 'a run is to be leased at once' },
    // Those that have all of their keys.
    { name: 'start.insert', kind: 'write', when: 'a run has all of its keys' },
    // Only for what was inserted. With the feed it may be one statement with the insert: neither of them looks.
    { name: 'start.append', kind: 'write', when: 'something was inserted' },
    // The counters of the mailboxes are inserted with the rows.
    { name: 'start.messages', kind: 'write', when: 'something was inserted that has messages from the beginning' },
    // With keys and several shards, one shard comes after the other.
    { name: 'start.feed', kind: 'write', when: 'a run was inserted that the feed lists', backTo: ['start.session'] },
    // In the same transaction: nobody sees a key that was taken in vain. If more follows from a first input that is decided than
    // entries and a time, it comes before the commit, by the plan of `commit`: `followsOf`.
    { name: 'start.free', kind: 'write', when: 'a run that took a key was not inserted' },
    // Apart from the insert, which was kept from inserting by rows that its own snapshot need not show. The row that was in the
    // way may have ended since, and its keys are free again: then they are taken in another round.
    {
      name: 'start.look',
      kind: 'look',
      when: 'something was not inserted',
      backTo: ['start.keys', 'start.session', 'start.insert', 'start.free', 'start.look'],
    },
    // Where each round is one statement, it is a transaction by itself as well: every run of it is started or not.
    { name: 'start.commit', kind: 'end', when: null },
  ],

  claim: [
    { name: 'claim.session', kind: 'look', when: null },
    // What others have locked is passed over: it is promoted by the next claim.
    { name: 'claim.promote', kind: 'write', when: 'something has come due' },
    // Without locks, so that a claim of ten does not lock a thousand.
    { name: 'claim.pick', kind: 'look', when: null },
    // Judges every row anew, whatever was picked, and passes over what others have locked. May be one statement with the
    // pick as long as the update itself repeats the condition.
    { name: 'claim.lease', kind: 'write', when: 'something was picked' },
    { name: 'claim.next', kind: 'look', when: null },
    // Who finds only then that something has come due has leased nothing yet, and begins again.
    // Or with a wider pick, if other claims had locked too many of the first.
    { name: 'claim.commit', kind: 'end', when: null, backTo: ['claim.promote', 'claim.pick'] },
  ],

  load: [
    { name: 'load.entries', kind: 'look', when: 'entries are asked for' },
    { name: 'load.messages', kind: 'look', when: 'messages are asked for' },
  ],

  commit: [
    // The fence, the place in the journal and the mailbox's counter are columns of the row, so one update judges and writes
    // them, also after a wait: that is the whole of "no lost wake-up". It never counts messages.
    { name: 'commit.update', kind: 'write', when: 'a transition is a usual one' },
    // Without a lock: once another transition has its place in the journal, that never changes.
    { name: 'commit.stale', kind: 'look', when: 'a transition without a lease did not fit' },
    // Those that did not fit, or are unusual, are taken first and judged by the core afterwards.
    { name: 'commit.candidates', kind: 'look', when: 'one of those reaches others, or ends its run' },
    { name: 'commit.lock', kind: 'lock', when: 'a transition did not fit' },
    { name: 'commit.lock-topics', kind: 'lock', when: topics },
    // Apart from the locks: whether the journal knows the transition, whether a run has the key, who waits, and for what.
    { name: 'commit.look', kind: 'look', when: 'a transition did not fit', backTo: ['commit.candidates'] },
    // Before the rows are written: the keys decide whether a child is started, and its parent is notified.
    { name: 'commit.start', kind: 'write', when: 'a child is to be started' },
    { name: 'commit.write', kind: 'write', when: 'one of those may write all the same' },
    // Entries, takes, the feed and waits that are given up may be one statement with the update.
    { name: 'commit.append', kind: 'write', when: newEntries },
    { name: 'commit.take', kind: 'write', when: 'messages leave a mailbox' },
    { name: 'commit.put', kind: 'write', when: toOthers },
    { name: 'commit.settle', kind: 'write', when: giveUps },
    { name: 'commit.waits', kind: 'write', when: newWaits },
    { name: 'commit.broadcasts', kind: 'write', when: toTopics },
    { name: 'commit.chores', kind: 'write', when: leftToDo },
    // Its number is drawn when the runs are locked, so that no run runs backwards in the feed.
    { name: 'commit.feed', kind: 'write', when: fedEntries },
    // What is free is freed before anything is taken. A key that was taken between the look and this is 23505: the primary key
    // decides, the look only says by whom.
    { name: 'commit.keys', kind: 'write', when: keysMove, backTo: ['commit.keys'] },
    // Those that did not fit may have a transaction of their own: then nobody is locked out of order.
    { name: 'commit.commit', kind: 'end', when: null, backTo: ['commit.stale', 'commit.candidates', 'commit.lock'] },
  ],

  deliver: [
    { name: 'deliver.candidates', kind: 'look', when: 'something is sent to a topic, or would go there' },
    // Always, whatever the run is doing: who parks it waits for this lock, or this waits for who parks it.
    { name: 'deliver.lock', kind: 'lock', when: 'a run is among those who may be reached' },
    // Who begins to wait on a topic has this lock, too: one of the two sees the other.
    { name: 'deliver.lock-topics', kind: 'lock', when: topics },
    // Apart from the locks: the same message may have been put in by whom they waited for, and a run may wait since.
    { name: 'deliver.look', kind: 'look', when: null, backTo: ['deliver.candidates'] },
    { name: 'deliver.bump', kind: 'write', when: 'a message is new' },
    // The position is the counter after the bump, under the lock: first in, first out.
    { name: 'deliver.insert', kind: 'write', when: 'a message is new' },
    { name: 'deliver.settle', kind: 'write', when: 'its run is over, and its policy says what becomes of it' },
    { name: 'deliver.waits', kind: 'write', when: newWaits },
    { name: 'deliver.broadcasts', kind: 'write', when: toTopics },
    { name: 'deliver.chores', kind: 'write', when: leftToDo },
    // Who finds only under the lock that a run is over, and that something becomes of its messages, begins again.
    { name: 'deliver.commit', kind: 'end', when: null, backTo: ['deliver.candidates', 'deliver.lock'] },
  ],

  control: [
    { name: 'control.candidates', kind: 'look', when: 'a run may end' },
    { name: 'control.lock', kind: 'lock', when: null },
    { name: 'control.lock-topics', kind: 'lock', when: topics },
    // Apart from the locks: whether the request was obeyed before, whether a run has the key, and who waits.
    { name: 'control.look', kind: 'look', when: null, backTo: ['control.candidates'] },
    { name: 'control.write', kind: 'write', when: 'a run changes' },
    { name: 'control.append', kind: 'write', when: newEntries },
    { name: 'control.put', kind: 'write', when: toOthers },
    { name: 'control.settle', kind: 'write', when: giveUps },
    { name: 'control.waits', kind: 'write', when: newWaits },
    { name: 'control.broadcasts', kind: 'write', when: toTopics },
    { name: 'control.chores', kind: 'write', when: leftToDo },
    { name: 'control.feed', kind: 'write', when: fedEntries },
    { name: 'control.keys', kind: 'write', when: keysMove, backTo: ['control.keys'] },
    { name: 'control.commit', kind: 'end', when: null },
  ],

  beat: [
    // Opens the session or keeps it, in one statement on one row: a rescue that ends it at the same time comes before or after.
    { name: 'beat.session', kind: 'write', when: null },
    // A transaction of its own: whatever is locked, a session that lives is kept.
    { name: 'beat.commit', kind: 'end', when: null },
    // Only rows of sessions that ended long ago: nothing brings these back, and nothing is leased to them, so none of this is locked.
    { name: 'beat.old', kind: 'look', when: 'the session ends' },
    // Back if too few of them may go: runs name the others.
    { name: 'beat.named', kind: 'look', when: 'sessions ended long ago', backTo: ['beat.old'] },
    { name: 'beat.forget', kind: 'write', when: 'sessions ended long ago' },
    { name: 'beat.forget-commit', kind: 'end', when: 'a statement does not commit by itself' },
    // Judges the rows that are named, and passes over what others have locked: the next beat says it again.
    { name: 'beat.extend', kind: 'write', when: 'a deadline is to be moved' },
    { name: 'beat.extend-commit', kind: 'end', when: 'a statement does not commit by itself' },
    // Apart from the extension: whom it passed over may have taken a run away. Each run is looked up by its id.
    { name: 'beat.look', kind: 'look', when: 'runs are listed' },
    { name: 'beat.unknown', kind: 'look', when: 'unknown leases are asked for' },
  ],

  rescue: [
    // A transaction of its own: a session that was declared dead is dead before anything is taken from it. The row is judged anew
    // after a wait, so a beat that came first keeps its session.
    { name: 'rescue.sessions', kind: 'write', when: null },
    { name: 'rescue.sessions-commit', kind: 'end', when: null },
    { name: 'rescue.old', kind: 'look', when: 'a session was found dead' },
    { name: 'rescue.named', kind: 'look', when: 'sessions ended long ago', backTo: ['rescue.old'] },
    { name: 'rescue.forget', kind: 'write', when: 'sessions ended long ago' },
    { name: 'rescue.forget-commit', kind: 'end', when: 'a statement does not commit by itself' },
    { name: 'rescue.pick', kind: 'look', when: null },
    { name: 'rescue.candidates', kind: 'look', when: 'something was picked that is watched, or has messages' },
    // Judges the rows anew by what was picked: the same session and token. "Has no living session" would be judged by an
    // old snapshot, in which the session of a new holder does not exist yet. What others have locked is passed over; so is
    // what concerns a run that is locked, once that is known: then all of it begins again without that.
    { name: 'rescue.lock', kind: 'lock', when: 'something was picked', backTo: ['rescue.pick', 'rescue.candidates'] },
    { name: 'rescue.lock-topics', kind: 'lock', when: topics },
    // Only what ends, and is watched or has messages, has anybody to look for.
    { name: 'rescue.look', kind: 'look', when: mayConclude, backTo: ['rescue.pick', 'rescue.candidates'] },
    { name: 'rescue.write', kind: 'write', when: 'something was locked' },
    { name: 'rescue.append', kind: 'write', when: newEntries },
    { name: 'rescue.put', kind: 'write', when: toOthers },
    { name: 'rescue.settle', kind: 'write', when: giveUps },
    { name: 'rescue.waits', kind: 'write', when: newWaits },
    { name: 'rescue.broadcasts', kind: 'write', when: toTopics },
    { name: 'rescue.chores', kind: 'write', when: leftToDo },
    { name: 'rescue.feed', kind: 'write', when: fedEntries },
    { name: 'rescue.keys', kind: 'write', when: keysMove },
    // Each transaction takes what it can: another one follows for what is left of what was picked, and as long as some of that
    // could not be had.
    { name: 'rescue.commit', kind: 'end', when: 'something was picked', backTo: ['rescue.pick', 'rescue.lock'] },
    { name: 'rescue.next', kind: 'look', when: null },
  ],

  release: [
    // Hardly anything ends with this. So nobody looks for others before it is known that there may be some.
    { name: 'release.candidates', kind: 'look', when: 'the first try found that others are to be locked' },
    { name: 'release.lock', kind: 'lock', when: null, backTo: ['release.candidates'] },
    { name: 'release.lock-topics', kind: 'lock', when: topics },
    { name: 'release.look', kind: 'look', when: mayConclude, backTo: ['release.candidates'] },
    { name: 'release.write', kind: 'write', when: 'a lease still holds' },
    { name: 'release.append', kind: 'write', when: newEntries },
    { name: 'release.put', kind: 'write', when: toOthers },
    { name: 'release.settle', kind: 'write', when: giveUps },
    { name: 'release.waits', kind: 'write', when: newWaits },
    { name: 'release.broadcasts', kind: 'write', when: toTopics },
    { name: 'release.chores', kind: 'write', when: leftToDo },
    { name: 'release.feed', kind: 'write', when: fedEntries },
    { name: 'release.keys', kind: 'write', when: keysMove },
    { name: 'release.commit', kind: 'end', when: null },
  ],

  doChores: [
    // A transaction of its own: a page that fails must not come first again and again. What others have locked is passed over.
    { name: 'chore.pick', kind: 'write', when: null },
    { name: 'chore.pick-commit', kind: 'end', when: null },
    // The same for a topic that nobody may use any more.
    { name: 'chore.topic', kind: 'write', when: 'there was none to be taken' },
    { name: 'chore.topic-commit', kind: 'end', when: 'there was none to be taken' },
    { name: 'chore.next', kind: 'look', when: 'there was none to be taken' },
    { name: 'chore.candidates', kind: 'look', when: taken },
    { name: 'chore.lock', kind: 'lock', when: taken },
    // The insert and the lock are two statements here, and wherever topics are locked: the insert may have waited for the end of
    // the one before, whose position its snapshot need not show.
    { name: 'chore.lock-topics', kind: 'lock', when: topics },
    // Apart from the locks: another process may have gone on with the same chore, and runs may have subscribed or gone.
    { name: 'chore.look', kind: 'look', when: taken, backTo: ['chore.candidates'] },
    { name: 'chore.write', kind: 'write', when: 'a run gets something' },
    // Of children that are cancelled because who started them has ended.
    { name: 'chore.append', kind: 'write', when: newEntries },
    { name: 'chore.put', kind: 'write', when: toOthers },
    { name: 'chore.settle', kind: 'write', when: giveUps },
    { name: 'chore.waits', kind: 'write', when: newWaits },
    { name: 'chore.broadcasts', kind: 'write', when: toTopics },
    // The row that keeps the positions of those that are gone comes last, and nothing else locks it.
    { name: 'chore.topics', kind: 'write', when: 'a topic was looked at' },
    { name: 'chore.chores', kind: 'write', when: 'nobody has gone on with it meanwhile' },
    { name: 'chore.feed', kind: 'write', when: fedEntries },
    { name: 'chore.commit', kind: 'end', when: taken },
  ],

  get: [{ name: 'get.read', kind: 'look', when: null }],

  changes: [
    { name: 'changes.peek', kind: 'look', when: null },
    // One sequencer at a time. Nobody waits for it: what has no position yet is read with the next call.
    { name: 'changes.lock', kind: 'lock', when: 'something has no position yet' },
    // Apart from the lock: who had it until then has given positions to some.
    { name: 'changes.look', kind: 'look', when: 'something has no position yet' },
    { name: 'changes.stamp', kind: 'write', when: 'something still has no position' },
    { name: 'changes.commit', kind: 'end', when: 'something has no position yet' },
    { name: 'changes.read', kind: 'look', when: null },
    { name: 'changes.entries', kind: 'look', when: 'something was read' },
  ],

  // How much there is of a type, or which run has an idempotency key, is looked at first.
  find: [{ name: 'find.read', kind: 'look', when: null, backTo: ['find.read'] }],
  count: [{ name: 'count.read', kind: 'look', when: null, backTo: ['count.read'] }],

  // How far positions were given, and whether that is all: one statement, so that no position is given in between.
  feedEnd: [{ name: 'feedEnd.read', kind: 'look', when: null }],

  projections: [{ name: 'projections.read', kind: 'look', when: null }],

  commandProjection: [
    // The parts of one projection, the live one first: they are judged as they are when both are locked.
    { name: 'projection.lock', kind: 'lock', when: null },
    { name: 'projection.time', kind: 'look', when: 'there is no such part' },
    { name: 'projection.write', kind: 'write', when: 'a part changes' },
    // The primary key decides who makes it. Who was too late finds it under the lock.
    { name: 'projection.insert', kind: 'write', when: 'a part begins', backTo: ['projection.lock'] },
    { name: 'projection.drop', kind: 'write', when: 'a part goes' },
    { name: 'projection.commit', kind: 'end', when: null },
  ],

  deadLetters: [{ name: 'dead.read', kind: 'look', when: null }],

  settleDeadLetter: [
    // Judges and changes one row: of two that replay a letter, one is answered that it did.
    { name: 'dead.settle', kind: 'write', when: null },
    { name: 'dead.commit', kind: 'end', when: 'a statement does not commit by itself' },
  ],

  otherKeys: [{ name: 'otherKeys.read', kind: 'look', when: null }],

  rewritePayloads: [
    // Says by the row itself who holds it, and where its journal is.
    { name: 'rewritePayloads.lock', kind: 'lock', when: null },
    { name: 'rewritePayloads.write', kind: 'write', when: 'nobody holds the run' },
    { name: 'rewritePayloads.commit', kind: 'end', when: null },
  ],

  doctor: [{ name: 'doctor.read', kind: 'look', when: null }],
} as const satisfies Readonly<Record<PlannedMethod, readonly PlannedStatement[]>>

/** The name of a statement that some method plans. */
export type StatementName = (typeof statementPlan)[PlannedMethod][number]['name']

/** Says what is wrong with the statements that one call of a method executed; null if they fit the plan. */
export function unplanned(method: PlannedMethod, executed: readonly string[]): string | null {
  const [started, followed] = followsOf(method, executed)
  return (
    deviation(method, started) ?? followed.map((one) => deviation('commit', one)).find((one) => one !== null) ?? null
  )
}

/**
 * What follows from a decided first input and is more than entries and a time is committed by the plan of `commit` in the
 * transaction of the start, one shard after the other.
 */
function followsOf(
  method: PlannedMethod,
  executed: readonly string[],
): readonly [started: readonly string[], followed: readonly (readonly string[])[]] {
  const at = executed.findIndex((name) => name.startsWith('commit.'))
  const till = executed.findLastIndex((name) => name.startsWith('commit.')) + 1
  if (method !== 'start' || at === -1) return [executed, []]
  const shards: string[][] = []
  for (const [index, name] of executed.slice(at, till).entries()) {
    const isFirst =
      name === 'commit.candidates' || (name === 'commit.lock' && shards.at(-1)?.at(-1) !== 'commit.candidates')
    if (isFirst || index === 0) shards.push([])
    shards.at(-1)?.push(name)
  }
  const followed = shards.map((one) => [...one, 'commit.commit'])
  return [[...executed.slice(0, at), ...executed.slice(till)], followed]
}

function deviation(method: PlannedMethod, executed: readonly string[]): string | null {
  if (executed.length === 0) return null
  const plan: readonly PlannedStatement[] = statementPlan[method]
  let at = 0
  for (const name of executed) {
    const next = plan.findIndex((one, index) => index >= at && one.name === name)
    const skipped = next === -1 ? undefined : plan.slice(at, next).find(({ when }) => when === null)
    if (skipped !== undefined) return `${name} came before ${skipped.name}`
    if (next !== -1) at = next + 1
    else if (plan[at - 1]?.backTo?.includes(name)) at = plan.findIndex((one) => one.name === name) + 1
    else return `${name} has no place after ${plan[at - 1]?.name ?? 'the start'}`
  }
  const missing = plan.slice(at).find(({ when }) => when === null)
  return missing === undefined ? null : `${missing.name} did not come`
}
