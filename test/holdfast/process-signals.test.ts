// What a signal to the process does, in a process of its own.

import { spawn } from 'node:child_process'
import { expect, it, onTestFinished } from 'vitest'
import { childProgram } from '../support/child-program.ts'

interface Ended {
  readonly said: readonly string[]
  readonly code: number | null
  readonly signal: string | null
}

/** Starts the child, sends SIGTERM in the middle of its step, and says how it ended. */
async function terminated(how: string): Promise<Ended> {
  const program = await childProgram('test/holdfast/signalled-child.ts')
  const child = spawn(process.execPath, [program, how], { stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  let said = ''
  let isSent = false
  child.stdout.on('data', (text: Buffer) => {
    said += text.toString()
    if (!isSent && said.includes('working')) isSent = child.kill('SIGTERM')
  })
  return new Promise((resolve) => {
    child.once('close', (code, signal) => resolve({ said: said.trim().split('\n'), code, signal }))
  })
}

it('SIGTERM ends a process that does not listen to it, after its step', async () => {
  const { said, code, signal } = await terminated('none')
  expect(said).toEqual(['working', 'worked'])
  expect(signal ?? code).toBe(signal === null ? 143 : 'SIGTERM')
})

it.each(['on', 'once', 'later'])(
  'SIGTERM is not raised again over the head of an application that listens itself (%s): it leaves as it wants to',
  async (how) => {
    const { said, code } = await terminated(how)
    expect(said).toEqual(['working', 'heard', 'worked', 'leaving'])
    expect(code).toBe(7)
  },
)
