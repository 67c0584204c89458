// Planted bugs in what passes between runs.

import { outgoingIn } from '../../src/core/rules/messages/send.ts'
import type { Committed, Delivered, NewMessage } from '../../src/store.ts'
import { changed, insides, onCommit, type Canary } from './planting.ts'
import type { StoreMutation } from './simulate.ts'

/** The end of a run is stored, and those who watch it are not notified. */
const endUntold: StoreMutation = (store) =>
  changed(store, {
    commit: (transitions): Promise<readonly Committed[]> => {
      const { rows } = insides(store).tables
      for (const { runId, status } of transitions) {
        const row = rows.get(runId)
        if (row !== undefined && status === 'succeeded') row.watched = false
      }
      return store.commit(transitions)
    },
  })

/** The entry that names a child is stored, and the child is not. */
const childNotStarted = onCommit((transition) => ({
  ...transition,
  outbound:
    transition.outbound === null || transition.outbound === undefined ? null : { ...transition.outbound, starts: [] },
}))

/** Who gives up one wait gives up all that it has on other runs. */
const waitsDropped = onCommit((transition, row, store) => {
  const { rows, topics } = insides(store).tables
  if ((transition.outbound?.unwatches.length ?? 0) === 0) return transition
  const all = [...rows.keys()].flatMap((runId) => topics.waitsOn('run', runId))
  for (const wait of all) if (wait.runId === row.id) topics.deleteWait(wait)
  return transition
})

/** A message is read, and stays in the mailbox. */
const signalNotTaken = onCommit((transition) => ({ ...transition, takes: [] }))

/** A message is accepted and not kept. */
const signalDropped: StoreMutation = (store) =>
  changed(store, {
    deliver: async (messages): Promise<readonly Delivered[]> => {
      const answers: Delivered[] = []
      for (const message of messages) {
        const isDropped = !('topic' in message) && message.id === 'm2' && isBusy(message)
        answers.push(...(isDropped ? [{ outcome: 'queued' } as const] : await store.deliver([message])))
      }
      return answers
    },
  })

function isBusy({ name }: NewMessage): boolean {
  return name === 'red'
}

/** What is sent to a queue stays there, whichever run waits. */
const queueStuck: StoreMutation = (store) =>
  changed(store, {
    deliver: async (messages): Promise<readonly Delivered[]> => {
      const { topics } = insides(store).tables
      const waits = topics.waitsOn('topic', 'jobs')
      for (const wait of waits) topics.deleteWait(wait)
      const answers = await store.deliver(messages)
      for (const wait of waits) topics.addWait(wait)
      return answers
    },
  })

/** A run that is woken by a message sleeps on. */
const wakeUpLost: StoreMutation = (store) =>
  changed(store, {
    deliver: async (messages): Promise<readonly Delivered[]> => {
      const answers = await store.deliver(messages)
      for (const message of messages) {
        const row = 'topic' in message ? undefined : insides(store).tables.rows.get(message.runId)
        if (row?.status === 'waiting' && row.readiness === 'ready') asleep(store, row)
      }
      return answers
    },
  })

/** A run that is parked forgets one of the messages that it wants. */
const wantedIgnored = onCommit((transition) => {
  const { parkIf } = transition
  const wakeNames = parkIf?.wakeNames ?? null
  return parkIf === null || wakeNames === null
    ? transition
    : { ...transition, parkIf: { ...parkIf, wakeNames: wakeNames.slice(1) } }
})

function asleep(store: Parameters<StoreMutation>[0], row: { readonly id: string }): void {
  const { queues } = (
    store as unknown as { readonly tables: { readonly queues: { remove(row: object, to: 'idle'): void } } }
  ).tables
  queues.remove(row, 'idle')
}

/** Nobody goes on with what a broadcast or an end has left to do. */
const choresUndone: StoreMutation = (store) =>
  changed(store, { doChores: async () => ({ worked: false, nextInMs: null }) })

/** Who goes on with something forgets that there was more. */
const choreCutShort: StoreMutation = (store) =>
  changed(store, {
    doChores: async () => {
      const { topics } = insides(store).tables
      for (const chore of topics.allChores()) topics.deleteChore(chore)
      return store.doChores()
    },
  })

/** Of those who wait on a run that ends, only the first page ever hears of it. */
const watchersDropped: StoreMutation = (store) =>
  changed(store, {
    commit: async (transitions): Promise<readonly Committed[]> => {
      const answers = await store.commit(transitions)
      const { topics } = insides(store).tables
      for (const chore of topics.allChores().filter(({ kind }) => kind === 'end')) {
        for (const wait of topics.waitsOn('run', chore.target)) topics.deleteWait(wait)
        topics.deleteChore(chore)
      }
      return answers
    },
  })

/** What a transition sends is sent again when the transition is repeated, because its answer was lost. */
const sentTwice: StoreMutation = (store) =>
  changed(store, {
    commit: async (transitions): Promise<readonly Committed[]> => {
      const { rows } = insides(store).tables
      const repeated = transitions.filter(
        ({ id, runId, guard }) => rows.get(runId)?.entries[guard.seq]?.transition === id,
      )
      for (const { runId, guard, append } of repeated) {
        const sent = outgoingIn(runId, guard.seq, append).map(({ message }) => ({
          ...message,
          id: `${message.id} again`,
        }))
        if (sent.length > 0) await store.deliver(sent)
      }
      return store.commit(transitions)
    },
  })

/** A topic that nobody uses goes, and what it has given goes with it. */
const topicBeginsAnew: StoreMutation = (store) => {
  const { topics } = insides(store).tables
  const right = topics.delete.bind(topics)
  topics.delete = (topic) => {
    right(topic)
    Reflect.set(topics, 'gone', 0)
  }
  return store
}

/** The rows of topics go while they still keep something. */
const topicGoesTooSoon: StoreMutation = (store) => {
  const { topics } = insides(store).tables
  const right = topics.use.bind(topics)
  topics.use = (topic) => {
    const use = right(topic)
    return use === undefined ? undefined : { ...use, oldest: undefined }
  }
  return store
}

export const exchangeCanaries: readonly Canary[] = [
  { name: 'waits-dropped', bug: 'who gives up one wait gives up all', budget: 400, mutation: waitsDropped },
  {
    name: 'end-not-notified',
    bug: 'the end of a run is not reported to the runs that wait for it',
    budget: 600,
    mutation: endUntold,
  },
  {
    name: 'child-not-started',
    bug: 'the entry that names a child is stored without the child',
    budget: 600,
    mutation: childNotStarted,
  },
  { name: 'signal-not-taken', bug: 'a signal is read and stays', budget: 600, mutation: signalNotTaken },
  { name: 'signal-dropped', bug: 'a signal is accepted and not kept', budget: 600, mutation: signalDropped },
  { name: 'queue-stuck', bug: 'what is sent to a queue reaches nobody who waits', budget: 600, mutation: queueStuck },
  {
    name: 'awaited-message-ignored',
    bug: 'a message that a run wants does not wake it',
    budget: 400,
    mutation: wantedIgnored,
  },
  {
    name: 'chores-undone',
    bug: 'what an end or a broadcast left is done by nobody',
    budget: 400,
    mutation: choresUndone,
  },
  { name: 'chore-cut-short', bug: 'what is left to do is forgotten half done', budget: 600, mutation: choreCutShort },
  {
    name: 'watchers-dropped',
    bug: 'of those who wait on a run only a page hears of its end',
    budget: 600,
    mutation: watchersDropped,
  },
  {
    name: 'sent-twice-after-lost-reply',
    bug: 'what a repeated transition sends is sent again',
    budget: 400,
    mutation: sentTwice,
  },
  {
    name: 'topic-begins-anew',
    bug: 'a topic that begins again after it went begins at position 1',
    budget: 400,
    mutation: topicBeginsAnew,
  },
  {
    name: 'topic-goes-too-soon',
    bug: 'a topic goes with what it keeps for the next run that comes',
    budget: 600,
    mutation: topicGoesTooSoon,
  },
  { name: 'message-wakes-nobody', bug: 'a run sleeps on with a message', budget: 600, mutation: wakeUpLost },
]
