// Real processes and a real SIGKILL: one dies while it performs an effect of a decider and a step of a graph, and another
// one goes on with both.

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
import { enqueue, execute, leave, type Access } from './execute.ts'
import { flowWorld } from './flow.ts'
import { orderWorld } from './order.ts'
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

it('an effect and a step that a SIGKILL cuts off are performed again elsewhere, with their keys, and nothing is lost', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-kill-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'runs.db')
  const log = `${path}.log`
  const store = await openSqliteStore({ path })
  onTestFinished(() => store.close())
  const client = await createHoldfast({ store, workflows: [orderWorld().order, flowWorld().flow] })
  onTestFinished(() => client.close())
  const ports = { clock: systemClock, random: createSeededRandom(1) }
  const access: Access = { store, payloads: new Payloads(jsonCodec()), ports }
  const [victim, heir] = await Promise.all([child({ path, log, hangs: true }), child({ path, log, hangs: false })])

  const order = await client.start('order', { type: 'Create', to: 'ada' })
  const flow = await client.start('flow', 9)
  victim.send('work')
  await until('both are being performed', () => readExecutions(log).length === 2)
  await enqueue(access, order.id, { type: 'Note', text: 'before' }, 'before')
  victim.kill('SIGKILL')
  await once(victim, 'exit')
  await leave(access, { runId: flow.id, id: 'resume', name: 'reserve' }, 'reserved')
  heir.send('work')

  const paid = await execute(access, order.id, { type: 'Pay', amount: 5 }, 'pay')
  expect(paid).toMatchObject({ outcome: 'accepted', events: [{ type: 'Paid', amount: 5 }] })
  expect(await order.result({ timeout: '15s' })).toEqual({ status: 'shipped', isConfirmed: true, notes: ['before'] })
  expect(await flow.result({ timeout: '15s' })).toMatchObject({ charge: 9, reserve: null })

  for (const step of ['sendMail', 'charge']) {
    const times = readExecutions(log).filter((one) => one.step === step)
    expect(times.map(({ pid, ended }) => [pid, ended !== null])).toEqual([
      [victim.pid, false],
      [heir.pid, true],
    ])
    expect(new Set(times.map(({ run }) => run)).size).toBe(1)
  }
  for (const run of [order, flow]) {
    const kinds = (await entriesOf(store, run)).map(({ kind }) => kind)
    expect(kinds.filter((kind) => kind === 'crashed')).toHaveLength(1)
    expect(kinds.at(-1)).toBe('succeeded')
  }
  const inputs = (await entriesOf(store, order)).filter(({ kind }) => kind === 'input').map(({ name }) => name ?? '')
  expect(inputs.toSorted()).toEqual(['Create', 'MailSent', 'Note', 'Pay', 'Shipped'])
})
