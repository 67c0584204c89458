// Lists that may be as long as there are runs: as the arguments of one call they would not fit on the stack.

import { expect, it, onTestFinished } from 'vitest'
import { createHoldfast, workflow, type Operation } from 'holdfast'
import type { Hint } from '../../../src/store.ts'
import { Hints } from '../../../src/stores/postgres/hints/hints.ts'
import { Notifier } from '../../../src/stores/postgres/hints/notifier.ts'
import { openSqliteStore } from '../../../src/stores/sqlite/index.ts'
import { silentLogger } from '../../../src/testing/logger.ts'
import { manualPorts, turn } from '../../support/manual-ports.ts'

const many = 200_000

const hints = (): Hint[] => Array.from({ length: many }, (): Hint => ({ kind: 'ready', type: 'a' }))

it(`${many} hints of one commit are given to those who listen here`, async () => {
  const heard = new Hints({
    channel: 'c',
    self: 'me',
    ports: manualPorts(),
    connect: null,
    send: async () => undefined,
    key: async () => 'key',
  })
  let count = 0
  await heard.listen(() => (count += 1))
  heard.committed(hints())
  await turn()
  expect(count).toBe(many)
})

it(`${many} hints of one commit are sent to other processes`, async () => {
  const ports = manualPorts()
  let sent = 0
  const notifier = new Notifier(async () => void (sent += 1), 'me', ports)
  notifier.notify(hints())
  ports.clock.advance(10)
  await turn()
  expect(sent).toBe(1)
})

it(`${many} hints of one call of SQLite are given to those who listen`, async () => {
  const store = await openSqliteStore({ path: ':memory:' })
  onTestFinished(() => store.close())
  await store.migrate()
  let count = 0
  await store.listen(() => (count += 1))
  ;(store as unknown as { hint(hints: readonly Hint[]): void }).hint(hints())
  await turn()
  expect(count).toBe(many)
})

it(`a batch of ${many} operations is answered, whatever they are`, { timeout: 60_000 }, async () => {
  const plain = workflow('plain', async () => 1)
  const limits = { batch: 2 * many }
  const holdfast = await createHoldfast({ store: 'memory:', workflows: [plain], logger: silentLogger, limits })
  onTestFinished(() => holdfast.close())
  const nobody: Operation = { kind: 'signal', to: 'nobody', name: 'go' }
  const unknown = { kind: 'start', workflow: 'unknown' } as Operation
  const operations = [...Array.from({ length: many }, () => nobody), ...Array.from({ length: many }, () => unknown)]
  const answers = await holdfast.submitBatch(operations)
  expect(answers).toHaveLength(2 * many)
})
