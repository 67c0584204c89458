import { describe, expect, it } from 'vitest'
import type { Entry } from '../../../../src/core/model/entry.ts'
import type { LoadRequest, Store } from '../../../../src/store.ts'
import { loadEntries, loadJournal } from '../../../../src/engine/store/journal-pages.ts'

const mostBytes = 300

function entry(seq: number, data: string | null, kind: 'recorded' | 'damaged' = 'recorded'): Entry {
  return { kind, name: 'a', meta: null, data, seq, at: 0, transition: null } as unknown as Entry
}

/** A store whose pages end where the bytes of `weights` reach the bound, as every store ends them. */
function storeOf(journal: readonly Entry[], weights = journal.map(({ data }) => data?.length ?? 0)) {
  const asked: LoadRequest[] = []
  const load: Store['load'] = async ([request], bound = Infinity) => {
    if (request === undefined) return []
    asked.push(request)
    const entries: Entry[] = []
    for (let [at, bytes] = [request.after, 0]; at < journal.length && bytes < bound; at += 1) {
      if (entries.length === request.limit) break
      entries.push(journal[at] as Entry)
      bytes += weights[at] ?? 0
    }
    return [{ entries, messages: [] }]
  }
  return { store: { load }, asked }
}

async function seqs(pages: AsyncIterable<{ readonly entries: readonly Entry[] }>): Promise<number[][]> {
  const all: number[][] = []
  for await (const { entries } of pages) all.push(entries.map(({ seq }) => seq))
  return all
}

describe('the pages of a journal', () => {
  const light = [1, 2, 3, 4, 5].map((seq) => entry(seq, '1'))

  it('are full, and the last one is known to be the last without another load', async () => {
    const { store, asked } = storeOf(light)
    expect(await seqs(loadJournal(store, 'r', { limit: 2 }))).toEqual([[1, 2], [3, 4], [5]])
    expect(asked.map(({ after }) => after)).toEqual([0, 2, 4])
  })

  it('go on behind a page that its bytes have ended', async () => {
    const { store } = storeOf([entry(1, 'x'.repeat(mostBytes)), entry(2, 'x'), entry(3, 'x')])
    expect(await seqs(loadJournal(store, 'r', { mostBytes }))).toEqual([[1], [2, 3]])
  })

  it('go on behind a damaged entry, whose payload is not handed out and may have ended its page', async () => {
    const { store } = storeOf([entry(1, 'x'), entry(2, null, 'damaged'), entry(3, 'x')], [1, mostBytes, 1])
    expect(await seqs(loadJournal(store, 'r', { mostBytes }))).toEqual([[1, 2], [3]])
  })

  it('bring no messages', async () => {
    const { store, asked } = storeOf(light)
    await seqs(loadJournal(store, 'r', { limit: 3 }))
    expect(asked.map(({ messages }) => messages)).toEqual([1, 2].map(() => ({ names: [], limit: 0 })))
  })

  it('are none of a run that does not exist', async () => {
    const { store } = storeOf([])
    expect(await seqs(loadJournal(store, 'r'))).toEqual([])
    expect(await loadEntries(store, 'r')).toEqual([])
  })

  it('make one list', async () => {
    const { store } = storeOf(light)
    expect((await loadEntries(store, 'r', 2)).map(({ seq }) => seq)).toEqual([3, 4, 5])
  })
})
