// `holdfast dev` with real processes: code that changes, that is broken and repaired, a worker that is killed, and Ctrl-C.

import { spawn } from 'node:child_process'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createHoldfast, workflow, type Holdfast } from '../../src/index.ts'
import { translatedPackage } from '../support/child-program.ts'
import { documents } from './seed.ts'
import { cli, folder } from './world.ts'

const quiet = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }

/** What is asked for here. It is performed by the code of the project. */
const asked = workflow('shop.order', (_ctx, ms: number) => ms)

interface Dev {
  readonly place: string
  readonly holdfast: Holdfast
  /** Writes a file of the project. */
  readonly write: (name: string, text: string) => void
  readonly said: () => string
  /** Settles when the text was said this often. */
  readonly says: (text: string | RegExp, times?: number) => Promise<void>
  readonly signal: (signal: NodeJS.Signals) => void
  readonly ended: Promise<number | null>
}

async function dev(
  files: Readonly<Record<string, string>>,
  more: readonly string[] = [],
  module = 'src/workflows.js',
): Promise<Dev> {
  const place = folder()
  const root = await translatedPackage()
  const write = (name: string, text: string): void => writeFileSync(join(place, name), text.replaceAll('ROOT', root))
  mkdirSync(join(place, 'src'))
  symlinkSync(resolve('node_modules'), join(place, 'node_modules'))
  write('package.json', '{ "type": "module" }')
  for (const [name, text] of Object.entries(files)) write(name, text)
  const store = `sqlite:${join(place, 'shop.db')}`
  const holdfast = await createHoldfast({ store, logger: quiet, workflows: [asked] })
  onTestFinished(() => holdfast.close())
  const argv = [join(root, 'src/cli/main.js'), 'dev', module, '--store', store, ...more]
  const child = spawn(process.execPath, argv, { cwd: place, stdio: ['ignore', 'pipe', 'pipe'] })
  let said = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text: Buffer) => (said += text.toString()))
  const ended = new Promise<number | null>((done) => void child.once('close', done))
  // Its worker ends when it is gone.
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await ended
  })
  const says = async (text: string | RegExp, times = 1): Promise<void> => {
    const count = (): number =>
      typeof text === 'string' ? said.split(text).length - 1 : [...said.matchAll(text)].length
    await expect.poll(() => (count() >= times ? 'said' : said), { timeout: 20_000, interval: 25 }).toBe('said')
  }
  return { place, holdfast, write, said: () => said, says, signal: (signal) => void child.kill(signal), ended }
}

const order = (body: string): string => `
  import { workflow } from 'ROOT/src/index.js'
  import { price } from './price.js'
  export const order = workflow('shop.order', async (ctx, ms) => { ${body} })`
const orders = {
  'src/workflows.js': order(`return ctx.step('charge', () => price)`),
  'src/price.js': 'export const price = 1',
}

/** The process of the worker: it says so itself. */
const pidOf = (one: Dev): number => Number([...one.said().matchAll(/pid (\d+)/g)].at(-1)?.[1])

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

describe('holdfast dev', () => {
  it('performs runs with the new code after a change in a file that the module imports', async () => {
    const one = await dev(orders)
    await one.says('Reloads when a source file in . changes. Ctrl-C stops it.')
    expect(one.said()).toContain('Serves 1 workflow from sqlite:')
    expect(one.said()).toContain('  shop.order v1\n')
    const before = await one.holdfast.start(asked, 0)
    expect(await before.result({ timeout: '20s' })).toBe(1)
    one.write('src/price.js', 'export const price = 2')
    await one.says('Reloaded after a change in src/price.js.\n')
    const after = await one.holdfast.start(asked, 0)
    expect(await after.result({ timeout: '20s' })).toBe(2)
    one.signal('SIGINT')
    expect(await one.ended).toBe(0)
    expect(one.said()).toMatch(/Stopping\. .*\nStopped\.\n$/)
    // Neither the store that it writes nor anything else has reloaded it once more.
    expect(one.said().split('Reloaded')).toHaveLength(2)
  })

  it('shows what is wrong with a module, at the start and after a change, and goes on when it is repaired', async () => {
    const one = await dev({ ...orders, 'src/price.js': 'export const price = ' })
    await one.says('The worker exited with code 2. It starts again when a file changes.\n')
    expect(one.said()).toContain('cannot be loaded')
    one.write('src/price.js', 'export const price = 1')
    await one.says('Reloaded after a change in src/price.js.\n')
    one.write('src/workflows.js', 'export const nothing = 1')
    await one.says('exports no workflow, but only nothing')
    await one.says('exited with code 2 after a change in src/workflows.js. It starts again when a file changes.\n')
    one.write('src/workflows.js', order('return price + 6'))
    await one.says('Reloaded after a change in src/workflows.js.\n')
    const run = await one.holdfast.start(asked, 0)
    expect(await run.result({ timeout: '20s' })).toBe(7)
  })

  it('a worker that is killed in the middle of a step costs a few seconds, not half a minute', async () => {
    const hang = `await ctx.step('hang', async () => {
      console.log('pid ' + process.pid)
      await new Promise((r) => setTimeout(r, ms))
    })
    return price`
    const one = await dev({ ...orders, 'src/workflows.js': order(hang) }, ['--lease', '1s'])
    await one.says('Reloads when')
    const run = await one.holdfast.start(asked, 3_000)
    await one.says(/pid \d+\n/g)
    process.kill(pidOf(one), 'SIGKILL')
    await one.says('The worker was ended by SIGKILL. It starts again.\n')
    await one.says('Recovered 1 run from a dead worker.')
    expect(await run.result({ timeout: '20s' })).toBe(1)
  })

  it('a step that takes long holds up no reload: it is given back, and done anew by the new code', async () => {
    const slow = (ms: number): string =>
      order(`return ctx.step('slow', async () => {
      console.log('slow begins')
      await new Promise((r) => setTimeout(r, ${ms}))
      return price
    })`)
    const one = await dev({ ...orders, 'src/workflows.js': slow(3_600_000) }, ['--shutdown-timeout', '200ms'])
    await one.says('Reloads when')
    const run = await one.holdfast.start(asked, 0)
    await one.says('slow begins')
    const at = Date.now()
    one.write('src/workflows.js', slow(1))
    expect(await run.result({ timeout: '20s' })).toBe(1)
    expect(Date.now() - at).toBeLessThan(10_000)
    expect(one.said()).toContain('Reloaded after a change in src/workflows.js.\n')
  })

  it('reads TypeScript by the tsx of the project, and reports to a program what happens', async () => {
    const one = await dev(
      {
        'src/workflows.ts': `
          import { workflow, type Context } from 'ROOT/src/index.js'
          enum Price { low = 5 }
          export const order = workflow('shop.order', (_ctx: Context, ms: number) => Price.low + ms)`,
      },
      ['--json'],
      'src/workflows.ts',
    )
    await one.says('"event":"working"')
    const run = await one.holdfast.start(asked, 1)
    expect(await run.result({ timeout: '20s' })).toBe(6)
    one.signal('SIGTERM')
    expect(await one.ended).toBe(0)
    expect(documents(one.said())).toEqual([
      { event: 'working', cause: { kind: 'begin' }, workflows: [{ type: 'shop.order', version: 1 }] },
      { event: 'stopping' },
      { event: 'stopped' },
    ])
  })

  it('leaves no worker behind when it is killed itself', async () => {
    const one = await dev({ ...orders, 'src/price.js': `console.log('pid ' + process.pid); export const price = 1` })
    await one.says('Reloads when')
    const pid = pidOf(one)
    expect(isAlive(pid)).toBe(true)
    one.signal('SIGKILL')
    await expect.poll(() => isAlive(pid), { timeout: 10_000 }).toBe(false)
  })

  it('is refused without a module that is there', async () => {
    expect((await cli(['dev'])).stderr).toContain('Which workflows?')
    const missing = await cli(['dev', './no-such.js', '--store', 'memory:'])
    expect([missing.code, missing.stderr]).toEqual([2, expect.stringContaining('There is no module "./no-such.js"')])
    expect((await cli(['dev', resolve('test/cli/workflows.ts'), '--lease', 'soon'])).code).toBe(2)
  })
})
