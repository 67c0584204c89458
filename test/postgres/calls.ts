// The calls whose cost must not grow with the tables, as a worker, a client and a dashboard make them.

import type { Outbound } from '../../src/core/model/transition.ts'
import type { RunFilter } from '../../src/store.ts'
import { ending, inMs, waiting } from '../../src/testing/contract/drafts.ts'
import { holders, type Backlog } from './backlog.ts'
import { charge, committed, heldBy, ofEach, ship, type Call } from './call.ts'

const working: readonly Call[] = [
  ...[1, 100].map((size): Call => ({
    name: `start ${size}`,
    size,
    run: ({ store, newRun, unique }, backlog, turn) =>
      store.start(
        Array.from({ length: size }, () =>
          newRun({
            ...charge,
            key: unique(`key of ${turn}`),
            idempotencyKey: unique(`once of ${turn}`),
            tags: ['eu', 'new'],
            parentId: backlog.id('over', 1),
            timeoutMs: 1_000_000,
          }),
        ),
      ),
  })),
  {
    name: 'start 10 that are there',
    size: 10,
    run: ({ store, newRun }, backlog) =>
      store.start(
        Array.from({ length: 10 }, (_, index) => {
          const place = backlog.place('blocked', 6 * index + 1)
          const type = place % 6 === 0 ? 'ship' : 'charge'
          if (index % 3 === 0) return newRun({ ...charge, type, id: backlog.id('blocked', 6 * index + 1) })
          return newRun({
            ...charge,
            type,
            ...(index % 3 === 1 ? { key: `key-${place}` } : { idempotencyKey: `once-${place}` }),
          })
        }),
      ),
  },
  { name: 'start 100 leased', size: 100, run: (bench, _, turn) => heldBy(bench, `worker of ${turn}`, 100) },
  ...[10, 100].map((limit): Call => ({
    name: `claim ${limit}`,
    size: limit,
    run: ({ claim }, _, turn) => claim({ session: `claimer of ${turn}`, selectors: [charge], limit }),
  })),
  {
    name: 'claim 10 of two types, of which many come due',
    size: 10,
    run: ({ claim }, _, turn) => claim({ session: `claimer of ${turn}`, selectors: [charge, ship], limit: 10 }),
  },
  {
    name: 'claim 10 of some keys',
    size: 10,
    async run({ claim, store }, _, turn) {
      const session = `keeper of ${turn}`
      const { runs } = await claim({ session, selectors: [charge, ship], limit: 10, keys: ['new', 'old'] })
      // What rescues look at in other calls stays as it is.
      return store.release(runs.map(({ id, token }) => ({ runId: id, session, token })))
    },
  },
  {
    name: 'claim 10 of a type that nobody started',
    size: 10,
    run: ({ claim }, _, turn) =>
      claim({ session: `claimer of ${turn}`, selectors: [{ type: 'none', version: 1 }], limit: 10 }),
  },
  ...[1, 100].map((size): Call => ({
    name: `load ${size}`,
    size,
    run: ({ store }, backlog) =>
      store.load(ofEach(backlog, 'asleep', size).map((runId) => ({ runId, after: 0, limit: 100 }))),
  })),
  {
    name: 'load a page of a long journal',
    size: 100,
    run: ({ store }, backlog) => store.load([{ runId: backlog.id('asleep', 1), after: 2_000, limit: 100 }]),
  },
  {
    name: 'load a page of a long mailbox',
    size: 100,
    run: ({ store }, backlog) =>
      store.load([{ runId: backlog.id('asleep', 1), after: 0, limit: 0, messagesAfter: 1_000 }], 4_000_000),
  },
  ...[1, 100].map((size) => committed(`commit ${size} checkpoints`, size, () => ({}))),
  ...[1, 100].map((size) =>
    committed(`park ${size}`, size, () => ({
      append: [waiting()],
      status: 'waiting' as const,
      due: inMs(60_000),
      parkIf: { inbox: 0 },
    })),
  ),
  ...[1, 100].map((size) =>
    committed(`end ${size}`, size, () => ({ append: [ending('succeeded')], status: 'succeeded' as const })),
  ),
  committed('commit 100 that must be looked at', 100, () => ({ undo: 'possible' as const })),
  {
    name: 'commit 10 with messages that they take',
    size: 10,
    async run(bench, _, turn) {
      const { store, transition, message, unique } = bench
      const held = await heldBy(bench, unique(`taker of ${turn}`), 10)
      const messages = held.map(({ runId }) => message(runId, { id: unique(`message of ${turn}`) }))
      await store.deliver(messages)
      return store.commit(
        held.map((one, index) => transition(one, { id: unique(`${turn} takes`), takes: [messages[index]?.id ?? ''] })),
      )
    },
  },
  ...[1, 100].map((size): Call => ({
    name: `wake ${size}`,
    size,
    run: ({ store, message, unique }, backlog, turn) =>
      store.deliver(ofEach(backlog, 'asleep', size).map((runId) => message(runId, { id: unique(`wakes of ${turn}`) }))),
  })),
  {
    name: 'beat of 100, of which 50 go on',
    size: 100,
    async run(bench, _, turn) {
      const held = await heldBy(bench, `heart of ${turn}`, 100)
      return bench.beat(`heart of ${turn}`, {
        held: held.map(({ runId, lease }, index) => ({
          runId,
          token: lease.token,
          extendMs: index < 50 ? 60_000 : null,
        })),
      })
    },
  },
  {
    name: 'beat of 100 that seeks no unknown leases',
    size: 100,
    async run(bench, _, turn) {
      const held = await heldBy(bench, `calm heart of ${turn}`, 100)
      const claims = held.map(({ runId, lease }) => ({ runId, token: lease.token, extendMs: null, inbox: 0 }))
      return bench.beat(`calm heart of ${turn}`, { held: claims, seeksUnknownLeases: false })
    },
  },
  {
    name: 'beat of a holder',
    size: 250,
    run: ({ beat }, backlog) => beat(`holder-${backlog.place('held', 1) % holders}`),
  },
  {
    name: 'release 10',
    size: 10,
    async run(bench, _, turn) {
      const held = await heldBy(bench, bench.unique(`giver of ${turn}`), 10)
      return bench.store.release(held.map(({ runId, lease }) => ({ ...lease, runId })))
    },
  },
  {
    name: 'rescue 10 of a session that never was',
    size: 10,
    async run(bench, _, turn) {
      await heldBy(bench, `ghost of ${turn}`, 10)
      return bench.rescue({ limit: 100 })
    },
  },
]

/** A transition that reaches others. */
const reaching = (outbound: Partial<Outbound>) => ({
  outbound: { starts: [], watches: [], unwatches: [], ...outbound },
})

const jobs = { name: 'jobs', delivery: 'one', retainMs: 0 } as const
const idlers = { name: 'idlers', delivery: 'one', retainMs: 0 } as const
/** Another one for every turn: what a turn has changed is not cleaned up. */
const prices = (turn: string) =>
  ({
    name: `topic-${Array.from(turn).reduce((sum, one) => sum * 3 + one.charCodeAt(0), 0) % 97}`,
    delivery: 'all',
    retainMs: 60_000,
  }) as const

const exchanged: readonly Call[] = [
  {
    name: 'broadcast to a topic on which few wait',
    size: 5,
    run: ({ store, broadcast, unique }, _, turn) =>
      store.deliver([broadcast({ topic: prices(turn), id: unique(`news of ${turn}`) })]),
  },
  {
    name: 'send to a queue on which many wait',
    size: 1,
    run: ({ store, broadcast, unique }, _, turn) =>
      store.deliver([broadcast({ topic: idlers, id: unique(`job of ${turn}`) })]),
  },
  {
    name: 'send to a queue that keeps much',
    size: 1,
    run: ({ store, broadcast, unique }, _, turn) =>
      store.deliver([broadcast({ topic: jobs, id: unique(`job of ${turn}`) })]),
  },
  {
    name: 'send to a queue, a topic and 10 mailboxes that are bounded',
    size: 20,
    async run({ store, broadcast, message, unique }, backlog, turn) {
      const bound = { mostKept: 2, mostUnread: 1 }
      const sent = [jobs, prices(turn)].map((topic) => broadcast({ topic, id: unique(`more of ${turn}`), ...bound }))
      const messages = ofEach(backlog, 'asleep', 10).map((runId) =>
        message(runId, { id: unique(`more of ${turn}`), ...bound }),
      )
      await store.deliver(messages)
      return store.deliver([...messages, ...sent])
    },
  },
  committed('wait on a topic and a queue that are bounded', 10, (turn) =>
    reaching({
      watches: [prices(turn), idlers].map((topic) => ({ kind: 'topic' as const, ...topic, mostSubscribers: 5 })),
    }),
  ),
  committed('wait on a queue that keeps much', 1, () => reaching({ watches: [{ kind: 'topic', ...jobs }] })),
  committed('wait on a topic that keeps some', 10, (turn) =>
    reaching({ watches: [{ kind: 'topic', ...prices(turn) }] }),
  ),
  committed('wait no more on a queue on which many do', 10, () =>
    reaching({ unwatches: [{ kind: 'topic', ...idlers }] }),
  ),
  {
    name: 'start 10 children, and end 10 that are watched',
    size: 20,
    async run(bench, _, turn) {
      const { store, transition, unique, child } = bench
      const parents = await heldBy(bench, unique(`parent of ${turn}`), 10)
      const children = parents.map(({ runId }) => child(runId, charge))
      const starts = parents.map((one, index) => {
        const start = children[index]
        return transition(one, {
          id: unique(`${turn} starts`),
          ...reaching({ starts: start === undefined ? [] : [start] }),
        })
      })
      await store.commit(starts)
      return store.commit(
        parents.map((one) =>
          transition(
            { ...one, seq: 2 },
            { id: unique(`${turn} ends`), append: [ending('succeeded')], status: 'succeeded' },
          ),
        ),
      )
    },
  },
  {
    name: 'watch 10 runs, of which all are over',
    size: 10,
    async run(bench, backlog, turn) {
      const { store, transition, unique } = bench
      const held = await heldBy(bench, unique(`watcher of ${turn}`), 10)
      return store.commit(
        held.map((one, index) => {
          const runId = backlog.id('over', 11 + index)
          return transition(one, { id: unique(`${turn} watches`), ...reaching({ watches: [{ kind: 'run', runId }] }) })
        }),
      )
    },
  },
  {
    name: 'end 10 with messages that they have not read',
    size: 10,
    async run(bench, _, turn) {
      const { store, transition, message, unique } = bench
      const held = await heldBy(bench, unique(`deaf of ${turn}`), 10)
      const policy = { onUnread: 'broadcast', delivery: 'one', retainMs: 0 } as const
      await store.deliver(
        held.map(({ runId }) => message(runId, { id: unique(`unread of ${turn}`), name: 'jobs', policy })),
      )
      const end = { append: [ending('succeeded')], status: 'succeeded' } as const
      return store.commit(held.map((one) => transition(one, { id: unique(`${turn} ends`), ...end })))
    },
  },
  {
    name: 'load messages by name',
    size: 100,
    run: ({ store }, backlog) =>
      store.load(
        ofEach(backlog, 'asleep', 100).map((runId) => ({
          runId,
          after: 0,
          limit: 0,
          messages: { names: ['approved', 'other'], limit: 10 },
        })),
      ),
  },
  {
    name: 'dead messages, and one that is dead no more',
    size: 20,
    async run({ store }, backlog) {
      const found = await store.deadLetters({}, { limit: 20 })
      const last = found.at(-1)
      const after = last === undefined ? {} : { after: `${last.runId} ${last.id}` }
      await store.deadLetters({ name: 'approved' }, { limit: 20, ...after })
      await store.deadLetters({ runId: backlog.id('over', 100) }, { limit: 20 })
      return last === undefined ? null : store.settleDeadLetter(last, 'discarded')
    },
  },
]

const asked: readonly Call[] = [
  ...[1, 100].map((size): Call => ({
    name: `get ${size}`,
    size,
    run: ({ store }, backlog) => store.get(ofEach(backlog, 'ready', size, 1_000)),
  })),
  {
    name: 'cancel 10',
    size: 10,
    async run({ store, unique }, backlog, turn) {
      const ask = { kind: 'cancel', mode: 'cooperative', reason: null } as const
      return store.control(
        ofEach(backlog, 'timed', 10, 1 + 10 * turn.length).map((runId) => ({
          id: unique(`${turn} cancels`),
          runId,
          ...ask,
        })),
      )
    },
  },
  {
    name: 'retry 1 that has a key',
    size: 1,
    run: ({ store, unique }, backlog, turn) => {
      const ask = { kind: 'retry', note: null, amend: [], seq: null } as const
      return store.control([{ id: unique(`${turn} retries`), runId: backlog.id('over', 1_000), ...ask }])
    },
  },
  {
    name: 'read 100 changes',
    size: 100,
    run: ({ store }, backlog) => store.changes(Math.floor(backlog.total / 20) * 10, 100),
  },
]

const filters: Readonly<Record<string, (backlog: Backlog) => RunFilter>> = {
  newest: () => ({}),
  'of a type': () => ({ types: ['ship'] }),
  'of a rare type': () => ({ types: ['audit'] }),
  'of rare types that have ended': () => ({ types: ['audit', 'none'], statuses: ['succeeded'] }),
  'of a type that nobody started': () => ({ types: ['none'] }),
  'of a type that are running': () => ({ types: ['ship'], statuses: ['running'] }),
  'that begins like a type': () => ({ typePrefix: 'sh' }),
  'that are pending': () => ({ statuses: ['pending'] }),
  'that are running': () => ({ statuses: ['running'] }),
  'that wait or have failed': () => ({ statuses: ['waiting', 'failed'] }),
  'that failed or were cancelled': () => ({ statuses: ['failed', 'cancelled'] }),
  'that are paused': () => ({ statuses: ['paused'] }),
  'of a key': (backlog) => ({ key: `key-${backlog.place('ready', 7)}` }),
  'of an idempotency key': (backlog) => ({ idempotencyKey: `once-${backlog.place('ready', 7)}` }),
  'of a tag': () => ({ tag: 'eu' }),
  'of a rare tag': () => ({ tag: 'rare' }),
  'of a parent of many': (backlog) => ({ parentId: backlog.id('over', 1) }),
  'of a parent of few': (backlog) => ({ parentId: backlog.id('over', 50) }),
  'of some ids': (backlog) => ({ ids: ofEach(backlog, 'ready', 20) }),
  'that were removed': () => ({ deleted: true }),
  'made in a time': (backlog) => ({
    createdFrom: Date.now() - 86_400_000,
    createdBefore: Date.now() - 86_400_000 + backlog.total / 2,
  }),
}

const walking = ['that wait or have failed', 'that were removed']

const listed: readonly Call[] = Object.entries(filters).flatMap(([name, filterOf]): readonly Call[] => {
  const kind = { size: 20, walks: walking.includes(name) }
  const middle = (backlog: Backlog): string => backlog.id('ready', Math.floor(backlog.sizes.ready / 2))
  return [
    { ...kind, name: `list ${name}`, run: ({ store }, backlog) => store.find(filterOf(backlog), { limit: 20 }) },
    {
      ...kind,
      name: `list ${name}, from the middle on`,
      run: ({ store }, backlog) => store.find(filterOf(backlog), { limit: 20, after: middle(backlog) }),
    },
    { ...kind, name: `count 20 ${name}`, run: ({ store }, backlog) => store.count(filterOf(backlog), 20) },
  ]
})

export const calls: readonly Call[] = [...working, ...exchanged, ...asked, ...listed]
