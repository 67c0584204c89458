// Planted bugs. Each of these is a store that does one thing wrong, as real stores and engines have done; the checker must
// find every one of them within its seeds. A canary that survives means that the checker is blind there.

import type { Entry } from '../../src/core/model/entry.ts'
import { holds, isTerminal } from '../../src/core/model/run.ts'
import type { Transition } from '../../src/core/model/transition.ts'
import type { Committed, Started } from '../../src/store.ts'
import { accountCanaries } from './account-canaries.ts'
import { engineCanaries } from './engine-canaries.ts'
import { exchangeCanaries } from './exchange-canaries.ts'
import { feedCanaries } from './feed-canaries.ts'
import { instanceCanaries } from './instance-canaries.ts'
import { planCanaries } from './plan-canaries.ts'
import { by, changed, insides, onClaim, onCommit, type Canary } from './planting.ts'
import type { StoreMutation } from './simulate.ts'

const noFence = onCommit((transition, row) => {
  const { guard } = transition
  if (row.session === null || holds(row, guard.lease)) return transition
  return { ...transition, guard: { ...guard, lease: { session: row.session, token: row.token } } }
})

const staleAccepted = onCommit((transition, row) => ({
  ...transition,
  guard: { lease: { session: row.session ?? '', token: row.token }, seq: row.seq },
}))

const terminalLeft = onCommit((transition, row) => {
  if (
    isTerminal(row.status) &&
    row.seq > transition.guard.seq &&
    row.entries[transition.guard.seq]?.transition !== transition.id
  ) {
    row.status = 'pending'
  }
  return transition
})

const overwritten = onCommit((transition, row) => {
  const { guard, append, id } = transition
  const there = row.entries[guard.seq]
  const [first] = append
  if (there !== undefined && there.transition !== id && first !== undefined && !holds(row, guard.lease)) {
    row.entries[guard.seq] = { ...first, seq: there.seq, at: there.at, transition: id }
  }
  return transition
})

const lostWakeUp = onCommit((transition, row) =>
  transition.parkIf === null ? transition : { ...transition, parkIf: { ...transition.parkIf, inbox: row.inbox } },
)

const blindRetry = onCommit((transition, row) => {
  const { guard, id } = transition
  const isRepeated = row.entries[guard.seq]?.transition === id
  return isRepeated ? { ...transition, id: `${id} again`, guard: { ...guard, seq: row.seq } } : transition
})

const rowsCollide = onCommit((transition) =>
  transition.append.length > 1 && transition.continues === null
    ? { ...transition, append: transition.append.slice(1) }
    : transition,
)

const recordedOtherwise = onCommit((transition) => ({
  ...transition,
  append: transition.append.map((draft) =>
    draft.kind === 'step-succeeded' ? { ...draft, data: draft.data.replace(/"n":\d+/, '"n":1') } : draft,
  ),
}))

const lostControlRequest = onCommit((transition, row) => {
  if (row.controlRequest?.kind === 'pause') row.controlRequest = null
  return transition
})

const lostUndo = onCommit((transition) => (transition.undo === null ? transition : { ...transition, undo: null }))

const swappedAnswers: StoreMutation = (store) =>
  changed(store, {
    commit: async (transitions): Promise<readonly Committed[]> => {
      const [first, second, ...rest] = await store.commit(transitions)
      return first === undefined || second === undefined ? [first, second].filter(isThere) : [second, first, ...rest]
    },
  })

function isThere(answer: Committed | undefined): answer is Committed {
  return answer !== undefined
}

/** Answers that the first checkpoint of a run is durable, and forgets it. */
const barrierSkipped: StoreMutation = (store, clock) => {
  const forgotten = new Set<string>()
  return changed(store, {
    commit: async (transitions) => {
      const isKept = ({ status, continues, runId }: Transition): boolean =>
        status !== null || continues !== null || forgotten.has(runId)
      if (transitions.some(isKept)) return store.commit(transitions)
      for (const { runId } of transitions) forgotten.add(runId)
      return transitions.map(({ guard, append, runId }) => ({
        outcome: 'committed',
        seq: guard.seq + append.length,
        at: clock.now(),
        inbox: insides(store).tables.rows.get(runId)?.inbox ?? 0,
        released: false,
        controlRequest: null,
      }))
    },
  })
}

const undoneTwice: StoreMutation = (store) =>
  changed(store, {
    load: async (requests) => {
      const loaded = await store.load(requests)
      return loaded.map(({ entries, messages }) => ({
        messages,
        entries: entries.map((entry) =>
          entry.kind === 'undone' ? { ...entry, kind: 'logged', name: `u${entry.seq}`, meta: null, data: '{}' } : entry,
        ),
      }))
    },
  })

const cancelForgotten: StoreMutation = (store) =>
  changed(store, {
    control: async (requests) => {
      const rows = requests.map(({ runId }) => insides(store).tables.rows.get(runId))
      const before = rows.map((row) =>
        row === undefined ? undefined : { status: row.status, controlRequest: row.controlRequest },
      )
      const answers = await store.control(requests)
      answers.forEach((answer, index) => {
        const [row, was] = [rows[index], before[index]]
        if (answer.outcome === 'requested' && row !== undefined && was !== undefined) Object.assign(row, was)
      })
      return answers
    },
  })

function keyTwice(key: 'key' | 'idempotencyKey'): StoreMutation {
  return (store) =>
    changed(store, {
      start: async (runs) => {
        const answers = await store.start(runs.map((run) => ({ ...run, [key]: null })))
        return answers.map((answer, index) => {
          const row = insides(store).tables.rows.get(answer.run.id)
          const asked = runs[index]
          if (row !== undefined && asked !== undefined) row[key] = asked[key]
          return { ...answer, run: { ...answer.run, [key]: asked?.[key] ?? null } }
        })
      },
    })
}

/** The store gives a time that it does not have. */
const earlyTimer: StoreMutation = (store) =>
  changed(store, {
    claim: async (request) => {
      const claimed = await store.claim(request)
      return { ...claimed, now: claimed.now + 700 }
    },
    beat: async (request) => {
      const beat = await store.beat(request)
      return { ...beat, now: beat.now + 700 }
    },
  })

const baseNotMoved: StoreMutation = (store) =>
  changed(store, {
    commit: async (transitions) => {
      const bases = transitions.map(({ runId }) => insides(store).tables.rows.get(runId)?.base)
      const answers = await store.commit(transitions)
      transitions.forEach(({ runId, continues }, index) => {
        const row = insides(store).tables.rows.get(runId)
        const base = bases[index]
        if (continues !== null && row !== undefined && base !== undefined) row.base = base
      })
      return answers
    },
  })

/** Hands over the first entry of a run as if it were all, however far the run is. */
const staleFresh: StoreMutation = (store) =>
  changed(store, {
    claim: async (request) => {
      const claimed = await store.claim(request)
      const loaded = await store.load(claimed.runs.map(({ id }) => ({ runId: id, after: 0, limit: 1 })))
      const fresh = claimed.runs.map(({ id }, index) => ({ runId: id, entry: loaded[index]?.entries[0] as Entry }))
      return { ...claimed, runs: claimed.runs.map((run) => ({ ...run, seq: 1 })), fresh }
    },
  })

/** Passes a transition over, and says that it was committed. */
const passedOver: StoreMutation = (store, clock) =>
  changed(store, {
    commit: async (transitions): Promise<readonly Committed[]> => {
      const [first, ...rest] = transitions
      if (first === undefined || rest.length === 0) return store.commit(transitions)
      const { runId, guard, append, status } = first
      const inbox = insides(store).tables.rows.get(runId)?.inbox ?? 0
      const seq = guard.seq + append.length
      const answer = {
        outcome: 'committed',
        seq,
        at: clock.now(),
        inbox,
        released: status !== null,
        controlRequest: null,
      } as const
      return [answer, ...(await store.commit(rest))]
    },
  })

/** Of a batch of starts in which one finds its key taken, nothing is kept of the others, who are answered that it is. */
const neighbourSpoiled: StoreMutation = (store) =>
  changed(store, {
    start: async (runs): Promise<readonly Started[]> => {
      const answers = await store.start(runs)
      const { rows } = insides(store).tables
      if (answers.every(({ created }) => created)) return answers
      for (const { created, run } of answers) if (created) (rows as Map<string, unknown>).delete(run.id)
      return answers
    },
  })

const noRescue: StoreMutation = (store, clock) =>
  changed(store, {
    rescue: async () => {
      const nothing = { takenOver: [], ended: [], paused: [], suspects: null, more: false, next: null }
      return { sessionsEnded: 0, ...nothing, now: clock.now() }
    },
  })

export const canaries: readonly Canary[] = [
  ...exchangeCanaries,
  ...engineCanaries,
  ...feedCanaries,
  ...instanceCanaries,
  ...accountCanaries,
  ...planCanaries,
  { name: 'no-fence', bug: 'a stale lease may write', budget: 1_200, mutation: noFence },
  { name: 'stale-accepted', bug: 'a write goes wherever the journal is by now', budget: 600, mutation: staleAccepted },
  { name: 'terminal-left', bug: 'a late write brings a run back that has ended', budget: 600, mutation: terminalLeft },
  {
    name: 'checkpoint-overwritten',
    bug: 'a late write takes the place of a recorded one',
    budget: 600,
    mutation: overwritten,
  },
  {
    name: 'token-not-grown',
    bug: 'a second claim has the token of the first',
    budget: 200,
    mutation: onClaim((row, run) => {
      if (row.token === 1) return
      row.token -= 1
      run.token -= 1
    }),
  },
  { name: 'early-timer', bug: 'timers go by a clock that is ahead of the store', budget: 200, mutation: earlyTimer },
  {
    name: 'claim-before-due',
    bug: 'work is handed out before it is due',
    budget: 200,
    mutation: (store) => changed(store, { claim: (request) => by(store, 300, () => store.claim(request)) }),
  },
  { name: 'lost-wake-up', bug: 'a run parks although a message came', budget: 800, mutation: lostWakeUp },
  { name: 'answers-swapped', bug: 'two answers of a batch change places', budget: 600, mutation: swappedAnswers },
  { name: 'rows-collide', bug: 'of two entries of one run only the last is kept', budget: 200, mutation: rowsCollide },
  { name: 'blind-retry', bug: 'a repeated write is written again', budget: 400, mutation: blindRetry },
  {
    name: 'worker-clock-lease',
    bug: 'a lease is judged by the clock of a worker',
    budget: 400,
    mutation: (store) =>
      changed(store, {
        rescue: async (request) => {
          // Who is dead is judged by a clock that is ahead; what becomes of that is written in store time.
          await by(store, 2_000, () => store.rescue({ ...request, limit: 0 }))
          return store.rescue(request)
        },
      }),
  },
  { name: 'barrier-skipped', bug: 'a step begins before its past is durable', budget: 200, mutation: barrierSkipped },
  { name: 'undone-twice', bug: 'an undo that was recorded is not remembered', budget: 2_000, mutation: undoneTwice },
  {
    name: 'undo-forgotten',
    bug: 'the row does not say that there is something to undo',
    budget: 600,
    mutation: lostUndo,
  },
  {
    name: 'cancel-forgotten',
    bug: 'a cancellation is answered and not written',
    budget: 400,
    mutation: cancelForgotten,
  },
  {
    name: 'control-request-lost',
    bug: 'a request to pause is gone with the next write',
    budget: 600,
    mutation: lostControlRequest,
  },
  { name: 'key-twice', bug: 'two live runs have one business key', budget: 200, mutation: keyTwice('key') },
  {
    name: 'idempotency-key-twice',
    bug: 'two runs have one idempotency key',
    budget: 200,
    mutation: keyTwice('idempotencyKey'),
  },
  {
    name: 'crash-counter-stuck',
    bug: 'claims are not counted as possible crashes',
    budget: 100,
    mutation: onClaim((row) => (row.crashes -= 1)),
  },
  { name: 'base-not-moved', bug: 'a run that began anew reads its old history', budget: 400, mutation: baseNotMoved },
  {
    name: 'recorded-otherwise',
    bug: 'what is recorded is not what the step returned',
    budget: 100,
    mutation: recordedOtherwise,
  },
  { name: 'stale-fresh', bug: 'a claim hands over less than the whole journal', budget: 200, mutation: staleFresh },
  { name: 'passed-over', bug: 'a busy run is answered as committed', budget: 1_200, mutation: passedOver },
  {
    name: 'neighbour-spoiled',
    bug: 'of starts that go together none is kept if one is refused',
    budget: 200,
    mutation: neighbourSpoiled,
  },
  { name: 'no-rescue', bug: 'nobody takes over from the dead', budget: 200, mutation: noRescue },
]

export function canaryNamed(name: string): Canary {
  const canary = canaries.find((one) => one.name === name)
  if (canary !== undefined) return canary
  throw new Error(`There is no canary "${name}". There are: ${canaries.map((one) => one.name).join(', ')}.`)
}
