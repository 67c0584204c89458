import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, vi } from 'vitest'
import type { Offload } from '../../../../src/core/payload/payload.ts'
import { placeIn } from '../../../../src/functions/replay/call-site.ts'
import type { Body } from '../../../../src/functions/api/workflow.ts'
import { workflow } from '../../../../src/functions/api/workflow.ts'
import { FunctionRig, type Held } from '../../../support/function-rig.ts'

const type = 'test.drift'

const before: Body<unknown, unknown> = async (ctx) => {
  const a = await ctx.step('a', () => 'A')
  const b = await ctx.step('b', () => 'B')
  await ctx.sleep('1 day')
  const c = await ctx.step('c', () => 'C')
  return [a, b, c]
}

/** Runs `before` until it sleeps, then lets other code take the run over. */
async function deployed(after: Body<unknown, unknown>): Promise<{ readonly rig: FunctionRig; readonly held: Held }> {
  const first = new FunctionRig()
  const asleep = await (await first.start(workflow(type, before))).begin()
  const rig = new FunctionRig()
  const held = await (await rig.adopt(workflow(type, after), await asleep.journal())).begin()
  return { rig, held }
}

async function pausedMessage(rig: FunctionRig, held: Held): Promise<string> {
  await rig.pass(5_000)
  const { status, readiness } = await rig.run(held.runId)
  expect({ status, readiness, departure: held.departure?.kind }).toEqual({
    status: 'paused',
    readiness: 'idle',
    departure: 'released',
  })
  const last = (await held.journal()).at(-1)
  if (last?.kind !== 'paused') throw new Error('The last entry does not say why the run is paused')
  if (last.meta.reason !== 'drift') throw new Error('The run is paused for another reason')
  return last.meta.message
}

describe('code that changed under a live run', () => {
  it('a renamed step pauses the run and says what was recorded and what was asked for', async () => {
    const seen: unknown[] = []
    const { rig, held } = await deployed(async (ctx) => {
      seen.push(await ctx.step('a', () => 'again'))
      seen.push(await ctx.step('renamed', () => 'new'))
    })
    const message = await pausedMessage(rig, held)
    expect(message).toContain(
      '\n- entry 3 of the journal: step-succeeded "b"\n+ the code asks for: step "renamed", at ',
    )
    expect(new Set(seen)).toEqual(new Set(['A']))
    expect((await held.story()).slice(0, 4)).toEqual([
      'started',
      'step-succeeded a',
      'step-succeeded b',
      'waiting sleep',
    ])
  })

  it('a removed step pauses the run', async () => {
    const { rig, held } = await deployed(async (ctx) => {
      await ctx.step('a', () => 'again')
      await ctx.sleep('1 day')
    })
    expect(await pausedMessage(rig, held)).toMatch(/step-succeeded "b"\n.*asks for: wait "sleep"/)
  })

  it('a body that ends without what was recorded pauses at once', async () => {
    const { rig, held } = await deployed(async (ctx) => ctx.step('a', () => 'again'))
    const { status } = await rig.run(held.runId)
    expect(status).toBe('paused')
    expect(await pausedMessage(rig, held)).toContain('+ the code ends without it')
  })

  it('reordered steps pause the run and run nothing again', async () => {
    const ran: string[] = []
    const { rig, held } = await deployed(async (ctx) => {
      await ctx.step('b', () => void ran.push('b'))
      await ctx.step('a', () => void ran.push('a'))
    })
    const message = await pausedMessage(rig, held)
    expect(message).toMatch(/step-succeeded "a"\n.*asks for: step "b"/)
    expect(message).toContain('awaits something outside of its steps')
    expect(ran).toEqual([])
  })

  it('a step added in the middle pauses the run and binds no wrong result', async () => {
    const seen: unknown[] = []
    const { rig, held } = await deployed(async (ctx) => {
      seen.push(await ctx.step('a', () => 'again'))
      seen.push(await ctx.step('added', () => 'X'))
      seen.push(await ctx.step('b', () => 'again'))
    })
    expect(await pausedMessage(rig, held)).toContain('asks for: step "added"')
    expect(new Set(seen)).toEqual(new Set(['A']))
  })

  it('a step that became a sleep pauses the run', async () => {
    const { rig, held } = await deployed(async (ctx) => {
      await ctx.step('a', () => 'again')
      await ctx.sleep('2 days')
      await ctx.sleep('1 day')
    })
    expect(await pausedMessage(rig, held)).toContain('asks for: wait "sleep"')
  })

  it('reordered steps that run side by side are no drift', async () => {
    const { rig, held } = await deployed(async (ctx) => {
      const [b, a] = await Promise.all([ctx.step('b', () => 'again'), ctx.step('a', () => 'again')])
      await ctx.sleep('1 day')
      return [a, b]
    })
    await held.goOn()
    expect(await held.outcome()).toEqual({ status: 'succeeded', value: ['A', 'B'] })
    expect(rig.lines).toEqual([])
  })

  it('a step added at the end, and changes after the last entry, are fine', async () => {
    const { held } = await deployed(async (ctx) => {
      const a = await ctx.step('a', () => 'again')
      const b = await ctx.step('b', () => 'again')
      await ctx.sleep('1 day')
      const renamed = await ctx.step('renamed', () => 'R')
      const added = await ctx.step('added', () => 'X')
      return [a, b, renamed, added]
    })
    await held.goOn()
    expect(await held.outcome()).toEqual({ status: 'succeeded', value: ['A', 'B', 'R', 'X'] })
  })

  it('WC-A8 lines and values that come or go are no drift', async () => {
    const noisy: Body<unknown, unknown> = async (ctx) => {
      ctx.log('begins')
      const id = ctx.uuid()
      ctx.progress(0.1)
      await ctx.step('a', () => 'A')
      ctx.now()
      await ctx.sleep('1 day')
      ctx.random()
      return id
    }
    const silent: Body<unknown, unknown> = async (ctx) => {
      await ctx.step('a', () => 'again')
      await ctx.sleep('1 day')
      return 'silent'
    }
    for (const [first, second] of [
      [noisy, silent],
      [silent, noisy],
    ] as const) {
      const rig = new FunctionRig()
      const asleep = await (await rig.start(workflow(type, first))).begin()
      const other = new FunctionRig()
      const held = await (await other.adopt(workflow(type, second), await asleep.journal())).begin()
      await held.goOn()
      expect((await other.run(held.runId)).status).toBe('succeeded')
    }
  })

  it('a body that is slow to ask for what was recorded is given time, and reported', async () => {
    let slow: () => void = () => undefined
    const { rig, held } = await deployed(async (ctx) => {
      const a = ctx.step('a', () => 'again')
      await a
      const b = (async () => {
        await new Promise<void>((resolve) => (slow = resolve))
        return ctx.step('b', () => 'again')
      })()
      await Promise.all([b, ctx.sleep('1 day')])
    })
    await rig.pass(4_900)
    expect(rig.lines.filter(({ level }) => level === 'warn').map(({ message }) => message)).toEqual([
      expect.stringMatching(/has not asked for entry \d+ \(step-succeeded "b"\) for 1 s\..*do that inside a step/),
    ])
    slow()
    await rig.quiet()
    await rig.pass(5_000)
    expect((await rig.run(held.runId)).status).toBe('waiting')
  })

  it('the place of every call that was found is reported: file, line and column', async () => {
    const { rig, held } = await deployed(async (ctx) => {
      await ctx.step('a', () => 'again')
      const calls = [ctx.step('other', () => 1), ctx.sleep('1 day'), ctx.branch('eu', (eu) => eu.step('b', () => 2))]
      const until = ctx.sleepUntil(0)
      await Promise.all([...calls, until])
    })
    const message = await pausedMessage(rig, held)
    const last = (await held.journal()).at(-1)
    if (last?.kind !== 'paused' || last.meta.reason !== 'drift') throw new Error('The run is not paused for drift')
    const lines = readFileSync(fileURLToPath(import.meta.url), 'utf8').split('\n')
    const said = last.meta.found.map(({ kind, name, place }) => {
      const [, file = '', line = '', column = ''] = /^(.+):(\d+):(\d+)$/.exec(place ?? '') ?? []
      expect(message).toContain(`${kind} "${name}", at ${place}`)
      expect(file.endsWith('test/unit/functions/replay/drift.test.ts') && !file.startsWith('file:')).toBe(true)
      return [name, lines[Number(line) - 1]?.slice(Number(column) - 1).split('(')[0]]
    })
    expect(Object.fromEntries(said)).toEqual({ other: 'step', 'eu/b': 'step', sleep: 'sleep', 'sleep#2': 'sleepUntil' })
  })

  it('the second replay that finds the places begins, writes and logs nothing', async () => {
    const ran: string[] = []
    let bodies = 0
    const { rig, held } = await deployed(async (ctx) => {
      bodies += 1
      ctx.log('a line that is new')
      await ctx.step('a', () => void ran.push('a'))
      // A body that is not the same twice: the second time it asks for everything that was recorded.
      if (bodies === 2) await ctx.step('b', () => void ran.push('b'))
      if (bodies === 2) await ctx.step('new', () => void ran.push('new'))
      await ctx.step('renamed', () => void ran.push('renamed'))
    })
    await rig.pass(5_000)
    const message = await pausedMessage(rig, held)
    expect(bodies).toBe(2)
    expect(message).toContain('step "renamed"\n')
    expect(ran).toEqual([])
    expect((await held.story()).slice(4)).toEqual(['paused'])
    expect(rig.lines.filter(({ message: line }) => line === 'a line that is new')).toHaveLength(1)
  })

  it('each place is looked for once, however many runs make the call, as long as code and journal agree', async () => {
    const rig = new FunctionRig()
    const flow = workflow(type, before)
    await (await (await rig.start(flow)).begin()).goOn('replayed')
    const capture = vi.spyOn(Error, 'captureStackTrace')
    const held = await (await rig.start(flow)).begin()
    await held.goOn('replayed')
    expect(await held.status()).toBe('succeeded')
    expect(capture).not.toHaveBeenCalled()
    capture.mockRestore()
  })

  it('the second look, for the places of the calls, puts nothing elsewhere', async () => {
    const puts: string[] = []
    const offload: Offload = {
      thresholdBytes: 100,
      put: async (text) => `place-${puts.push(text)}`,
      get: async () => '',
    }
    const first = new FunctionRig()
    const asleep = await (await first.start(workflow(type, before))).begin()
    const rig = new FunctionRig({ offload })
    const after = workflow(type, async (ctx) => {
      ctx.log('x'.repeat(1_000))
      await ctx.step('renamed', () => 'new')
    })
    const held = await (await rig.adopt(after, await asleep.journal())).begin()
    const putBefore = puts.length
    expect(await pausedMessage(rig, held)).toContain('asks for: step "renamed", at ')
    expect(puts).toHaveLength(putBefore)
  })
})

describe('the first frame of a stack', () => {
  it.each([
    ['Error\n    at async body (file:///app/src/order.ts:12:5)\n    at next (x.ts:1:1)', '/app/src/order.ts:12:5'],
    ['Error\n    at /app/a folder (1)/order.js:3:7', '/app/a folder (1)/order.js:3:7'],
    ['Error\n    at file:///app/a%20folder/order.js:3:7', '/app/a folder/order.js:3:7'],
    ['Error\n    at native', null],
    ['', null],
  ])('of %j is %s', (stack, place) => {
    expect(placeIn(stack)).toBe(place)
  })
})
