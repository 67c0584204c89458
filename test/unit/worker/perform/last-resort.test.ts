// A run that the engine cannot move on ends, undoes nothing, and says what it leaves behind. The store is scripted.

import { describe, expect, it } from 'vitest'
import type { Entry } from '../../../../src/core/model/entry.ts'
import { bug, HoldfastError } from '../../../../src/core/errors/error.ts'
import type { Lease, Run } from '../../../../src/core/model/run.ts'
import type { Transition } from '../../../../src/core/model/transition.ts'
import type { Engine } from '../../../../src/engine/engine.ts'
import type { LoadRequest } from '../../../../src/store.ts'
import { createRecordingLogger } from '../../../../src/testing/logger.ts'
import { endWithoutFrame } from '../../../../src/worker/perform/last-resort.ts'

const lease: Lease = { session: 'me', token: 1 }

/** Gives a run up that has this journal. */
async function ended(journal: readonly object[], given: Partial<Run> = {}, loading?: Error) {
  const entries = journal.map((entry, at) => ({
    seq: at + 1,
    at,
    meta: {},
    data: null,
    ...entry,
  })) as unknown as Entry[]
  const run = { id: 'a', type: 't', status: 'running', base: 1, seq: entries.length, undo: 'possible', ...given } as Run
  const logger = createRecordingLogger()
  const committed: Transition[] = []
  const loads: LoadRequest[] = []
  const engine = {
    ports: { logger },
    store: {
      get: () => Promise.resolve([run]),
      load: (requests: readonly LoadRequest[]) => {
        loads.push(...requests)
        if (loading !== undefined) return Promise.reject(loading)
        const { after, limit } = requests[0] as LoadRequest
        return Promise.resolve([{ entries: entries.filter(({ seq }) => seq > after).slice(0, limit), messages: [] }])
      },
    },
    payloads: { encodeFailure: () => '{}', place: () => ({}) },
    transitionId: () => 'id',
    commit: (transition: Transition) => Promise.resolve({ seq: committed.push(transition) }),
    runEnds: { ended: () => undefined },
  }
  await endWithoutFrame(engine as unknown as Engine, run, lease, bug('Something that cannot be'))
  return { end: committed[0]?.append[0], loads, logger }
}

const step = (name: string, undo = true): object => ({ kind: 'step-succeeded', name, meta: undo ? { undo } : {} })

describe('a run that is given up', () => {
  it('names the steps that it does not undo, whatever became of each', async () => {
    const { end } = await ended([
      { kind: 'started', name: null },
      step('flight'),
      step('look', false),
      { kind: 'begun', name: 'under way' },
      { kind: 'begun', name: 'failed' },
      { kind: 'attempt-failed', name: 'failed', meta: { attempt: 1 } },
      { kind: 'abandoned', name: 'abandoned', meta: { undo: true } },
      { kind: 'abandoned', name: 'harmless', meta: {} },
      { kind: 'abandoned', name: 'known to have failed', meta: { undo: true } },
      { kind: 'step-failed', name: 'known to have failed', meta: {} },
      step('dropped'),
      { kind: 'amended', name: null, meta: { seq: 11, dropped: true } },
      step('undone'),
      { kind: 'undone', name: 'undone' },
      step('not undone'),
      { kind: 'undo-failed', name: 'not undone' },
    ])
    expect(end).toMatchObject({
      kind: 'failed',
      meta: { cause: null, notUndone: ['not undone', 'flight', 'abandoned', 'under way'] },
    })
  })

  it('names them also when an operator wanted it cancelled', async () => {
    const { end } = await ended([step('flight')], {
      status: 'cancelling',
      controlRequest: { kind: 'cancel', reason: 'r', at: 1 },
    })
    expect(end).toMatchObject({ kind: 'cancelled', meta: { reason: 'r', notUndone: ['flight'] } })
  })

  it('does not read its journal where nothing can be undone', async () => {
    const { end, loads } = await ended([{ kind: 'started', name: null }], { undo: 'none' })
    expect([end?.meta, loads]).toEqual([null, []])
  })

  it('names only steps of what it has become last', async () => {
    const { end } = await ended([step('before'), { kind: 'continued', name: null }, step('after')], { base: 2 })
    expect(end?.meta).toMatchObject({ notUndone: ['after'] })
  })

  it('ends also when its journal cannot be read for good', async () => {
    const { end, logger } = await ended([step('flight')], {}, bug('A row that cannot be'))
    expect([end?.kind, end?.meta]).toEqual(['failed', null])
    expect(logger.messages('error').at(-1)).toMatch(/^Run a of ".*" ends without undo work/)
  })

  it('is left to the lease while the store is away', async () => {
    const { end } = await ended([step('flight')], {}, new HoldfastError('STORE_UNAVAILABLE', 'Away'))
    expect(end).toBeUndefined()
  })
})
