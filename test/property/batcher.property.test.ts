// However submissions are gathered, merged, repeated and split, and whatever the store does meanwhile, every caller is answered
// once, and gets the answer that it would have got had the transitions been committed one by one.

import { fc } from '../support/properties.ts'
import { describe, expect, it } from 'vitest'
import type { Acknowledged } from '../../src/core/definition/definition.ts'
import { isHoldfastError } from '../../src/core/errors/error.ts'
import type { Transition } from '../../src/core/model/transition.ts'
import { createCommitter } from '../../src/engine/batch/committer.ts'
import type { Committed } from '../../src/store.ts'
import { manualPorts, turn } from '../support/manual-ports.ts'
import { Scribe, ScriptedStore, unavailable, type Flush } from '../support/scripted-store.ts'

const runIds = ['a', 'b', 'c', 'd']

type Action =
  | { readonly kind: 'submit'; readonly run: string; readonly what: What; readonly entries: number }
  /** A caller that was refused and waits for nothing reads the journal anew and goes on from there. */
  | { readonly kind: 'resync'; readonly run: string }
  | { readonly kind: 'turn' }

type What = 'checkpoint' | 'poison' | 'park' | 'park in vain' | 'end'

const action: fc.Arbitrary<Action> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('submit' as const),
      run: fc.constantFrom(...runIds),
      what: fc.oneof(
        { weight: 8, arbitrary: fc.constant<What>('checkpoint') },
        { weight: 2, arbitrary: fc.constantFrom<What>('poison', 'park in vain') },
        { weight: 1, arbitrary: fc.constantFrom<What>('park', 'end') },
      ),
      entries: fc.integer({ min: 1, max: 3 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('resync' as const), run: fc.constantFrom(...runIds) }) },
  { weight: 3, arbitrary: fc.constant<Action>({ kind: 'turn' }) },
)

/** What the store does with a flush; a number is for how many turns it keeps it waiting. */
type Behaviour = 'answer' | 'unavailable' | 'lose' | number
const behaviour = fc.oneof(fc.constantFrom<Behaviour>('answer', 'unavailable', 'lose'), fc.integer({ min: 1, max: 6 }))

const limits = fc.record({
  maxItems: fc.integer({ min: 1, max: 4 }),
  maxBytes: fc.constantFrom(250, 600, 1_000_000),
})

interface Submitted {
  readonly transition: Transition
  readonly outcomes: unknown[]
}

describe('the committer', () => {
  it('answers every caller once, with what one commit after the other would have answered', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(action, { maxLength: 60 }),
        fc.array(behaviour, { maxLength: 40 }),
        limits,
        async (actions, behaviours, chosen) => {
          const { store, submitted } = await perform(actions, behaviours, chosen)
          expect(store.violations).toEqual([])
          const reference = new ScriptedStore(runIds)
          const expected = submitted.map(({ transition }) => [oneByOne(reference, transition)])
          expect(submitted.map(({ outcomes }) => outcomes)).toEqual(expected)
          for (const run of runIds) {
            expect(store.names(run)).toEqual(reference.names(run))
            expect(new Set(store.names(run)).size).toBe(store.names(run).length)
          }
        },
      ),
      { numRuns: 500 },
    )
  })
})

async function perform(
  actions: readonly Action[],
  behaviours: readonly Behaviour[],
  chosen: { readonly maxItems: number; readonly maxBytes: number },
): Promise<{ readonly store: ScriptedStore; readonly submitted: readonly Submitted[] }> {
  const ports = manualPorts()
  const store = new ScriptedStore(runIds)
  const committer = createCommitter(store, ports, chosen)
  const scribes = new Map(runIds.map((run) => [run, new Scribe(run)]))
  const submitted: Submitted[] = []
  const waiting: { readonly flush: Flush; turns: number }[] = []
  const script = behaviours.values()
  store.onFlush = (flush) => {
    const next = script.next().value ?? 'answer'
    if (next === 'answer') flush.answer()
    else if (next === 'unavailable') flush.fail(unavailable())
    else if (next === 'lose') flush.lose()
    else waiting.push({ flush, turns: next })
  }
  const pass = async (): Promise<void> => {
    await turn()
    ports.clock.advance(100)
    for (const late of waiting.splice(0)) {
      late.turns -= 1
      if (late.turns > 0) waiting.push(late)
      else late.flush.answer()
    }
  }

  for (const step of actions) {
    if (step.kind === 'turn') await pass()
    else if (step.kind === 'resync') {
      const idle = submitted.every(({ transition, outcomes }) => transition.runId !== step.run || outcomes.length > 0)
      if (idle) (scribes.get(step.run) as Scribe).seq = store.names(step.run).length
    } else {
      const scribe = scribes.get(step.run) as Scribe
      const transition = scribe.write(namesOf(step, submitted.length), changesOf(step.what))
      const submission: Submitted = { transition, outcomes: [] }
      submitted.push(submission)
      committer.submit(transition).then(
        (answer) => submission.outcomes.push(shown(answer)),
        (error: unknown) => submission.outcomes.push(shownError(error)),
      )
    }
  }
  let drained = false
  void committer.drain().then(() => (drained = true))
  for (let turns = 0; turns < 2_000 && !drained; turns++) await pass()
  await turn()
  return { store, submitted }
}

function namesOf({ what, entries }: { readonly what: What; readonly entries: number }, number: number): string[] {
  return Array.from({ length: entries }, (_, index) => `${what === 'poison' ? 'poison ' : ''}${number}.${index}`)
}

function changesOf(what: What): Partial<Transition> {
  switch (what) {
    case 'checkpoint':
    case 'poison':
      return {}
    case 'park':
      return { status: 'waiting', parkIf: { inbox: 0 } }
    case 'park in vain':
      return { status: 'waiting', parkIf: { inbox: 7 } }
    case 'end':
      return { status: 'succeeded' }
  }
}

/** The time of a commit depends on what was merged; nothing else may. */
function shown({ seq, inbox, released }: Acknowledged): unknown {
  return { seq, inbox, released }
}

/** What follows a refused one is refused, too; whether for the lease or the journal depends on what was merged. */
function shownError(error: unknown): unknown {
  if (isHoldfastError(error, 'STALE_WRITE') || isHoldfastError(error, 'LEASE_LOST')) return 'refused'
  return isHoldfastError(error) ? error.code : error
}

function oneByOne(reference: ScriptedStore, transition: Transition): unknown {
  try {
    const [answer] = reference.apply([transition]) as [Committed]
    return answer.outcome === 'refused' ? 'refused' : shown(answer)
  } catch (error) {
    return shownError(error)
  }
}
