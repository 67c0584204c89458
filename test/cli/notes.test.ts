// What commands write beside their answer: lines of a body's log, and the warning about the rights of a file.

import { chmodSync } from 'node:fs'
import { expect, it } from 'vitest'
import type { Io, Output } from '../../src/cli/io.ts'
import { Printer } from '../../src/cli/output/printer.ts'
import { sleepy } from './workflows.ts'
import { shop } from './seed.ts'

it('a line of ctx.log is printed with its data and its run', async () => {
  let text = ''
  const stderr: Output = { isTerminal: false, columns: 80, write: async (more) => void (text += more) }
  const io = { stdout: stderr, stderr, env: {} } as unknown as Io
  const logger = new Printer(io, { isJson: false, isVerbose: false }).logger()
  logger.info('turn', { run: 'r-1', type: 'agent', data: { said: 'hello' } })
  logger.warn('Run r-1 of "agent" failed: no luck', { run: 'r-1', type: 'agent' })
  expect(text).toBe('info: turn {"said":"hello"} (run r-1 of "agent")\nwarn: Run r-1 of "agent" failed: no luck\n')
})

it('a file that others may read is reported by the doctor, and not with every look at a run', async () => {
  const { holdfast, store, run } = await shop()
  await holdfast.start(sleepy)
  chmodSync(store.slice('sqlite:'.length), 0o644)
  expect((await run(['runs'])).stderr).toBe('')
  expect((await run(['pause', '--all', '--yes'])).stderr).toBe('')
  expect((await run(['doctor'])).stderr).toContain('can be opened by every user of this machine')
})

it('a payload of one word that is not JSON is shown as the text that was probably meant', async () => {
  const { run } = await shop()
  const { code, stderr } = await run(['signal', '019a8b6e-7c1d-7000-8f3a-5b2c9d4e6f70', 'approved', 'yes'])
  expect(code).toBe(2)
  expect(stderr).toContain(`a shell needs single ones around it all: '"yes"'.`)
})
