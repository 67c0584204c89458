// Moving runs by the command line: starting, cancelling, pausing, resuming, retrying, removing, and a worker.

import { describe, expect, it } from 'vitest'
import type { BulkOutcome } from '../../src/index.ts'
import { documents, shop, type Shop } from './seed.ts'
import { fail, greet, sleepy } from './workflows.ts'
import { begin, file } from './world.ts'

const idIn = (text: string): string => /[\da-f]{8}-[\da-f-]{27}/.exec(text)?.[0] ?? ''

describe('holdfast start', () => {
  it('stores the run and says its id', async () => {
    const { holdfast, run } = await shop()
    const options = [
      '--key',
      'k',
      '--tag',
      'a',
      '--tag',
      'b',
      '--meta',
      'region=eu',
      '--meta',
      'x=y=z',
      '--priority',
      '-5',
    ]
    const { code, stdout } = await run(['start', 'demo.greet', '"Ada"', ...options, '--delay', '1h'])
    expect(code).toBe(0)
    const view = await holdfast.get(idIn(stdout))
    expect(view).toMatchObject({
      key: 'k',
      tags: ['a', 'b'],
      metadata: { region: 'eu', x: 'y=z' },
      priority: -5,
      status: 'pending',
    })
    expect(view.dueAt!.getTime() - view.createdAt.getTime()).toBe(3_600_000)
    expect((await holdfast.journal(view))[0]!.data).toBe('Ada')
  })

  it('reads the input from standard input or a file', async () => {
    const { holdfast, run } = await shop()
    const piped = await run(['start', 'demo.greet', '-'], { stdin: '{"__proto__":1}\n' })
    const [first] = await holdfast.journal(idIn(piped.stdout))
    expect(JSON.stringify(first!.data)).toBe('{"__proto__":1}')
    const filed = await run(['start', 'demo.greet', '--file', file('in.json', '[1,2]'), '--json'])
    const { id, key, created } = JSON.parse(filed.stdout) as Record<string, unknown>
    expect({ key, created }).toEqual({ key: null, created: true })
    expect((await holdfast.journal(id as string))[0]!.data).toEqual([1, 2])
    expect((await run(['start', 'demo.greet', '-'], { stdin: '{' })).code).toBe(2)
  })

  it('refuses an input that is not UTF-8, and changes none of its characters', async () => {
    const { holdfast, run } = await shop()
    const latin = await run(['start', 'demo.greet', '--file', file('latin.json', Buffer.from('"Zo\u00eb"', 'latin1'))])
    expect(latin.code).toBe(2)
    expect(latin.stderr).toContain('The file "')
    expect(latin.stderr).toContain('is not UTF-8 text. Convert it')
    expect((await holdfast.count({})).count).toBe(0)
    const plain = await run(['start', 'demo.greet', '--file', file('utf8.json', Buffer.from('"Zo\u00eb"', 'utf8'))])
    expect((await holdfast.journal(idIn(plain.stdout)))[0]!.data).toBe('Zo\u00eb')
  })

  it('reports a misspelt type, and a key that is taken', async () => {
    const { run } = await shop()
    const misspelt = await run(['start', 'demo.great'])
    expect(misspelt.code).toBe(2)
    expect(misspelt.stderr).toContain('Did you mean "demo.greet"?')
    expect(misspelt.stderr).toMatch(/Export it from ".*workflows\..*", or name the module that does with --workflows\./)
    expect(misspelt.stderr).not.toContain('createHoldfast')
    const first = await run(['start', 'demo.sleepy', '--key', 'k'])
    const second = await run(['start', 'demo.sleepy', '--key', 'k', '--json'])
    expect(second.code).toBe(4)
    expect(JSON.parse(second.stderr)).toMatchObject({ error: { code: 'RUN_EXISTS', family: 'conflict' } })
    const third = await run(['start', 'demo.sleepy', '--key', 'k', '--on-conflict', 'return'])
    expect({ code: third.code, id: idIn(third.stdout) }).toEqual({ code: 0, id: idIn(first.stdout) })
  })

  it('waits for the end: the output, or the failure as exit code 5', async () => {
    const { holdfast, run } = await shop()
    await holdfast.work()
    const good = await run(['start', 'demo.greet', '"Ada"', '--wait'])
    expect(good.stdout).toBe('{"greeting":"Hello, Ada","at":"1970-01-01T00:00:00.000Z"}\n')
    expect(good.code).toBe(0)
    const bad = await run(['start', 'demo.fail', '"no luck"', '--wait', '--json'])
    expect(bad.code).toBe(5)
    expect(JSON.parse(bad.stdout)).toMatchObject({
      created: true,
      run: { status: 'failed', lastError: 'Error: no luck' },
    })
    expect(JSON.parse(bad.stderr)).toMatchObject({ error: { code: 'RUN_FAILED', family: 'failure' } })
  })

  it('leaves the run alone when waiting is interrupted', async () => {
    const { holdfast, env } = await shop()
    const start = begin(['start', 'demo.sleepy', '--wait'], { env })
    await start.says('Started')
    start.signal('SIGTERM')
    const { code, stderr } = await start.ended
    expect(code).toBe(143)
    expect((await holdfast.get(idIn(stderr))).status).toBe('pending')
  })
})

describe('holdfast cancel and retry, for one run', () => {
  it('cancels with a reason, says what became of it, and leaves what has ended', async () => {
    const { holdfast, run } = await shop()
    const { id } = await holdfast.start(sleepy)
    const { stdout } = await run(['cancel', id, '--reason', 'ordered twice'])
    expect(stdout).toBe(`Run ${id} is cancelled.\n`)
    expect((await holdfast.journal(id)).at(-1)).toMatchObject({ kind: 'cancelled', meta: { reason: 'ordered twice' } })
    const again = await run(['cancel', id, '--now', '--json'])
    expect(JSON.parse(again.stdout)).toEqual({ id, outcome: 'already-ended', status: 'cancelled' })
  })

  it('retries what failed, and nothing else', async () => {
    const { holdfast, run } = await shop()
    const worker = await holdfast.work()
    const { id } = await holdfast.start(fail, 'no luck')
    await holdfast
      .run(id)
      .result()
      .catch(() => undefined)
    await worker.stop()
    const { stdout, code } = await run(['retry', id, '--note', 'the bank is back', '--json'])
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toEqual({ id, outcome: 'retried', status: 'pending' })
    expect((await holdfast.journal(id)).at(-1)).toMatchObject({ kind: 'retried', meta: { note: 'the bank is back' } })
    const again = await run(['retry', id])
    expect(again.code).toBe(4)
    expect(again.stderr).toContain('WRONG_STATUS')
  })
})

describe('holdfast cancel and retry, for many', () => {
  const statuses = async ({ holdfast }: Shop): Promise<readonly string[]> =>
    (await holdfast.find()).runs.map(({ status }) => status)

  async function three(): Promise<Shop> {
    const one = await shop()
    for (let at = 0; at < 3; at += 1) await one.holdfast.start(sleepy, undefined, { tags: ['x'] })
    return one
  }

  it('only counts with --dry-run', async () => {
    const one = await three()
    const { code, stdout } = await one.run(['cancel', '--tag', 'x', '--dry-run'])
    expect({ code, stdout }).toEqual({ code: 0, stdout: '3 live runs match. Nothing was changed.\n' })
    expect(await statuses(one)).toEqual(['pending', 'pending', 'pending'])
  })

  it('wants --yes where nobody can be asked', async () => {
    const one = await three()
    const refused = await one.run(['cancel', '--tag', 'x'])
    expect(refused.code).toBe(2)
    expect(refused.stderr).toContain('This would cancel 3 live runs. Add --yes')
    expect(await statuses(one)).toEqual(['pending', 'pending', 'pending'])
    const done = await one.run(['cancel', '--tag', 'x', '--yes', '--json'])
    expect(JSON.parse(done.stdout)).toEqual({ matched: 3, isCapped: false, changed: 3, skipped: 0 })
    expect(await statuses(one)).toEqual(['cancelled', 'cancelled', 'cancelled'])
  })

  it('asks on a terminal, and takes only a yes for a yes', async () => {
    const one = await three()
    const no = await one.run(['cancel', '--type', 'demo.sleepy'], { terminal: 80, stdin: '\n' })
    expect(no.code).toBe(0)
    expect(no.stderr).toBe('Cancel 3 live runs? [y/N]\nNothing was changed.\n')
    expect(await statuses(one)).toEqual(['pending', 'pending', 'pending'])
    const yes = await one.run(['cancel', '--type', 'demo.sleepy'], { terminal: 80, stdin: 'y\n' })
    expect(yes.stdout).toBe('3 runs were cancelled, or will be by their workers.\n')
    expect(await statuses(one)).toEqual(['cancelled', 'cancelled', 'cancelled'])
  })

  it('never means all runs', async () => {
    const one = await three()
    for (const command of ['cancel', 'retry']) {
      const { code, stderr } = await one.run([command, '--yes'])
      expect(code).toBe(2)
      expect(stderr).toContain('or choose many with options such as --type or --status')
    }
    expect(await statuses(one)).toEqual(['pending', 'pending', 'pending'])
  })

  it('names one run by its type and key, without asking', async () => {
    const { holdfast, run } = await shop()
    await holdfast.start(sleepy, undefined, { key: 'ada' })
    await holdfast.start(sleepy, undefined, { key: 'bob' })
    const named = ['--type', 'demo.sleepy', '--key', 'ada', '--json']
    for (const [command, status] of [
      ['pause', 'paused'],
      ['resume', 'pending'],
      ['cancel', 'cancelled'],
    ] as const) {
      expect(JSON.parse((await run([command, ...named])).stdout)).toMatchObject({ status })
    }
    expect((await run(['retry', ...named])).code).toBe(4)
    expect((await holdfast.find({ type: 'demo.sleepy', key: 'bob' })).runs[0]).toMatchObject({ status: 'pending' })
  })

  it('means no run at all where the statuses leave none', async () => {
    const one = await three()
    expect((await one.run(['cancel', '--status', 'succeeded', '--yes'])).stdout).toBe('0 live runs match.\n')
    expect((await one.run(['retry', '--status', 'pending', '--yes'])).stdout).toBe('0 failed runs match.\n')
    expect(await statuses(one)).toEqual(['pending', 'pending', 'pending'])
  })

  it('retries only what failed of what matches', async () => {
    const one = await shop()
    const worker = await one.holdfast.work()
    for (const message of ['a', 'b']) await (await one.holdfast.start(fail, message)).result().catch(() => undefined)
    await (await one.holdfast.start(greet, 'Ada')).result()
    await worker.stop()
    expect((await one.run(['retry', '--prefix', 'demo.', '--dry-run'])).stdout).toContain('2 failed runs match')
    const { stdout } = await one.run(['retry', '--prefix', 'demo.', '--yes'])
    expect(stdout).toBe('2 runs were retried.\n')
    expect(await statuses(one)).toEqual(['succeeded', 'pending', 'pending'])
    expect((await one.run(['retry', '--prefix', 'demo.', '--yes'])).stdout).toBe('0 failed runs match.\n')
  })
})

describe('holdfast pause, resume and remove', () => {
  it('lets all paused runs go on that match, by their reason, too', async () => {
    const { holdfast, run } = await shop()
    for (const reason of ['operator', 'maintenance'] as const) {
      await holdfast.pause(await holdfast.start(sleepy), { reason })
    }
    expect((await run(['resume', '--all', '--dry-run'])).code).toBe(0)
    expect((await run(['resume', '--all', '--reason', 'crash', '--yes'])).code).toBe(2)
    const counted = await run(['resume', '--all', '--type', 'demo.sleepy', '--dry-run'])
    expect(counted.stdout).toBe('2 paused runs match. Nothing was changed.\n')
    const unchosen = await run(['pause', '--preview'])
    expect(unchosen.code).toBe(2)
    expect(unchosen.stderr).toContain('--preview is about runs that match: choose them with options such as --type')
    const crashes = await run(['resume', '--all', '--reason', 'crashes', '--yes'])
    expect(crashes.stdout).toBe('0 paused runs match.\n')
    const some = await run(['resume', '--all', '--reason', 'maintenance', '--yes', '--note', 'done'])
    expect(some.stdout).toBe('1 run was resumed.\n')
    expect((await run(['resume', '--all', '--prefix', 'demo.', '--yes'])).stdout).toBe('1 run was resumed.\n')
  })

  it('pauses all that match after a preview that shows them, and lets them go on by type, reason and status', async () => {
    const { holdfast, run } = await shop()
    for (let at = 0; at < 12; at += 1) await holdfast.start(sleepy, undefined, { key: `k${at}` })
    const other = await holdfast.start(greet, 'Ada')
    const preview = await run(['pause', '--type', 'demo.sleepy', '--preview'])
    expect(preview.code).toBe(0)
    const lines = preview.stdout.split('\n')
    expect(lines[0]).toBe('12 unpaused runs match. Nothing was changed.')
    expect(lines.slice(2, 12).map((line) => /k\d+/.exec(line)?.[0])).toEqual(
      Array.from({ length: 10 }, (_, at) => `k${11 - at}`),
    )
    expect(lines[12]).toBe('and 2 others')
    const json = JSON.parse(
      (await run(['pause', '--type', 'demo.sleepy', '--preview', '--json'])).stdout,
    ) as BulkOutcome
    expect([json.matched, json.changed, json.first?.length]).toEqual([12, 0, 10])
    expect((await holdfast.count({ status: 'paused' })).count).toBe(0)
    const refused = await run(['pause', '--type', 'demo.sleepy'])
    expect([refused.code, refused.stderr]).toEqual([
      2,
      expect.stringContaining('This would pause 12 unpaused runs. Add --yes'),
    ])
    const done = await run(['pause', '--type', 'demo.sleepy', '--reason', 'maintenance', '--note', 'lunch', '--yes'])
    expect(done.stdout).toBe('12 runs were paused, or will be by their workers.\n')
    expect((await run(['pause', '--status', 'paused', '--yes'])).stdout).toBe('0 unpaused runs match.\n')
    expect((await run(['pause', '--all', '--yes'])).stdout).toBe('1 run was paused, or will be by their workers.\n')
    expect((await holdfast.get(other)).pause).toMatchObject({ reason: 'operator' })
    expect((await run(['resume', '--type', 'demo.greet', '--yes'])).stdout).toBe('1 run was resumed.\n')
    expect((await run(['resume', '--reason', 'maintenence', '--yes'])).stderr).toContain('Did you mean "maintenance"?')
    expect((await run(['resume', '--reason', '', '--yes'])).code).toBe(2)
    expect((await holdfast.count({ status: 'paused' })).count).toBe(12)
    // By key and type it is one, as ever.
    expect((await run(['resume', '--key', 'k3', '--type', 'demo.sleepy'])).stdout).toContain(
      'is resumed and now pending',
    )
    expect((await run(['resume', '--reason', 'maintenance', '--yes'])).stdout).toBe('11 runs were resumed.\n')
  })

  it('takes all that match out of sight, by their status, and never all runs there are', async () => {
    const { holdfast, run } = await shop()
    for (let at = 0; at < 3; at += 1) await holdfast.cancel(await holdfast.start(sleepy))
    await holdfast.start(sleepy)
    expect((await run(['remove', '--status', 'cancelled', '--preview'])).stdout).toMatch(
      /^3 runs match\. Nothing was changed\.\nRUN/,
    )
    const no = await run(['remove', '--status', 'cancelled'], { terminal: 120, stdin: 'n\n' })
    expect(no.stderr).toBe('Remove 3 runs? [y/N]\nNothing was changed.\n')
    expect((await holdfast.count()).count).toBe(4)
    const yes = await run(['remove', '--status', 'cancelled', '--reason', 'a test', '--yes'])
    expect(yes.stdout).toBe('3 runs were removed.\n')
    expect((await holdfast.count()).count).toBe(1)
    expect((await holdfast.find({ deleted: true })).runs).toMatchObject(
      [{}, {}, {}].map(() => ({ deleteReason: 'a test' })),
    )
  })

  it('pauses and lets go on, with the words that were said', async () => {
    const { holdfast, run } = await shop()
    const { id } = await holdfast.start(sleepy, undefined, { key: 'k' })
    const paused = await run([
      'pause',
      '--key',
      'k',
      '--type',
      'demo.sleepy',
      '--reason',
      'maintenance',
      '--note',
      'wait',
    ])
    expect(paused.stdout).toBe(`Run ${id} is paused. Continue it: holdfast resume ${id}\n`)
    expect((await run(['show', id])).stdout).toMatch(/paused .*‖.* maintenance: wait/)
    const resumed = await run(['resume', id, '--note', 'go', '--json'])
    expect(JSON.parse(resumed.stdout)).toEqual({ id, outcome: 'resumed', status: 'pending' })
    expect((await run(['resume', id])).code).toBe(4)
  })

  it('repairs the journal of a paused run', async () => {
    const { holdfast, run } = await shop()
    const worker = await holdfast.work()
    const { id } = await holdfast.start(sleepy)
    await expect.poll(() => holdfast.run(id).status(), { timeout: 10_000 }).toBe('waiting')
    await worker.stop()
    await run(['pause', id])
    expect((await run(['resume', id, '--drop', '1'])).code).toBe(2)
    const { code } = await run(['resume', id, '--result', '2="made up"'])
    expect(code).toBe(0)
    const amended = (await holdfast.journal(id)).find(({ kind }) => kind === 'amended')
    expect(amended).toMatchObject({ meta: { seq: 2, dropped: false }, data: 'made up' })
  })

  it('takes a run out of sight, and frees its key', async () => {
    const { holdfast, run } = await shop()
    const { id } = await holdfast.start(sleepy, undefined, { key: 'k' })
    expect((await run(['remove', id, '--reason', 'a test'])).stdout).toBe(`Run ${id} is removed; it was pending.\n`)
    expect((await run(['runs'])).stdout).toBe('')
    expect((await run(['runs', '--deleted'])).stdout).toContain(id)
    expect((await run(['show', id])).stdout).toContain(': a test')
    expect((await run(['start', 'demo.sleepy', '--key', 'k'])).code).toBe(0)
  })
})

describe('holdfast worker', () => {
  it('SW-A4 says what it serves, performs it, and stops in good order at the first Ctrl-C', async () => {
    const { holdfast, env } = await shop()
    const worker = begin(['worker', '--concurrency', '5', '--lease', '10s'], { env })
    await worker.says('Works until it is stopped')
    await worker.says('The module exports no services')
    expect(worker.printed()).toContain('  demo.greet v1\n')
    const { id } = await holdfast.start(greet, 'Ada')
    expect(await holdfast.run(id).result({ timeout: '10s' })).toMatchObject({ greeting: 'Hello, Ada' })
    worker.signal('SIGINT')
    const { code, stdout } = await worker.ended
    expect(code).toBe(0)
    expect(stdout).toMatch(/Stopping: waits .*\nStopped\. This worker holds no run\.\n$/)
  })

  it('SW-A4 prints the same for a program as a stream of events', async () => {
    const { env } = await shop()
    const worker = begin(['worker', '--json'], { env })
    await worker.says('working')
    worker.signal('SIGTERM')
    const { code, stdout } = await worker.ended
    expect(code).toBe(0)
    expect(documents(stdout)).toMatchObject([
      { event: 'working', workflows: expect.arrayContaining([{ type: 'demo.many', version: 1 }]) as unknown[] },
      { event: 'stopping', signal: 'SIGTERM' },
      { event: 'stopped' },
    ])
  })

  it('may live in memory alone, for a try', async () => {
    const worker = begin(['worker', '--store', 'memory:', '--workflows', 'test/cli/workflows.ts'])
    await worker.says('Serves 5 workflows from memory:')
    worker.signal('SIGINT')
    expect((await worker.ended).code).toBe(0)
  })
})
