// A forgotten worker must not be silence, and a worker elsewhere must not be noise.

import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { workflow } from 'holdfast'
import { translatedPackage } from '../support/child-program.ts'
import { systemClock } from '../../src/system.ts'
import { orderOf } from './deciders/order.ts'
import { until } from './gate.ts'
import { keepLines } from './open.ts'
import { ownTables } from './own-tables.ts'
import { virtualWorld } from './virtual-world.ts'

const greet = workflow('greet', (_ctx, name: string) => name)
const other = workflow('other', (_ctx, name: string) => name)

function world() {
  const { clock, open, ...rest } = virtualWorld()
  let timers = 0
  const background = (ms: number, wake: () => void): (() => void) => {
    // The store is watched over, too, and that is another timer.
    if (ms === 5_000) timers += 1
    return clock.after(ms, wake)
  }
  const logger = keepLines()
  const ports = { clock: { ...clock, background } }
  const said = () => logger.lines.filter(({ level }) => level === 'warn').map(({ message }) => message)
  return { clock, open, ...rest, ports, logger, said, timers: () => timers }
}

describe('a run that nobody begins', () => {
  it('because work() was forgotten is logged after 5 s, once for each type, with one timer for ten thousand starts', async () => {
    const { clock, open, ports, logger, said, timers } = world()
    const holdfast = await open({ workflows: [greet, other], ports, logger })
    const starts = Array.from({ length: 10_000 }, () => ({ workflow: greet, input: 'Ada' }))
    await holdfast.startMany(starts)
    await holdfast.start(other, 'Ada')
    expect(timers()).toBe(2)
    await clock.advance('4900 ms')
    expect(said()).toEqual([])
    await clock.advance('100 ms')
    expect(said()).toEqual([
      expect.stringMatching(/"greet" wait.*no worker has begun run.*no worker.*holdfast\.work\(\)/),
      expect.stringContaining('"other" wait'),
    ])
    await holdfast.start(greet, 'Ada')
    await clock.advance('1h')
    expect(said()).toHaveLength(2)
  })

  it('is reported if it is an effect or a timer of a decider, by any process that decides', async () => {
    const { clock, open, ports, logger, said } = world()
    const order = orderOf()
    const holdfast = await open({ workflows: [order], ports, logger })
    const create = { type: 'Create', orderId: '1', to: 'ada' } as const
    await holdfast.execute(order, create)
    await holdfast.execute(order, { type: 'Note', orderId: '1', text: 'a' })
    await clock.advance('5s')
    expect(said()).toEqual([
      expect.stringMatching(/Runs of "order\/sendMail" wait.*that has "order" among its workflows/),
    ])
    await clock.advance('2h')
    expect(said()).toEqual([expect.anything(), expect.stringContaining('Runs of "order" wait')])
  })

  it('is not reported if a worker performs the effects of a decider', async () => {
    const { clock, open, ports, logger, said } = world()
    const order = orderOf()
    const holdfast = await open({ workflows: [order], ports, logger })
    await (await open({ workflows: [order] })).work()
    await holdfast.execute(order, { type: 'Create', orderId: '1', to: 'ada' })
    await clock.advance('2h')
    expect(await holdfast.state(order, '1')).toMatchObject({ status: 'expired', isConfirmed: true })
    expect(said()).toEqual([])
  })

  it('is reported if it was started with a message', async () => {
    const { clock, open, ports, logger, said } = world()
    const holdfast = await open({ workflows: [greet, other], ports, logger })
    await holdfast.sendOrStart(other, 'ada', 'hello', 1, 'Ada')
    await clock.advance('5s')
    expect(said()).toEqual([expect.stringContaining('"other" wait')])
  })

  it('is reported if it was started in a transaction that was committed, and not if that was rolled back', async () => {
    const { db, open } = await ownTables()
    const logger = keepLines()
    const looks: (() => void)[] = []
    const background = (ms: number, wake: () => void): (() => void) => {
      if (ms === 5_000) looks.push(wake)
      return () => undefined
    }
    const holdfast = await open({ workflows: [greet, other], logger, ports: { clock: { ...systemClock, background } } })
    for (const [flow, end] of [
      [greet, 'rollback'],
      [other, 'commit'],
    ] as const) {
      db.exec('begin immediate')
      await holdfast.using(db).start(flow, 'Ada')
      db.exec(end)
    }
    expect(looks).toHaveLength(2)
    for (const look of looks) look()
    await until(() => logger.lines.length > 0)
    expect(logger.lines.map(({ message }) => message)).toEqual([expect.stringContaining('"other" wait')])
  })

  it('is reported 5 s after it was due, if its start was delayed, and hides no run of its type that is due before', async () => {
    const { clock, open, ports, logger, said } = world()
    const holdfast = await open({ workflows: [greet, other], ports, logger })
    await holdfast.start(greet, 'Ada', { delay: '1s' })
    await holdfast.start(other, 'Ada', { runAt: new Date(clock.now() + 86_400_000) })
    await clock.advance('5900 ms')
    expect(said()).toEqual([])
    await clock.advance('100 ms')
    expect(said()).toEqual([expect.stringContaining('"greet" wait')])
    await holdfast.start(other, 'Ada')
    await clock.advance('5s')
    expect(said()).toEqual([expect.anything(), expect.stringContaining('"other" wait')])
  })

  it('because it is not due, or which another process performs, is no news', async () => {
    const { clock, open, ports, logger, said } = world()
    const holdfast = await open({ workflows: [greet, other], ports, logger })
    const elsewhere = await open({ workflows: [greet] })
    await elsewhere.work()
    await holdfast.start(other, 'Ada', { delay: '1 day' })
    const removed = await holdfast.start(other, 'Ada')
    await holdfast.remove(removed)
    for (let turn = 0; turn < 3; turn += 1) {
      await holdfast.start(greet, 'Ada')
      await clock.advance('1 min')
    }
    expect(said()).toEqual([])
  })

  it('is reported by the process that started it, though the worker of another process is up, if that lacks its type or version', async () => {
    const { clock, open, ports, logger, said, after } = world()
    const elsewhere = await open({ workflows: [greet] })
    await elsewhere.work()
    const newer = workflow('greet', { version: 2 }, (_ctx, name: string) => name)
    const holdfast = await open({ workflows: [newer, other], ports, logger })
    await holdfast.start(other, 'Ada')
    const run = await holdfast.start(newer, 'Ada')
    await clock.advance('5s')
    expect(said()).toEqual([
      expect.stringContaining('"other" wait'),
      expect.stringMatching(/"greet" wait.*If one is up, it is busy, or lacks version 2/),
    ])
    const later = await open({ workflows: [newer, other] })
    await later.work()
    expect(await after(run.result())).toBe('Ada')
    expect(said()).toHaveLength(2)
  })

  it('here is no news where a worker is only busy', async () => {
    const { clock, open, ports, logger, said, pause } = world()
    const slow = workflow('slow', (ctx) => ctx.step('work', () => pause(60_000)))
    const holdfast = await open({ workflows: [slow], ports, logger })
    await holdfast.work({ concurrency: 1 })
    await holdfast.start(slow)
    await holdfast.start(slow)
    await clock.advance('30 s')
    expect(said()).toEqual([])
  })

  it('because it went on as a workflow that no worker has is logged after 5 s, and named to the caller that waits for its result', async () => {
    const { clock, open, ports, logger, said, after } = world()
    const first = workflow('first', (ctx) => ctx.continueAs(greet, 'Ada'))
    const holdfast = await open({ workflows: [first], ports, logger })
    await holdfast.work()
    const run = await holdfast.start(first)
    await clock.advance('5s')
    expect(said()).toEqual([expect.stringMatching(/"greet" wait.*no worker for them.*lacks version 1/)])
    const error: unknown = await after(run.result({ timeout: '1s' }).catch((thrown: unknown) => thrown))
    expect(error).toMatchObject({
      message: expect.stringMatching(
        /no worker has gone on with it since it was due.*"greet", version 1, is up/,
      ) as string,
    })
  })

  it('says so to who waits for its result, if it slept while its workflow was taken away', async () => {
    const { clock, open, ports, after } = world()
    const nap = workflow('nap', async (ctx) => void (await ctx.sleep('1 min')))
    const before = await open({ workflows: [nap], ports })
    await before.work()
    const { id } = await before.start(nap)
    await clock.advance('1s')
    await after(before.close())
    const later = await open({ workflows: [greet], ports })
    await later.work()
    await clock.advance('2 min')
    const error: unknown = await after(
      later
        .run(id)
        .result({ timeout: '1s' })
        .catch((thrown: unknown) => thrown),
    )
    expect(error).toMatchObject({
      details: { status: 'waiting', begun: false },
      message: expect.stringMatching(/gone on with it since it was due.*"nap", version 1/) as string,
    })
  })

  it('says so to who gave up waiting for its result', async () => {
    const { open, ports, after } = world()
    const holdfast = await open({ workflows: [greet], ports })
    const run = await holdfast.start(greet, 'Ada')
    const error: unknown = await after(run.result({ timeout: '1s' }).catch((thrown: unknown) => thrown))
    expect(error).toMatchObject({
      code: 'RESULT_TIMEOUT',
      message: expect.stringMatching(
        /it is pending, and no worker has begun it\. This process has no worker.*"greet"/,
      ) as string,
      details: { status: 'pending', begun: false },
    })
    const sleeper = workflow('sleeper', async (ctx) => void (await ctx.sleep('1 day')))
    const working = await open({ workflows: [sleeper] })
    await working.work()
    const begun = await working.start(sleeper)
    const late: unknown = await after(begun.result({ timeout: '1s' }).catch((thrown: unknown) => thrown))
    expect(late).toMatchObject({ details: { status: 'waiting', begun: true } })
    expect((late as Error).message).not.toContain('nobody')
  })
})

it('a process that only starts runs ends by itself: the look at them does not keep it alive', async () => {
  const program = `
    const { createHoldfast, workflow } = await import(process.argv[1])
    const greet = workflow('greet', (_ctx, name) => name)
    const holdfast = await createHoldfast({ store: 'memory:', workflows: [greet] })
    await holdfast.start(greet, 'Ada')
    const began = performance.now()
    process.on('exit', () => console.log(performance.now() - began < 4_000 ? 'at once' : 'late'))`
  const index = join(await translatedPackage(), 'src/index.js')
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program, index])
  onTestFinished(() => void child.kill('SIGKILL'))
  let said = ''
  child.stdout.on('data', (text: Buffer) => void (said += text.toString()))
  child.stderr.on('data', (text: Buffer) => void (said += text.toString()))
  await new Promise((resolve) => child.once('close', resolve))
  expect(said.trim()).toBe('at once')
})
