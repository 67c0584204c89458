// The command itself, in processes of its own: pipes that close, signals, and two workers on one file.

import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { shop } from './seed.ts'
import { sleepy, slow } from './workflows.ts'

const program = ['--import', 'tsx', 'src/cli/main.ts']

interface Child {
  readonly ended: Promise<{ readonly code: number | null; readonly signal: string | null }>
  readonly said: () => string
  readonly says: (text: string) => Promise<void>
  readonly kill: (signal: NodeJS.Signals) => void
}

function start(argv: readonly string[], env: Readonly<Record<string, string>>): Child {
  const child = spawn(process.execPath, [...program, ...argv], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  // By its id, and nothing that another test began.
  onTestFinished(() => void child.kill('SIGKILL'))
  let said = ''
  const waiting = new Set<() => void>()
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (text: Buffer) => {
      said += text.toString()
      for (const look of waiting) look()
    })
  }
  const ended = new Promise<{ code: number | null; signal: string | null }>((resolve) => {
    child.once('close', (code, signal) => resolve({ code, signal }))
  })
  return {
    ended,
    said: () => said,
    kill: (signal) => void child.kill(signal),
    says: (text) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          if (said.includes(text)) resolve()
        }
        waiting.add(look)
        look()
        void ended.then(() => reject(new Error(`It ended without saying "${text}":\n${said}`)))
      }),
  }
}

describe('the command in a process of its own', () => {
  it('is what the package installs, and says how it is run', () => {
    const { bin } = JSON.parse(readFileSync('package.json', 'utf8')) as { bin: Record<string, string> }
    expect(bin).toEqual({ holdfast: './dist/cli/main.js' })
    expect(readFileSync('src/cli/main.ts', 'utf8')).toMatch(/^#!\/usr\/bin\/env node\n/)
  })

  it('SW-A4 two workers share a file, and the one that Ctrl-C hits ends its step first', async () => {
    const { holdfast, env } = await shop()
    const workers = [start(['worker'], env), start(['worker'], env)]
    await Promise.all(workers.map((worker) => worker.says('Works until it is stopped')))
    const { id } = await holdfast.start(slow, 1_500)
    const busy = await Promise.race(workers.map((worker) => worker.says('slow step begins').then(() => worker)))
    busy.kill('SIGINT')
    expect(await busy.ended).toEqual({ code: 0, signal: null })
    expect(busy.said()).toMatch(/Stopping: .*\nStopped\. This worker holds no run\.\n$/)
    expect(await holdfast.run(id).result({ timeout: '10s' })).toBe('slept')
    expect(workers.filter((worker) => worker.said().includes('slow step begins'))).toHaveLength(1)
    const other = workers.find((worker) => worker !== busy)!
    other.kill('SIGTERM')
    expect(await other.ended).toEqual({ code: 0, signal: null })
  })

  it('a second Ctrl-C does not wait for a step that takes an hour', async () => {
    const { holdfast, env } = await shop()
    const worker = start(['worker'], env)
    await worker.says('Works until it is stopped')
    const { id } = await holdfast.start(slow, 3_600_000)
    await worker.says('slow step begins')
    worker.kill('SIGINT')
    await worker.says('Stopping')
    worker.kill('SIGINT')
    expect(await worker.ended).toEqual({ code: 130, signal: null })
    expect((await holdfast.get(id)).status).toBe('running')
  })

  it('watch leaves at Ctrl-C with 130, and the run goes on', async () => {
    const { holdfast, env } = await shop()
    const { id } = await holdfast.start(sleepy)
    const watch = start(['watch', id], env)
    await watch.says('started')
    watch.kill('SIGINT')
    expect(await watch.ended).toEqual({ code: 130, signal: null })
    expect((await holdfast.get(id)).status).toBe('pending')
  })
})
