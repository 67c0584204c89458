import Database from 'libsql'
// The deploy gate: a build is replayed against the runs of a store, or against exported ones, and nothing is changed.

import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import * as deployed from '../../examples/deploy-gate/deployed.ts'
import { createHoldfast, type ExportedRun, type HoldfastOptions } from '../../src/index.ts'
import { hanging } from './builds/hanging.ts'
import { holdfast as sealed } from './builds/sealed.ts'
import { documents } from './seed.ts'
import { begin, cli, file, folder, hazardous, withoutColours, type Ending, type Scene } from './world.ts'

const builds = {
  deployed: 'examples/deploy-gate/deployed.ts',
  compatible: 'examples/deploy-gate/compatible.ts',
  incompatible: 'examples/deploy-gate/incompatible.ts',
  secondVersion: 'test/cli/builds/second-version.ts',
  throwing: 'test/cli/builds/throwing.ts',
  hanging: 'test/cli/builds/hanging.ts',
  sealed: 'test/cli/builds/sealed.ts',
  others: 'test/cli/workflows.ts',
}

type Build = keyof typeof builds

interface Live {
  readonly path: string
  readonly store: string
  /** Runs that were charged and sleep. */
  readonly asleep: readonly string[]
  /** A run that nobody has begun. */
  readonly unbegun: string
  readonly check: (build: Build, more?: readonly string[], scene?: Scene) => Promise<Ending>
}

const quiet = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }

/** A file with runs of the deployed build: some were charged and sleep, one was not begun. */
async function live(count: number, options: Partial<HoldfastOptions> = {}): Promise<Live> {
  const path = join(folder(), 'live.db')
  const store = `sqlite:${path}`
  const holdfast = await createHoldfast({ store, workflows: deployed, logger: quiet, ...options })
  const worker = await holdfast.work()
  const started = Array.from({ length: count }, (_, at) =>
    holdfast.start(deployed.order, { id: String(at), total: at }),
  )
  const asleep = (await Promise.all(started)).map(({ id }) => id)
  await expect.poll(async () => (await holdfast.count({ status: 'waiting' })).count).toBe(count)
  await worker.stop()
  const { id: unbegun } = await holdfast.start(deployed.order, { id: 'new', total: 1 })
  await holdfast.close()
  const check: Live['check'] = (build, more = [], scene = {}) =>
    cli(['check', builds[build], '--against', store, ...more], scene)
  return { path, store, asleep, unbegun, check }
}

/** Of all that was ever written: what is still in the log of the file is moved into it before. */
function hashOf(path: string): string {
  const db = new Database(path)
  db.exec('pragma wal_checkpoint(truncate)')
  db.close()
  return createHash('sha256').update(readFileSync(path)).digest('hex')
}

describe('check --against a store', () => {
  it('passes a build that agrees with every live run', async () => {
    const { check, store } = await live(5)
    for (const build of ['deployed', 'compatible'] as const) {
      expect(await check(build)).toEqual({
        code: 0,
        stdout: `Replayed 6 runs from ${store}, and this build agrees with every one.\n`,
        stderr: '',
      })
    }
  })

  it('lists the runs that would drift, equal ones once, with the difference and what to do, and leaves with 6', async () => {
    const { check, store, asleep, unbegun } = await live(5)
    const { code, stdout, stderr } = await check('incompatible')
    expect(code).toBe(6)
    const [summary, , heading = '', ...rest] = stdout.split('\n')
    expect(summary).toBe(`Replayed 6 runs from ${store}, and this build disagrees with 5.`)
    expect(heading).toMatch(/^5 runs of shop\.order v1 would drift: for example /)
    const shown = heading.slice(heading.indexOf('example ') + 8).split(', ')
    expect(shown).toHaveLength(3)
    expect(asleep).toEqual(expect.arrayContaining(shown))
    expect(rest.slice(0, 2)).toEqual([
      '  - entry 2 of the journal: step-succeeded "charge"',
      expect.stringMatching(/^ {2}\+ the code asks for: step "reserve", at .*incompatible\.ts:\d+:\d+$/),
    ])
    expect(stdout).toContain('ctx.patched')
    expect(stdout).not.toContain(unbegun)
    expect(stderr).toContain('This build would harm 5 of the 6 runs that were replayed. (DRIFT)')
  })

  it('prints the same for a program', async () => {
    const { check, store, asleep } = await live(2)
    const { code, stdout, stderr } = await check('incompatible', ['--json'])
    expect(code).toBe(6)
    const [answer] = documents(stdout) as [{ readonly findings: readonly { readonly ids: readonly string[] }[] }]
    expect(answer).toEqual({
      against: store,
      runs: 3,
      replayed: 3,
      disagree: 2,
      unlisted: 0,
      findings: [
        {
          kind: 'drift',
          type: 'shop.order',
          version: 1,
          runs: 2,
          ids: expect.arrayContaining([...asleep]) as string[],
          message: expect.stringContaining('+ the code asks for: step "reserve"') as string,
        },
      ],
    })
    expect(documents(stderr)).toMatchObject([{ error: { code: 'DRIFT', details: { replayed: 3, disagree: 2 } } }])
  })

  it('changes nothing, not even the version of the tables', async () => {
    const { check, path } = await live(2)
    const before = hashOf(path)
    await check('incompatible')
    await check('compatible')
    expect(hashOf(path)).toBe(before)
    const empty = join(folder(), 'empty.db')
    writeFileSync(empty, '')
    const { code, stderr } = await cli(['check', builds.deployed, '--against', `sqlite:${empty}`])
    expect({ code, names: /holdfast migrate/.test(stderr) }).toEqual({ code: 7, names: true })
  })

  it('samples evenly, and says so', async () => {
    const { check, store, asleep, unbegun } = await live(19)
    const { code, stdout } = await check('incompatible', ['--sample', '5', '--json'])
    expect(code).toBe(6)
    const [{ findings, ...counts }] = documents(stdout) as [{ findings: readonly { ids: readonly string[] }[] }]
    expect(counts).toMatchObject({ runs: 20, replayed: 5 })
    // Newest first, and every fourth.
    const inOrder = [...asleep, unbegun].toSorted().toReversed()
    const chosen = inOrder.filter((_, at) => at % 4 === 3)
    expect(findings.flatMap(({ ids }) => ids).toSorted()).toEqual(chosen.toSorted())
    const text = await check('deployed', ['--sample', '5'])
    expect(text.stdout).toContain(
      `Replayed 5 runs from ${store} (sampled 5 of 20), and this build agrees with every one.`,
    )
    expect((await check('deployed', ['--sample', '100'])).stdout).toContain('Replayed 20 runs from')
  })

  it('reports versions and types that this build does not have, unless only others are asked for', async () => {
    const { check } = await live(1)
    const version = await check('secondVersion')
    expect(version.code).toBe(6)
    expect(version.stdout).toMatch(/2 runs of shop\.order v1 would find no code: .*\n.*not its version 1/)
    expect(version.stdout).toContain(
      '\nExport the workflow from the module, under the type and the version of its runs',
    )
    expect(version.stdout).not.toContain('ctx.patched')
    const type = await check('others')
    expect(type.code).toBe(6)
    expect(type.stdout).toMatch(/2 runs of shop\.order v1 would find no code: .*\n.*No workflow "shop\.order"/)
    expect(version.stdout + type.stdout).not.toContain('createHoldfast')
    const other = await check('others', ['--type', 'demo.greet', '--type', 'demo.slow'])
    expect([other.code, other.stdout]).toEqual([0, expect.stringMatching(/^There is nothing to replay in sqlite:/)])
  })

  it('reports bodies that throw or hang, and payloads that cannot be read', async () => {
    const { check } = await live(2)
    const throwing = await check('throwing')
    expect(throwing.code).toBe(6)
    expect(throwing.stdout).toMatch(/3 runs of shop\.order v1 would fail: .*\n.*reading 'length'/)
    const unreadable = await check('sealed')
    expect(unreadable.code).toBe(6)
    expect(unreadable.stdout).toMatch(/3 runs of shop\.order v1 cannot be read: .*\n.*it is not encrypted/)
    const hanging = await check('hanging')
    expect(hanging.code).toBe(6)
    expect(hanging.stdout).toMatch(/3 runs of shop\.order v1 would fail: .*\n.*does not come to rest/)
  }, 30_000)

  it('reads payloads with the codec of the module', async () => {
    const { check } = await live(2, sealed)
    expect((await check('sealed')).code).toBe(0)
    const { code, stdout } = await check('deployed')
    expect([code, stdout]).toEqual([6, expect.stringContaining('cannot be read')])
  })

  it('looks at runs that have ended only if it is asked to', async () => {
    const { check, store } = await live(1)
    const holdfast = await createHoldfast({ store, workflows: deployed, logger: quiet })
    await holdfast.cancelMany({ type: 'shop.order' })
    await holdfast.close()
    expect((await check('incompatible')).stdout).toMatch(/^There is nothing to replay/)
    const { code, stdout } = await check('incompatible', ['--ended'])
    expect([code, stdout]).toEqual([6, expect.stringMatching(/^Replayed 2 runs .* disagrees with 1\.$/m)])
  })

  it('draws a bar on a terminal, takes it away, and prints nothing that a terminal would obey', async () => {
    const { check } = await live(3)
    const { stdout, stderr, code } = await check('hanging', [], { terminal: 80 })
    expect(code).toBe(6)
    expect(stderr).toMatch(/\r█{6}·{18} 1 of 4 runs, 1 disagree/)
    expect(withoutColours(stdout + stderr.replaceAll('\r', ''))).not.toMatch(hazardous)
    const [, last = ''] = /([^\r]*)$/.exec(stderr) ?? []
    expect(withoutColours(last)).toMatch(/^error: This build would harm 4/)
  }, 30_000)

  it('is left at once with Ctrl-C', async () => {
    const { store, unbegun } = await live(1)
    const gate = begin(['check', builds.hanging, '--against', store])
    await expect.poll(() => hanging).toContain(unbegun)
    gate.signal('SIGINT')
    expect((await gate.ended).code).toBe(130)
  })
})

describe('export, and check --against files', () => {
  it('a run is printed, or written to a file that only its owner can read, and replayed from there', async () => {
    const { store, asleep, path } = await live(2)
    const [first = '', second = ''] = asleep
    const before = hashOf(path)
    const printed = await cli(['export', first, '--store', store])
    expect(printed.code).toBe(0)
    const exported = JSON.parse(printed.stdout) as ExportedRun
    expect([exported.format, exported.run.id, exported.entries.length]).toEqual([1, first, 3])
    expect(JSON.parse((await cli(['export', first, '--store', store, '--json'])).stdout)).toEqual(exported)
    const place = folder()
    const written = await cli(['export', second, '--store', store, '--out', 'second.json'], { cwd: place })
    expect(written).toEqual({
      code: 0,
      stdout: `Wrote 3 entries of run ${second} to second.json. Its payloads are in plain text.\n`,
      stderr: '',
    })
    expect(statSync(join(place, 'second.json')).mode & 0o777).toBe(0o600)
    const again = await cli(['export', second, '--store', store, '--out', 'second.json'], { cwd: place })
    expect([again.code, again.stderr]).toEqual([2, expect.stringContaining('it exists')])
    expect(hashOf(path)).toBe(before)
    writeFileSync(join(place, 'first.json'), printed.stdout)
    writeFileSync(join(place, 'notes.txt'), 'not a run')
    const agrees = await cli(['check', builds.compatible, '--against', place])
    expect([agrees.code, agrees.stdout]).toEqual([
      0,
      `Replayed 2 runs from "${place}", and this build agrees with every one.\n`,
    ])
    const one = await cli(['check', builds.incompatible, '--against', join(place, 'second.json')])
    expect([one.code, one.stdout]).toEqual([
      6,
      expect.stringContaining(`1 run of shop.order v1 would drift: ${second}\n`),
    ])
    const sampled = await cli(['check', builds.incompatible, '--against', place, '--sample', '1'])
    expect(sampled.stdout).toContain('(sampled 1 of 2), and this build disagrees with 1.')
  })

  it('is exported in plain text with the codec of the module, and not at all without', async () => {
    const { store, asleep } = await live(1, sealed)
    const [id = ''] = asleep
    const plain = await cli(['export', id, '--store', store, '--workflows', builds.sealed])
    expect((JSON.parse(plain.stdout) as ExportedRun).entries[1]?.data).toBe('"receipt-0"')
    const { code, stdout, stderr } = await cli(['export', id, '--store', store])
    expect({ code, stdout }).toEqual({ code: 5, stdout: '' })
    expect(stderr).toContain('PAYLOAD_CORRUPT')
    const exported = file('sealed.json', plain.stdout)
    expect((await cli(['check', builds.sealed, '--against', exported])).code).toBe(0)
  })

  it.each([
    [['--sample', '3'], 'say which with --against'],
    [['--type', 'x'], 'say which with --against'],
    [['--ended'], 'say which with --against'],
    [['--against', 'no/such/folder'], 'There is nothing at "no/such/folder"'],
    [['--against', 'sqlite:no-such.db'], 'There is no SQLite file "no-such.db"'],
    [['--against', 'memory:'], 'lives in the memory of one process'],
    [['--against', 'oracle:x'], 'There is no store for "oracle:"'],
    [['--against', 'package.json'], 'This is not an exported run. It has no format.'],
    [['--against', 'README.md'], 'It cannot be read: '],
    [['--against', 'src/cli'], 'There is no .json file in the folder'],
    [['--against', 'x', '--sample', '0'], '--sample must be a whole number from 1'],
  ])('%j is a usage error: %s', async (argv, names) => {
    const { code, stdout, stderr } = await cli(['check', builds.deployed, ...argv])
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toContain(names)
  })

  it('problems of the module are reported before anything is replayed', async () => {
    const place = folder()
    mkdirSync(join(place, 'journals'))
    const { code, stderr } = await cli(['check', 'README.md', '--against', join(place, 'journals')])
    expect([code, stderr]).toEqual([2, expect.stringContaining('README.md')])
    expect(readdirSync(join(place, 'journals'))).toEqual([])
  })
})
