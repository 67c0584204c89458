// Processes that share a SQLite file and die there: at each commit of a whole run once before it reached the file, and once
// before its answer came back. The process that goes on finds everything that was committed, and nothing else.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Definition } from '../../src/core/definition/definition.ts'
import type { Entry } from '../../src/core/model/entry.ts'
import type { Store } from '../../src/store.ts'
import { machine } from '../holdfast/processes.ts'
import { changed } from '../holdfast/virtual-world.ts'
import { leave, type Access } from './leave.ts'
import { flowWorld } from './flow.ts'
import { accessTo, entriesOf } from './world.ts'

interface Cut {
  /** The commit at which the process dies, from 1. */
  readonly commit: number
  readonly when: 'before' | 'after'
}

interface Survived {
  readonly wasHit: boolean
  readonly entries: readonly Entry[]
  readonly output: unknown
}

interface Drive {
  readonly definition: Definition
  readonly input: unknown
  /** What others do meanwhile. Settles when they have done it. */
  readonly others: (access: Access, runId: string) => Promise<unknown>
}

const never = new Promise<never>(() => undefined)

/** Lets a process die at a commit and another one go on, until the run has ended. */
async function survive({ commit, when }: Cut, { definition, input, others }: Drive): Promise<Survived> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-spike-'))
  const { begin, after, until, clock } = machine(join(folder, 'runs.db'))
  let commits = 0
  let isOver = false
  const cutting = (store: Store): Store =>
    changed(store, {
      commit: async (transitions) => {
        commits += 1
        if (commits < commit) return store.commit(transitions)
        if (commits === commit && when === 'after') await store.commit(transitions)
        return never
      },
    })
  const client = await begin([definition])
  const first = await begin([definition], cutting)
  await after(first.holdfast.work({ signals: false }))
  const run = await client.holdfast.start(definition.type, input)
  const done = others(accessTo(client.store, clock), run.id).then(() => run.result())
  void done.then(() => (isOver = true))
  await until(() => commits >= commit || isOver)
  const wasHit = !isOver
  if (wasHit) {
    await first.crash()
    const second = await begin([definition])
    await after(second.holdfast.work({ signals: false }))
  }
  const output = await after(done)
  const entries = await entriesOf(client.store, run)
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return { wasHit, entries, output }
}

/** Every commit that a run needs, one after the other, until it ends before the next. Says how many there were. */
async function everywhere(when: Cut['when'], check: (cut: Cut) => Promise<Survived>): Promise<number> {
  for (let commit = 1; ; commit += 1) if (!(await check({ commit, when })).wasHit) return commit - 1
}

const named = (entries: readonly Entry[], kind: Entry['kind']): readonly string[] =>
  entries.filter((entry) => entry.kind === kind).map(({ name }) => name ?? '')

function expectOneKeyEach(performed: readonly { readonly key: string }[], keys: number): void {
  expect(new Set(performed.map(({ key }) => key)).size).toBe(keys)
}

describe.each(['before', 'after'] as const)('a process that dies %s a commit', (when) => {
  it('of a graph loses no result and no message, and steps keep their key', async () => {
    const commits = await everywhere(when, async (cut) => {
      const { flow, performed } = flowWorld()
      const survived = await survive(cut, {
        definition: flow,
        input: 9,
        others: (access, runId) => leave(access, { runId, id: 'resume', name: 'reserve' }, 'reserved'),
      })
      const { entries, output } = survived
      expect(output).toMatchObject({ charge: 9, reserve: null })
      expect(named(entries, 'step-succeeded').toSorted()).toEqual(['charge', 'check', 'reserve', 'ship'])
      expect(named(entries, 'woken')).toEqual(['reserve'])
      expectOneKeyEach(performed, 4)
      return survived
    })
    expect(commits).toBeGreaterThanOrEqual(3)
  })
})
