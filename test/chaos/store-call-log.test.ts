// What a worker asked of its store is written down when it is over: what it got, what failed, and nothing that is still open.

import { appendFileSync } from 'node:fs'
import { expect, it, vi } from 'vitest'
import { createMemoryStore } from '../../src/index.ts'
import { temporaryPaths } from '../unit/stores/sqlite/folder.ts'
import { StoreCallLog, readCalls } from './store-call-log.ts'

const newPath = temporaryPaths()

it('reports claims, heartbeats and failures in the order in which they were over', async () => {
  const path = newPath()
  let now = 0
  const log = new StoreCallLog({ path, worker: 'w1.1', tenure: () => 'w1.1/1', now: () => (now += 10) })
  const inner = createMemoryStore()
  const store = log.watch(inner)
  const { now: began } = await store.beat({ session: 's', leaseMs: 2_000 })
  await store.claim({ session: 's', selectors: [{ type: 'none', version: 1 }], limit: 3 })
  await store.claim({ session: 's', selectors: [], limit: 1, isolated: true })
  vi.spyOn(inner, 'rescue').mockRejectedValue(new Error('away'))
  const failures = { crashed: '', 'timed-out': '', expired: '' }
  await expect(store.rescue({ limit: 1, maxCrashes: 5, failures })).rejects.toThrow('away')
  await store.release([{ session: 's', token: 1, runId: 'r' }])
  vi.spyOn(inner, 'load').mockReturnValue(new Promise(() => undefined))
  void store.load([])
  await store.beat({ session: 's', leaseMs: 2_000, end: true })
  log.close()
  // Who is killed may be in the middle of a line.
  appendFileSync(path, '{"f":"claim","ha')
  const worker = 'w1.1'
  expect(readCalls(path)).toEqual([
    { f: 'beat', worker, from: 10, to: 20, ok: true, session: 's', tenure: 'w1.1/1', until: began + 2_000 },
    { f: 'claim', worker, from: 30, to: 40, ok: true, session: 's', runs: [], full: false },
    { f: 'apart', worker, from: 50, to: 60, ok: true, session: 's', runs: [], full: false },
    { f: 'rescue', worker, from: 70, to: 80, ok: false },
    { f: 'release', worker, from: 90, to: 100, ok: true, runs: ['r'] },
    expect.objectContaining({ f: 'beat', from: 120, to: 130, ok: true, session: 's', ends: true }),
  ])
})
