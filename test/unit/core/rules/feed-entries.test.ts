import { describe, expect, it } from 'vitest'
import type { Entry } from '../../../../src/core/model/entry.ts'
import { checkFeed } from '../../../../src/core/invariants/check.ts'
import type { Run } from '../../../../src/core/model/run.ts'
import { fedCount } from '../../../../src/core/rules/feed-entries.ts'
import { newRun } from '../model/new-run.ts'

describe('the feed', () => {
  it('lists what is appended to a run that asks for it, and the entry with which one begins to ask or asks no more', () => {
    const [fed, quiet] = [{ feed: true }, { feed: false }]
    expect([fed, quiet].map((after) => fedCount(fed, after, 3))).toEqual([3, 3])
    expect([fed, quiet].map((after) => fedCount(quiet, after, 3))).toEqual([1, 0])
    expect(fedCount(quiet, fed, 0)).toBe(0)
  })

  it.each<[string, Partial<Run>, readonly number[], boolean]>([
    ['nothing of a run that does not ask', { feed: false }, [], true],
    ['the start of a run that does not ask', { feed: false }, [1], false],
    ['all of a run that does not ask', { feed: false }, [1, 2, 3, 4], false],
    ['all of a run that asks', { feed: true }, [1, 2, 3, 4], true],
    ['all but the last of a run that asks', { feed: true }, [1, 2, 3], false],
    ['all of a run that asks, one of them twice', { feed: true }, [1, 2, 3, 3, 4], false],
    ['what came before a run went on as one that does not ask', { feed: false, base: 3 }, [1, 2, 3], true],
    ['what came after a run went on as one that does not ask', { feed: false, base: 3 }, [1, 2, 3, 4], false],
    ['what came before, backwards', { feed: false, base: 3 }, [2, 1], false],
    ['a run from where it went on as one that asks', { feed: true, base: 3 }, [3, 4], true],
    ['a run that asked before, too', { feed: true, base: 3 }, [1, 2, 3, 4], true],
    ['a run that asks without the input that it went on with', { feed: true, base: 3 }, [1, 2, 4], false],
  ])('lists %s', (_, changes, listed, isRight) => {
    const run = newRun({ ...changes, seq: 4 })
    const entries = [1, 2, 3, 4].map((seq) => ({ seq }) as Entry)
    const items = listed.map((seq, index) => ({ position: index + 1, runId: run.id, entry: { seq } as Entry }))
    const found = checkFeed(items, [{ run, entries, messages: [] }]).map(({ name }) => name)
    expect(found).toEqual(isRight ? [] : ['feed_complete'])
  })
})
