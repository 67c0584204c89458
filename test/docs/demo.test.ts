// `npm run demo` is the first thing that anyone sees of this project.

import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'

const folder = mkdtempSync(join(tmpdir(), 'holdfast-docs-'))
const command = ['--import', 'tsx', 'examples/demo.ts']
const env = { ...process.env, TMPDIR: folder, TMP: folder, TEMP: folder }

afterAll(() => rmSync(folder, { recursive: true }))

/** What the demo left in the folder for temporary files; the loader's own cache does not count. */
const leftovers = () => readdirSync(folder).filter((name) => name.startsWith('holdfast-'))

describe('the demo', { timeout: 60_000 }, () => {
  it('kills a process in the middle of a step, goes on at that step, and leaves nothing behind', () => {
    const { stdout, stderr, status } = spawnSync(process.execPath, command, { env, encoding: 'utf8' })
    expect({ stderr, status }).toEqual({ stderr: '', status: 0 })
    const [before = '', after = ''] = stdout.split('kill -9')
    expect(before.match(/asks the bank/g)).toHaveLength(2)
    expect(before).toContain('begins to pack')
    expect(before).not.toContain('the parcel is closed')
    expect(after).not.toContain('asks the bank')
    expect(after).toMatch(/begins to pack[^]*the parcel is closed[^]*crashed +╳+ [^]*succeeded +●/)
    expect(stdout).not.toContain('\u001B')
    expect(leftovers()).toEqual([])
  })

  it('leaves nothing behind when it is interrupted, either', async () => {
    const demo = spawn(process.execPath, command, { env, stdio: ['ignore', 'pipe', 'ignore'] })
    let pid = 0
    for await (const text of demo.stdout) {
      const [, worker] = /worker (\d+) +works/.exec(String(text)) ?? []
      if (worker === undefined) continue
      pid = Number(worker)
      demo.kill('SIGINT')
    }
    expect(demo.exitCode ?? demo.signalCode).not.toBe(0)
    expect(leftovers()).toEqual([])
    // A dead process keeps its number until the process that inherits it takes notice.
    await expect.poll(() => isAlive(pid), { timeout: 10_000 }).toBe(false)
  })
})

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
