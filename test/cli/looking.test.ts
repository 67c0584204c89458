// Looking at runs: lists, pictures, journals, and following a run.

import { spawnSync } from 'node:child_process'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createHoldfast, jsonCodec, workflow, type Codec, type Offload, type RunView } from '../../src/index.ts'
import { widthOf } from '../../src/cli/output/text.ts'
import { documents, shop, type Shop } from './seed.ts'
import { fail, greet, many, sleepy } from './workflows.ts'
import { begin, hazardous, withoutColours } from './world.ts'

describe('holdfast runs', () => {
  it('SW-O3 lists runs by type, status, keys and tag, newest first', async () => {
    const { holdfast, run } = await shop()
    await holdfast.work()
    const first = await holdfast.start(greet, 'Ada', { key: 'ada', tags: ['vip'] })
    await first.result()
    const second = await holdfast.start(fail, 'no luck', { idempotencyKey: 'once' })
    await second.result().catch(() => undefined)
    const third = await holdfast.start(sleepy, undefined, { key: 'ada' })

    const ids = async (...options: string[]): Promise<unknown> => {
      const { stdout, code } = await run(['runs', '--json', ...options])
      expect(code).toBe(0)
      return (JSON.parse(stdout) as { runs: { id: string }[] }).runs.map(({ id }) => id)
    }
    expect(await ids()).toEqual([third.id, second.id, first.id])
    expect(await ids('--type', 'demo.fail', '--type', 'demo.greet')).toEqual([second.id, first.id])
    expect(await ids('--prefix', 'demo.g')).toEqual([first.id])
    expect(await ids('--status', 'failed,succeeded')).toEqual([second.id, first.id])
    expect(await ids('--key', 'ada', '--status', 'succeeded')).toEqual([first.id])
    expect(await ids('--idempotency-key', 'once')).toEqual([second.id])
    expect(await ids('--tag', 'vip')).toEqual([first.id])
    expect(await ids('--version', '2')).toEqual([])
    expect(await ids('--since', '1h', '--until', '2100-01-01')).toEqual([third.id, second.id, first.id])
    expect(await ids('--until', '1h')).toEqual([])
    expect(await ids('--parent', first.id)).toEqual([])

    const { stdout } = await run(['runs'])
    expect(stdout).toMatch(/^RUN +STATUS +TYPE +ID +KEY +AGE +TOOK +ERROR\n/)
    expect(stdout).toMatch(new RegExp(`${second.id}  failed +demo.fail +once .* Error: no luck\n`))
  })

  it('SW-O3 gives fifty at a time, and says how to get the next', async () => {
    const { holdfast, run } = await shop()
    const runs = await Promise.all(Array.from({ length: 60 }, (_, at) => holdfast.start(greet, `${at}`)))
    const all = runs.map(({ id }) => id).toSorted((a, b) => (a < b ? 1 : -1))
    const first = await run(['runs'])
    expect(first.stdout.trim().split('\n')).toHaveLength(51)
    expect(first.stderr).toContain(`--after ${all[49]}`)
    const second = await run(['runs', '--after', all[49]!])
    expect(
      second.stdout
        .trim()
        .split('\n')
        .slice(1)
        .map((line) => line.slice(0, 36)),
    ).toEqual(all.slice(50))
    expect(second.stderr).toBe('')
    expect((await run(['runs', '--limit', '201'])).code).toBe(2)
  })

  it('fits the terminal and never cuts an id', async () => {
    const { holdfast, run } = await shop()
    const { id } = await holdfast.start(greet, 'x', { key: '注文'.repeat(80) })
    for (const terminal of [60, 80, 120]) {
      const { stdout } = await run(['runs'], { terminal, env: { NO_COLOR: '1' } })
      expect(stdout).toContain(id)
      for (const line of stdout.split('\n')) expect(widthOf(line)).toBeLessThanOrEqual(Math.max(terminal, 65))
    }
  })

  it('has colours on a terminal only', async () => {
    const { holdfast, run } = await shop()
    await holdfast.start(greet, 'x')
    expect((await run(['runs'], { terminal: 100 })).stdout).toContain('\u001B[2mRUN\u001B[22m')
    expect((await run(['runs'])).stdout).not.toContain('\u001B')
    expect((await run(['runs', '--json'], { terminal: 100 })).stdout).not.toContain('\u001B')
  })
})

describe('holdfast show', () => {
  it('draws a run by its id, or by its key and type', async () => {
    const { holdfast, run } = await shop()
    await holdfast.work()
    const { id } = await holdfast.start(greet, 'Ada', { key: 'ada' })
    await holdfast.run(id).result()
    const { code, stdout } = await run(['show', id])
    expect(code).toBe(0)
    expect(stdout).toMatch(/^demo\.greet v1 {2}succeeded\n/)
    expect(stdout).toContain('output      {"greeting":"Hello, Ada","at":"1970-01-01T00:00:00.000Z"}')
    expect(stdout).toMatch(/ greet +█/)
    expect((await run(['show', '--key', 'ada', '--type', 'demo.greet'])).stdout.split('\n')[1]).toContain(id)
    expect((await run(['show', id.toUpperCase()])).code).toBe(0)
  })

  it('is one JSON document with everything that is known', async () => {
    const { holdfast, run } = await shop()
    const { id } = await holdfast.start(greet, 'Ada', { key: 'k', tags: ['t'], metadata: { a: 1 } })
    const { stdout } = await run(['show', id, '--json'])
    expect(JSON.parse(stdout)).toMatchObject({
      id,
      type: 'demo.greet',
      version: 1,
      status: 'pending',
      key: 'k',
      keyScope: 'workflow',
      tags: ['t'],
      metadata: { a: 1 },
      createdAt: expect.stringMatching(/^\d{4}-.*Z$/) as string,
      endedAt: null,
      lastError: null,
    })
  })

  it('prefers the live run of a key, then the last that had it', async () => {
    const { holdfast, run } = await shop()
    const shown = async (): Promise<unknown> => {
      const { stdout } = await run(['show', '--key', 'k', '--type', 'demo.sleepy', '--json'])
      return (JSON.parse(stdout) as { id: unknown }).id
    }
    const first = await holdfast.start(sleepy, undefined, { key: 'k' })
    await holdfast.cancel(first)
    expect(await shown()).toBe(first.id)
    const second = await holdfast.start(sleepy, undefined, { key: 'k' })
    expect(await shown()).toBe(second.id)
    const shared = { key: 'k', scope: 'none' } as const
    await holdfast.start(sleepy, undefined, shared)
    const { code, stderr } = await run(['show', '--key', 'k', '--type', 'demo.sleepy'])
    expect(code).toBe(2)
    expect(stderr).toContain('Several live runs')
  })
})

describe('a run of 5,000 entries', () => {
  it('SW-O3 is summed up by show, streamed by journal, and head may leave when it has seen enough', async () => {
    const { holdfast, run, env } = await shop()
    await holdfast.work()
    const { id } = await holdfast.start(many, 4_998)
    await holdfast.run(id).result()
    const shown = await run(['show', id], { terminal: 100 })
    expect(shown.stdout.split('\n').length).toBeLessThan(90)
    expect(shown.stdout).toMatch(/[\d,]+ lines are hidden\. See all: holdfast show .* --all/)
    const journal = await run(['journal', id, '--json'])
    expect(documents(journal.stdout)).toHaveLength(5_000)
    expect((await run(['journal', id])).stdout.trimEnd().split('\n')).toHaveLength(5_000)
    expect(await run(['journal', id], { readerLeavesAfter: 1 })).toMatchObject({ code: 0, stderr: '' })
    expect(await run(['journal', id, '--json'], { readerLeavesAfter: 3 })).toMatchObject({ code: 0, stderr: '' })

    const words = [process.execPath, '--import', 'tsx', 'src/cli/main.ts', 'journal', id]
    const line = `${words.map((word) => `'${word}'`).join(' ')} | head -n 3`
    const { status, stdout, stderr } = spawnSync('bash', ['-o', 'pipefail', '-c', line], {
      env: { ...process.env, ...env },
      encoding: 'utf8',
    })
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    expect(stdout.split('\n')).toHaveLength(4)
  })
})

describe('holdfast journal', () => {
  it('SW-O3 prints the entries, cut to the terminal or in full, from any of them on', async () => {
    const { holdfast, run } = await shop()
    await holdfast.work()
    const { id } = await holdfast.start(greet, 'x'.repeat(500))
    await holdfast.run(id).result()
    const cut = await run(['journal', id], { terminal: 90, env: { NO_COLOR: '1' } })
    for (const line of cut.stdout.split('\n')) expect(widthOf(line)).toBeLessThanOrEqual(90)
    expect(cut.stdout).toMatch(/^ {4}1 {2}.*Z {2}started .*…\n {4}2 .*step-succeeded {2}greet {2}\{"attempt":1,/)
    const full = await run(['journal', id, '--full'], { terminal: 90, env: { NO_COLOR: '1' } })
    expect(full.stdout).toContain('x'.repeat(500))
    const entries = documents((await run(['journal', id, '--json'])).stdout)
    expect(entries).toMatchObject([
      { seq: 1, kind: 'started', name: null, data: 'x'.repeat(500) },
      { seq: 2, kind: 'step-succeeded', name: 'greet', meta: { attempt: 1 } },
      { seq: 3, kind: 'succeeded' },
    ])
    const rest = documents((await run(['journal', id, '--json', '--after', '1', '--limit', '1'])).stdout)
    expect(rest).toMatchObject([{ seq: 2 }])
  })
})

describe('holdfast watch', () => {
  it('ends as the run ended', async () => {
    const { holdfast, run } = await shop()
    await holdfast.work()
    const good = await holdfast.start(greet, 'Ada')
    const bad = await holdfast.start(fail, 'no luck')
    await bad.result().catch(() => undefined)
    const succeeded = await run(['watch', good.id])
    expect(succeeded.code).toBe(0)
    expect(succeeded.stdout).toMatch(/succeeded: \{"greeting":"Hello, Ada",.*\}\n$/)
    const failed = await run(['watch', bad.id])
    expect(failed.code).toBe(5)
    expect(failed.stderr).toContain(`Run ${bad.id} failed: no luck`)
    const json = documents((await run(['watch', good.id, '--json'])).stdout)
    expect(json.at(0)).toMatchObject({ entry: { seq: 1, kind: 'started' } })
    expect(json.at(-1)).toMatchObject({ run: { id: good.id, status: 'succeeded' } })
  })

  it('follows a run that is alive until it is ended', async () => {
    const { holdfast, env } = await shop()
    const { id } = await holdfast.start(sleepy)
    const watch = begin(['watch', id], { env })
    await watch.says('started')
    await holdfast.work()
    await watch.says('waiting')
    await holdfast.cancel(id, { reason: 'enough' })
    const { code, stdout } = await watch.ended
    expect(code).toBe(5)
    expect(stdout).toContain('"reason":"enough"')
  })

  it('leaves at Ctrl-C with 130, and the run goes on', async () => {
    const { holdfast, env } = await shop()
    const { id } = await holdfast.start(sleepy)
    const watch = begin(['watch', id], { env })
    await watch.says('started')
    watch.signal('SIGINT')
    const { code, stderr } = await watch.ended
    expect(code).toBe(130)
    expect(stderr).toContain('goes on')
    expect((await holdfast.get(id)).status).toBe('pending')
  })

  it('does not wait for a run that was removed', async () => {
    const { holdfast, run } = await shop()
    const { id } = await holdfast.start(sleepy)
    await holdfast.remove(id)
    const { code, stderr } = await run(['watch', id])
    expect(code).toBe(4)
    expect(stderr).toContain('was removed while it was pending')
  })

  it('reports drift, with exit code 6 and what to do', async () => {
    const { store, holdfast, run } = await shop()
    const worker = await holdfast.work()
    const { id } = await holdfast.start(sleepy)
    await expect.poll(() => holdfast.run(id).status(), { timeout: 10_000 }).toBe('waiting')
    await worker.stop()
    const changed = workflow('demo.sleepy', async (ctx) => {
      await ctx.step('renamed', () => 'ready')
      await ctx.sleep('1ms')
    })
    const logger = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }
    const next = await createHoldfast({ store, workflows: [changed], logger })
    onTestFinished(() => next.close())
    await next.pause(id)
    await next.work()
    await next.resume(id)
    await expect.poll(() => next.run(id).status(), { timeout: 10_000 }).toBe('paused')
    const { code, stderr } = await run(['watch', id])
    expect(code).toBe(6)
    expect(stderr).toContain(`holdfast resume ${id}`)
    // The diff stands in lines, as it was written.
    expect(stderr).toMatch(
      /\n {2}- entry 2 of the journal: step-succeeded "prepare"\n {2}\+ the code asks for: step "renamed"/,
    )
    expect(stderr).not.toContain(String.raw`\n`)
    expect((await run(['show', id])).stdout).toMatch(/paused +.*‖.* drift: /)
  })
})

describe('a run that is paused', () => {
  /** A run whose code was changed under it. */
  async function drifted(one: Shop): Promise<{ readonly id: string; readonly logged: string }> {
    const worker = await one.holdfast.work()
    const { id } = await one.holdfast.start(sleepy)
    await expect.poll(() => one.holdfast.run(id).status(), { timeout: 10_000 }).toBe('waiting')
    await worker.stop()
    await one.holdfast.pause(id)
    const env = { ...one.env, HOLDFAST_WORKFLOWS: 'test/cli/builds/renamed-step.ts' }
    const next = begin(['worker'], { env })
    await next.says('Works until it is stopped')
    await one.holdfast.resume(id)
    await next.says('is paused (drift)')
    next.signal('SIGINT')
    await next.ended
    return { id, logged: next.printed() }
  }

  it('for drift shows the whole diff in lines: what was recorded, what the code asks for, and where', async () => {
    const one = await shop()
    const { id, logged } = await drifted(one)
    for (const scene of [{ terminal: 60 }, {}]) {
      const { stdout } = await one.run(['show', id], scene)
      const lines = withoutColours(stdout).split('\n')
      const at = lines.findIndex((line) => line.startsWith('  paused for  drift, since 20'))
      const diff = lines.slice(at + 1, at + 4)
      expect(diff[0]).toBe(
        `${' '.repeat(14)}The code changed under a live run: its journal has an entry that the code does not ask for.`,
      )
      expect(diff[1]).toBe(`${' '.repeat(14)}- entry 2 of the journal: step-succeeded "prepare"`)
      expect(diff[2]).toMatch(/^ {14}\+ the code asks for: step "renamed", at .*renamed-step\.ts:\d+:\d+$/)
      expect(stdout).not.toContain(String.raw`\n`)
    }
    const shown = JSON.parse((await one.run(['show', id, '--json'])).stdout) as RunView
    expect(shown.pause).toMatchObject({
      reason: 'drift',
      recorded: { seq: 2, name: 'prepare' },
      found: [{ name: 'renamed' }],
    })
    expect((await one.run(['runs'])).stdout).toMatch(
      /PAUSED FOR\n.*drift: entry 2 of the journal: step-succeeded "prepare"; the code/,
    )
    // What its worker said names the run, its type and the reason, and the diff follows in lines.
    expect(logged).toContain(`error: Run ${id} of "demo.sleepy" is paused (drift): The code changed under a live run`)
    expect(logged).toMatch(/\n {2}- entry 2 of the journal: step-succeeded "prepare"\n/)
  })

  it('says who paused it and why, in show and in the list, on a narrow terminal, too', async () => {
    const { holdfast, run } = await shop()
    const { id } = await holdfast.start(sleepy, undefined, { key: 'a-long-key-of-a-customer' })
    await holdfast.pause(id, { reason: 'maintenance', note: 'first line\nsecond \u001B[2Jline' })
    const { stdout } = await run(['show', id])
    expect(stdout).toMatch(/\n {2}paused for {2}maintenance, since .*Z\n {14}first line\n {14}second \\x1b\[2Jline\n/)
    expect((await run(['runs'])).stdout).toContain(String.raw`maintenance: first line second \x1b[2Jline`)
    expect(withoutColours((await run(['runs'], { terminal: 80 })).stdout)).toMatch(/PAUSED FOR\s[^]*maintenance/)
    await holdfast.resume(id)
    expect((await run(['show', id])).stdout).not.toContain('paused for')
    expect((await run(['runs'])).stdout).not.toContain('PAUSED FOR')
  })

  it('loses nothing of a long output where it is piped', async () => {
    const { holdfast, run } = await shop()
    await holdfast.work()
    const { id } = await holdfast.start(greet, 'x'.repeat(500))
    await holdfast.run(id).result()
    expect((await run(['show', id])).stdout).toContain('x'.repeat(500))
    expect((await run(['show', id], { terminal: 100 })).stdout).not.toContain('x'.repeat(100))
  })
})

describe('payloads that cannot be read here', () => {
  it('spoil nothing but themselves: kinds, names and times are still seen', async () => {
    const secret = jsonCodec()
    const codec: Codec = {
      encode: (value, place) => `secret:${secret.encode(value, place)}`,
      decode: (text, place) => secret.decode(text.slice('secret:'.length), place),
    }
    const kept = new Map<string, string>()
    const offload: Offload = {
      thresholdBytes: 200,
      put: async (text, { seq }) => (kept.set(`${seq}`, text), `${seq}`),
      get: async (reference) => kept.get(reference) ?? '',
    }
    const { holdfast, run } = await shop({ codec, offload })
    await holdfast.work()
    const good = await holdfast.start(greet, 'x'.repeat(500))
    await good.result()
    const bad = await holdfast.start(fail, 'no luck')
    await bad.result().catch(() => undefined)
    const journal = await run(['journal', good.id])
    expect(journal.code).toBe(0)
    expect(journal.stdout).toMatch(/started .*it is offloaded.*\n.*step-succeeded {2}greet .*PAYLOAD_CORRUPT/)
    expect((await run(['show', good.id])).stdout).toMatch(/ greet +█/)
    expect((await run(['watch', bad.id])).code).toBe(5)
    expect((await run(['runs'])).stdout).toContain(bad.id)
  })
})

describe('poison in the data', () => {
  it('reaches no terminal, by any command that shows it', async () => {
    const { holdfast, run } = await shop()
    await holdfast.work()
    const evil = '\u202E\u200Bkey\uFEFF'
    const worse = '\u001B[2J\u009B31m\u0000\n\u2028\u202Eoops'
    const { id } = await holdfast.start(fail, worse, { key: evil, tags: [evil], metadata: { [worse]: worse } })
    await holdfast
      .run(id)
      .result()
      .catch(() => undefined)
    await holdfast.remove(id, { reason: '\u001B]0;title\u0007\u202E' })
    const lines = [
      ['runs', '--deleted'],
      ['show', id],
      ['journal', id],
      ['journal', id, '--full'],
      ['watch', id],
    ]
    for (const line of lines) {
      for (const json of [[], ['--json']]) {
        const { stdout, stderr } = await run([...line, ...json], { terminal: 200 })
        expect(withoutColours(stdout + stderr)).not.toMatch(hazardous)
        expect(stdout).toContain('oops')
      }
    }
  })
})
