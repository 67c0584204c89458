import { describe, expect, it } from 'vitest'
import type { Claim } from '../../../../src/core/definition/definition.ts'
import type { Entry } from '../../../../src/core/model/entry.ts'
import type { Run } from '../../../../src/core/model/run.ts'
import type { LoadRequest, Store } from '../../../../src/store.ts'
import { loadAll, journalToRead, type Reader } from '../../../../src/worker/perform/load.ts'

/** A store that hands out at most `most` entries with each load, those of the first run first. */
function storeOf(journals: Readonly<Record<string, readonly number[]>>, most: number) {
  const asked: LoadRequest[][] = []
  const load: Store['load'] = async (requests) => {
    asked.push([...requests])
    let room = most
    return requests.map(({ runId, after, limit }) => {
      const seqs = (journals[runId] ?? []).filter((seq) => seq > after).slice(0, Math.min(limit, room))
      room -= seqs.length
      return { entries: seqs.map((seq) => ({ seq }) as Entry), messages: [] }
    })
  }
  return { store: { load }, asked }
}

const runOf = (id: string, seq: number, base = 1): Run =>
  ({ id, seq, base, inbox: 0, session: 's', token: 1 }) as unknown as Run

/** Writes down how each run went on. */
function listener() {
  const events: string[] = []
  const reader: Reader = {
    open: ({ run, entries }: Claim) => events.push(`${run.id} opens with ${entries.map(({ seq }) => seq).join(' ')}`),
    resume: ({ id }) => events.push(`${id} resumes`),
    unreadable: ({ id }, error) => events.push(`${id}: ${(error as Error).message}`),
    incomplete: ({ id }, { details }) => events.push(`${id} shows ${String(details['found'])}`),
  }
  return { events, reader }
}

describe('the journals of runs that were claimed together', () => {
  it('are read together, and a run that has got nothing comes first in the next load', async () => {
    const { store, asked } = storeOf({ a: [1, 2, 3, 4], b: [1, 2], c: [4, 5] }, 3)
    const { events, reader } = listener()
    await loadAll(store, [runOf('a', 4), runOf('b', 2), runOf('c', 5, 4)].map(journalToRead), reader)
    expect(events).toEqual(['b opens with 1 2', 'a opens with 1 2 3 4', 'c opens with 4 5'])
    expect(asked.map((requests) => requests.map(({ runId, after }) => `${runId} ${after}`))).toEqual([
      ['a 0', 'b 0', 'c 3'],
      ['b 0', 'c 3', 'a 3'],
      ['a 3', 'c 4'],
    ])
  })

  it('never open a run with an entry twice in place of one that is missing', async () => {
    const { store } = storeOf({ a: [1, 2, 4] }, 3)
    const { events, reader } = listener()
    await loadAll(store, [journalToRead(runOf('a', 4))], reader)
    expect(events).toEqual(['a shows 3'])
  })

  it('leave the runs that were begun alone when a later load fails', async () => {
    const { store } = storeOf({ a: [1], b: [1, 2] }, 2)
    const { events, reader } = listener()
    let loads = 0
    const failing: Pick<Store, 'load'> = {
      load: (requests, mostBytes) => {
        loads += 1
        return loads === 1 ? store.load(requests, mostBytes) : Promise.reject(new Error('down'))
      },
    }
    await loadAll(failing, [journalToRead(runOf('a', 1)), journalToRead(runOf('b', 2))], reader)
    expect(events).toEqual(['a opens with 1', 'b: down'])
  })
})
