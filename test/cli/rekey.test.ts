// `holdfast rekey`: it says how far it is and what is left, and may be stopped.

import { describe, expect, it } from 'vitest'
import { before } from './builds/encrypted.ts'
import { shop } from './seed.ts'
import { begin } from './world.ts'
import { greet } from './workflows.ts'

const module = ['--workflows', 'test/cli/builds/encrypted.ts']

async function encryptedShop(count: number, removed = 0) {
  const made = await shop({ codec: before })
  await made.holdfast.work()
  const runs = await Promise.all(Array.from({ length: count }, () => made.holdfast.start(greet, 'Ada')))
  for (const run of runs) await run.result()
  for (const run of runs.slice(0, removed)) await made.holdfast.remove(run)
  await made.holdfast.close()
  return made
}

describe('holdfast rekey', () => {
  it('encrypts everything anew, and says what it did; a second time there is nothing to do', async () => {
    const { run } = await encryptedShop(3)
    const first = await run(['rekey', ...module])
    expect(first).toMatchObject({ code: 0 })
    expect(first.stdout).toBe('Looked at 3 runs, and encrypted 9 payloads of 3 runs anew.\n')
    const second = await run(['rekey', ...module, '--json'])
    expect(JSON.parse(second.stdout)).toEqual({
      runs: 3,
      rewritten: 0,
      payloads: 0,
      held: 0,
      unreadable: 0,
      unreadableRuns: [],
      missingKeys: [],
      next: null,
    })
  })

  it('stops when it is asked to, and says how to go on', async () => {
    const { run, env } = await encryptedShop(4)
    const stopped = begin(['rekey', ...module, '--rate', '1'], { env, terminal: 100 })
    await stopped.says('2 of 4 runs')
    stopped.signal('SIGINT')
    const { code, stdout } = await stopped.ended
    expect(code).toBe(130)
    const [, after] = /Continue with: holdfast rekey --after (\S+)/.exec(stdout) ?? []
    expect(after).toBeDefined()
    const rest = await run(['rekey', ...module, '--after', after ?? ''])
    expect(rest.stdout).toMatch(/^Looked at [12] runs?, and encrypted [36] payloads of [12] runs? anew\.\n$/)
  })

  it('counts removed runs in its total, because it looks at them, too', async () => {
    const { env } = await encryptedShop(3, 2)
    const rekeying = begin(['rekey', ...module, '--rate', '1'], { env, terminal: 100 })
    await rekeying.says(' of 3 runs')
    rekeying.signal('SIGINT')
    expect(await rekeying.ended).toMatchObject({ code: 130 })
  })

  it('refuses a codec without keys', async () => {
    const { run } = await encryptedShop(1)
    const { code, stderr } = await run(['rekey'])
    expect(code).toBe(2)
    expect(stderr).toContain('encryptingCodec()')
  })
})
