// The clock of a store may go back. A run that a message has woken is claimed all the same, also after a transition without a
// lease, whose writer has not read the mailbox.

import { describe, expect, it, onTestFinished } from 'vitest'
import { MemoryStore } from '../../../src/stores/memory/store.ts'
import { openSqliteStore } from '../../../src/stores/sqlite/index.ts'
import { createVirtualClock } from '../../../src/testing/index.ts'
import { createContractBench } from '../../../src/testing/contract/index.ts'
import { inMs } from '../../../src/testing/contract/drafts.ts'
import { decide, waitingRun } from '../../../src/testing/contract/unheld.ts'

type Clock = ReturnType<typeof createVirtualClock>

const stores = {
  memory: (clock: Clock) => Promise.resolve(new MemoryStore({ clock })),
  sqlite: async (clock: Clock) => {
    const store = await openSqliteStore({ path: ':memory:', driver: 'libsql', clock })
    onTestFinished(() => store.close())
    await store.migrate()
    return store
  },
}

describe.each(Object.entries(stores))('the %s store', (_name, open) => {
  it.each([null, inMs(60_000)])('keeps what a message has woken ready when its clock has gone back', async (due) => {
    const virtual = createVirtualClock()
    let back = 0
    const clock = { ...virtual, now: () => virtual.now() - back, monotonic: () => virtual.monotonic() }
    const store = await open(clock)
    const bench = createContractBench({ store, clock: { now: clock.now, advance: (ms) => virtual.advance(ms) } })
    const { id } = await waitingRun(bench)
    await bench.deliver(bench.message(id))
    back = 5
    await decide(bench, id, { due })
    await decide(bench, id, { due })
    expect((await bench.run(id)).readiness).toBe('ready')
    expect((await bench.claim()).runs.map((run) => run.id)).toEqual([id])
  })
})
