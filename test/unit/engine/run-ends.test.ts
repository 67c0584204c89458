// A caller that waits for a run hears of its end, once, wherever it ended and whatever was lost on the way.

import { beforeEach, describe, expect, it } from 'vitest'
import type { Entry } from '../../../src/core/model/entry.ts'
import type { Run, RunStatus } from '../../../src/core/model/run.ts'
import { RunEnds, type RunEnd, type Watcher } from '../../../src/engine/run-ends.ts'
import type { Loaded, LoadRequest } from '../../../src/store.ts'
import { manualPorts, turn, type ManualPorts } from '../../support/manual-ports.ts'
import { unavailable } from '../../support/scripted-store.ts'

/** Runs whose status the test sets; an ended one has three entries. */
class Runs {
  readonly status = new Map<string, RunStatus>()
  readonly asked: (readonly string[])[] = []
  loads = 0
  broken = false
  readonly removed = new Set<string>()
  holder: string | null = null

  async get(ids: readonly string[]): Promise<readonly (Run | undefined)[]> {
    this.asked.push(ids)
    if (this.broken) throw unavailable()
    return ids.map((id) => {
      const status = this.status.get(id)
      return status === undefined
        ? undefined
        : ({ id, status, seq: 3, session: this.holder, deletedAt: this.removed.has(id) ? 1 : null } as Run)
    })
  }

  async load(requests: readonly LoadRequest[]): Promise<readonly Loaded[]> {
    this.loads += 1
    return requests.map(({ runId, after }) => ({
      entries: [{ seq: after + 1, data: `end of ${runId}` } as Entry],
      messages: [],
    }))
  }
}

let store: Runs
let ports: ManualPorts
let endings: RunEnds
let heard: RunEnd[]
const hear = (ending: RunEnd): void => void heard.push(ending)

beforeEach(() => {
  store = new Runs()
  ports = manualPorts()
  endings = new RunEnds(store, ports)
  heard = []
})

function endingOf(runId: string): RunEnd {
  return { runId, status: 'succeeded', seq: 3, data: `end of ${runId}`, reason: null }
}

/** Watches with a plain function, and gives back what ends that. */
function watch(endings: RunEnds, runId: string, ended: (ending: RunEnd) => void): () => void {
  const watcher: Watcher = { ended, removed: () => undefined, closed: () => undefined }
  endings.watch(runId, watcher)
  return () => endings.unwatch(runId, watcher)
}

describe('an ending', () => {
  it('here is reported at once to all that watch that run, once, without a look', () => {
    watch(endings, 'a', hear)
    watch(endings, 'a', (ending) => hear(ending))
    watch(endings, 'b', hear)
    endings.ended(endingOf('a'))
    endings.ended(endingOf('a'))
    expect(heard).toEqual([endingOf('a'), endingOf('a')])
    expect(store.asked).toEqual([])
  })

  it('elsewhere is found by a hint', async () => {
    store.status.set('a', 'succeeded')
    watch(endings, 'a', hear)
    endings.hinted('a')
    await turn()
    expect(heard).toEqual([endingOf('a')])
    expect(ports.clock.pending).toBe(0)
  })

  it('elsewhere is found by the regular look when its hint was lost', async () => {
    store.status.set('a', 'running')
    watch(endings, 'a', hear)
    ports.clock.advance(1_000)
    await turn()
    expect(heard).toEqual([])
    expect(store.loads).toBe(0)
    store.status.set('a', 'succeeded')
    ports.clock.advance(1_000)
    await turn()
    expect(heard).toEqual([endingOf('a')])
  })

  it('is not reported to a caller who watches no longer, and leaves others alone', () => {
    const unwatch = watch(endings, 'a', hear)
    watch(endings, 'a', (ending) => hear({ ...ending, seq: 99 }))
    unwatch()
    unwatch()
    endings.ended(endingOf('a'))
    unwatch()
    expect(heard).toEqual([{ ...endingOf('a'), seq: 99 }])
  })

  it('of an earlier watch does not end a later one', () => {
    const unwatch = watch(endings, 'a', hear)
    endings.ended(endingOf('a'))
    watch(endings, 'a', hear)
    unwatch()
    endings.ended(endingOf('a'))
    expect(heard).toHaveLength(2)
  })
})

describe('a run that was removed', () => {
  const gone: string[] = []
  const watcher: Watcher = { ended: hear, removed: ({ id }) => void gone.push(id), closed: () => undefined }

  it('is reported by the regular look, once, but not as long as a holder has it that may end it', async () => {
    gone.length = 0
    store.status.set('a', 'running')
    store.removed.add('a')
    store.holder = 'another'
    endings.watch('a', watcher)
    ports.clock.advance(1_000)
    await turn()
    expect(gone).toEqual([])
    store.holder = null
    ports.clock.advance(1_000)
    await turn()
    expect([gone, heard, ports.clock.pending]).toEqual([['a'], [], 0])
  })

  it('after its end has the end that it had', async () => {
    gone.length = 0
    store.status.set('a', 'succeeded')
    store.removed.add('a')
    endings.watch('a', watcher)
    endings.hinted('a')
    await turn()
    expect([gone, heard]).toEqual([[], [endingOf('a')]])
  })
})

describe('a hint', () => {
  it('costs nothing when nobody watches, or when the run ended here first', async () => {
    endings.hinted('a')
    watch(endings, 'b', hear)
    endings.hinted('b')
    endings.ended(endingOf('b'))
    await turn()
    expect(store.asked).toEqual([])
    expect(heard).toHaveLength(1)
  })

  it('comes with many others, and they are looked at together', async () => {
    for (const id of ['a', 'b', 'c']) {
      store.status.set(id, 'succeeded')
      watch(endings, id, hear)
      endings.hinted(id)
      endings.hinted(id)
    }
    await turn()
    expect(store.asked).toEqual([['a', 'b', 'c']])
    expect(heard).toHaveLength(3)
  })
})

describe('a look that fails', () => {
  it('after a hint is not an unhandled rejection, and the regular look finds the ending', async () => {
    store.status.set('a', 'succeeded')
    store.broken = true
    watch(endings, 'a', hear)
    endings.hinted('a')
    await turn()
    expect(heard).toEqual([])
    expect(ports.warnings).toHaveLength(1)
    store.broken = false
    ports.clock.advance(1_000)
    await turn()
    expect(heard).toEqual([endingOf('a')])
  })

  it('loses nothing, however often it fails', async () => {
    store.status.set('a', 'succeeded')
    store.broken = true
    watch(endings, 'a', hear)
    for (let look = 0; look < 5; look++) {
      ports.clock.advance(1_000)
      await turn()
    }
    expect(store.asked).toHaveLength(5)
    store.broken = false
    ports.clock.advance(1_000)
    await turn()
    expect(heard).toEqual([endingOf('a')])
    expect(ports.clock.pending).toBe(0)
  })
})

describe('the regular look', () => {
  it('sets one timer for all, and none when nobody watches', () => {
    const first = watch(endings, 'a', hear)
    const second = watch(endings, 'b', hear)
    expect(ports.clock.pending).toBe(1)
    first()
    expect(ports.clock.pending).toBe(1)
    second()
    expect(ports.clock.pending).toBe(0)
    watch(endings, 'c', hear)
    endings.ended(endingOf('c'))
    expect(ports.clock.pending).toBe(0)
  })

  it('sets no timer when the last one stops watching during a look', async () => {
    store.status.set('a', 'running')
    const unwatch = watch(endings, 'a', hear)
    ports.clock.advance(1_000)
    unwatch()
    await turn()
    expect(ports.clock.pending).toBe(0)
  })

  it('sets one timer when a caller begins to watch during a look', async () => {
    store.status.set('a', 'running')
    watch(endings, 'a', hear)
    ports.clock.advance(1_000)
    watch(endings, 'b', hear)
    await turn()
    expect(ports.clock.pending).toBe(1)
  })

  it('comes to everyone in turn when thousands watch, and sooner', async () => {
    for (let run = 0; run < 2_000; run++) {
      store.status.set(`r${run}`, 'running')
      watch(endings, `r${run}`, hear)
    }
    store.status.set('r1999', 'succeeded')
    for (let look = 0; look < 4; look++) {
      ports.clock.advance(look === 0 ? 1_000 : 250)
      await turn()
    }
    expect(store.asked.map((ids) => ids.length)).toEqual([500, 500, 500, 500])
    expect(new Set(store.asked.flat()).size).toBe(2_000)
    expect(heard).toHaveLength(1)
  })
})

it('a look says who asked how the runs stand, and that there is no such run', async () => {
  store.status.set('a', 'waiting')
  const [found, missing] = await endings.look(['a', 'b'])
  expect(found?.status).toBe('waiting')
  expect(missing).toBeUndefined()
})

describe('a store that hints at ends on demand', () => {
  const expected: boolean[] = []
  const moving = new Set<string>()
  let isUncertain = true
  const endHints = {
    expectEnds(isExpecting: boolean): boolean {
      expected.push(isExpecting)
      return isExpecting && isUncertain
    },
  }
  const options = { endHints, isMoving: (runId: string) => moving.has(runId) }
  const pass = async (ms: number): Promise<void> => {
    ports.clock.advance(ms)
    await turn()
  }

  beforeEach(() => {
    expected.length = 0
    moving.clear()
    isUncertain = true
    endings = new RunEnds(store, ports, options)
  })

  it('is notified when the first caller waits, and when the last one does not any more', () => {
    const [stopA, stopB] = [watch(endings, 'a', hear), watch(endings, 'b', hear)]
    expect(expected).toEqual([true])
    stopA()
    expect(expected).toEqual([true])
    stopB()
    expect(expected).toEqual([true, false])
  })

  it('is asked soon, once, if other processes learn only now that ends are awaited', async () => {
    store.status.set('a', 'succeeded')
    watch(endings, 'a', hear)
    await pass(100)
    expect(heard).toEqual([endingOf('a')])
    isUncertain = false
    watch(endings, 'a', hear)
    await pass(100)
    expect(heard).toHaveLength(1)
  })

  it('is polled every second until all processes know, however long the poll: an announcement may be late or lost', async () => {
    endings = new RunEnds(store, ports, { ...options, everyMs: 600_000 })
    watch(endings, 'a', hear)
    store.status.set('a', 'running')
    await pass(100)
    for (let seconds = 0; seconds < 30; seconds += 1) await pass(1_000)
    expect(store.asked).toHaveLength(31)
    isUncertain = false
    await pass(1_000)
    await pass(599_999)
    expect(store.asked).toHaveLength(32)
    store.status.set('a', 'succeeded')
    await pass(1)
    expect(heard).toEqual([endingOf('a')])
  })

  it('is polled within a second after hints were lost, however long the poll', async () => {
    isUncertain = false
    endings = new RunEnds(store, ports, { ...options, everyMs: 600_000 })
    endings.hintsLost()
    expect(ports.clock.pending).toBe(0)
    watch(endings, 'a', hear)
    store.status.set('a', 'succeeded')
    endings.hintsLost()
    await pass(999)
    endings.hintsLost()
    expect(heard).toEqual([])
    await pass(1)
    expect(heard).toEqual([endingOf('a')])
  })

  it('is polled for every watched run after hints were lost, also if one look does not reach them all', async () => {
    isUncertain = false
    endings = new RunEnds(store, ports, { ...options, everyMs: 600_000 })
    const ids = Array.from({ length: 1_200 }, (_, index) => `run ${index}`)
    for (const id of ids) watch(endings, id, hear)
    await pass(1)
    for (const id of ids) store.status.set(id, 'succeeded')
    endings.hintsLost()
    for (let looks = 0; looks < 3; looks += 1) await pass(1_000)
    expect(heard).toHaveLength(1_200)
  })

  it('hears nothing of waits for runs that are moving here, until one of them leaves without having ended', async () => {
    moving.add('a').add('b')
    const stopA = watch(endings, 'a', hear)
    stopA()
    expect(expected).toEqual([])
    watch(endings, 'a', hear)
    endings.leftHere('b')
    expect(expected).toEqual([])
    moving.delete('a')
    endings.leftHere('a')
    expect(expected).toEqual([true])
    store.status.set('a', 'succeeded')
    await pass(100)
    expect(heard).toEqual([endingOf('a')])
    expect(expected).toEqual([true, true, false])
  })

  it('is notified at the next look of a run that moves here no more, also if its leaving went unnoticed', async () => {
    moving.add('a')
    store.status.set('a', 'running')
    watch(endings, 'a', hear)
    await pass(1_000)
    expect(expected).toEqual([])
    moving.delete('a')
    await pass(1_000)
    expect(expected).toEqual([true])
  })
})
