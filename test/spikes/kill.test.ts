// Real processes and a real SIGKILL: one dies while it performs a step of a graph, and another one goes on with it.

import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { createHoldfast } from 'holdfast'
import { openSqliteStore } from 'holdfast/sqlite'
import { jsonCodec } from '../../src/core/payload/codec.ts'
import { Payloads } from '../../src/core/payload/payload.ts'
import { createSeededRandom } from '../../src/testing/seeded-random.ts'
import { systemClock } from '../../src/system.ts'
import { until } from '../support/until.ts'
import { readExecutions } from '../chaos/step-log.ts'
import { childProgram } from '../support/child-program.ts'
import { flowWorld } from './flow.ts'
import { leave, type Access } from './leave.ts'
import type { Task } from './spike-child.ts'
import { entriesOf } from './world.ts'

async function child(task: Task): Promise<ChildProcess> {
  const program = await childProgram('test/spikes/spike-child.ts')
  const made = spawn(process.execPath, [program, JSON.stringify(task)], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  onTestFinished(() => void made.kill('SIGKILL'))
  await once(made, 'message')
  return made
}

it('a step that a SIGKILL cuts off is performed again elsewhere, with its key, and nothing is lost', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-kill-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'runs.db')
  const log = `${path}.log`
  const store = await openSqliteStore({ path })
  onTestFinished(() => store.close())
  const client = await createHoldfast({ store, workflows: [flowWorld().flow] })
  onTestFinished(() => client.close())
  const ports = { clock: systemClock, random: createSeededRandom(1) }
  const access: Access = { store, payloads: new Payloads(jsonCodec()), ports }
  const [victim, heir] = await Promise.all([child({ path, log, hangs: true }), child({ path, log, hangs: false })])

  const flow = await client.start('flow', 9)
  victim.send('work')
  await until('it is being performed', () => readExecutions(log).length === 1)
  victim.kill('SIGKILL')
  await once(victim, 'exit')
  await leave(access, { runId: flow.id, id: 'resume', name: 'reserve' }, 'reserved')
  heir.send('work')
  expect(await flow.result({ timeout: '15s' })).toMatchObject({ charge: 9, reserve: null })

  const times = readExecutions(log)
  expect(times.map(({ pid, ended }) => [pid, ended !== null])).toEqual([
    [victim.pid, false],
    [heir.pid, true],
  ])
  expect(new Set(times.map(({ run }) => run)).size).toBe(1)
  const kinds = (await entriesOf(store, flow)).map(({ kind }) => kind)
  expect(kinds.filter((kind) => kind === 'crashed')).toHaveLength(1)
  expect(kinds.at(-1)).toBe('succeeded')
})
