// What a new user gets wrong first: commands, options, stores, modules and runs that are not there.

import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { exitCodeOf, exitCodeRows } from '../../src/cli/exit-code.ts'
import { loadFault } from '../../src/cli/input/workflow-module.ts'
import { errorCodes, HoldfastError } from '../../src/core/errors/error.ts'
import { migrations } from '../../src/stores/sqlite/schema/schema.ts'
import { poison } from '../poison.ts'
import { commands } from './commands.ts'
import { cli, file, folder, hazardous, withoutColours } from './world.ts'

const workflows = 'test/cli/workflows.ts'
const someId = '019a8b6e-7c1d-7000-8f3a-5b2c9d4e6f70'

describe('help', () => {
  it('comes without being asked for, with every command, the exit codes and examples', async () => {
    const { code, stdout, stderr } = await cli([])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    for (const command of commands) expect(stdout).toMatch(new RegExp(`^  ${command} `, 'm'))
    for (const [exit, meaning] of exitCodeRows) expect(stdout).toContain(`${exit}  ${meaning}`)
    expect(stdout).toContain('$ holdfast worker --store sqlite:app.db')
  })

  it.each(commands)('of %s has examples and the common options', async (command) => {
    const { code, stdout } = await cli([command, '--help'])
    expect(code).toBe(0)
    expect(stdout).toMatch(new RegExp(`Examples:\n {2}\\$ holdfast ${command} `))
    for (const option of ['--store <address>', '--workflows <module>', '--json', '--verbose']) {
      expect(stdout).toContain(option)
    }
  })

  it('of check says that it runs what it imports: nobody takes a check of a module for a look at it', async () => {
    const { stdout } = await cli(['check', '--help'])
    expect(stdout.replaceAll(/\s+/g, ' ')).toContain(
      'Importing runs the top-level code of the module, with your rights',
    )
  })

  it('prints the version of the package', async () => {
    expect((await cli(['--version'])).stdout).toMatch(/^\d+\.\d+\.\d+\n$/)
  })
})

describe('arguments that do not exist', () => {
  it.each([
    [['rusn'], 'Did you mean runs?'],
    [['--store', 'x'], 'Which command?'],
    [['help', 'rusn'], 'There is no command "rusn"'],
    [['runs', '--stor', 'x'], 'Did you mean --store?'],
    [['runs', '--status', 'runing', '--store', 'sqlite:x'], 'Did you mean "running"?'],
    [['runs', '--limit', 'ten'], '--limit must be a whole number from 1. Got "ten".'],
    [['runs', '--since', 'yesterday'], '--since takes a time such as'],
    [['runs', '--parent', '42'], '"42" is not the id of a run'],
    [['start'], "Missing required argument 'type'"],
    [['show', someId, 'more'], 'Too many arguments'],
    [['show', 'order-42'], '"order-42" is not the id of a run'],
    [['show'], 'Which run?'],
    [['show', '--key', 'k'], 'add its --type'],
    [['show', someId, '--key', 'k', '--type', 't'], 'not by both'],
    [['cancel', someId, '--type', 't'], 'not both'],
    [['retry', someId, '--dry-run'], 'names just one'],
    [['pause', someId, '--preview'], 'names just one'],
    [['pause', someId, '--type', 't'], 'not both'],
    [['pause', '--yes'], 'or choose many with options such as --type'],
    [['resume', '--yes'], 'or choose many with options such as --type'],
    [['resume', someId, '--reason', 'crashes'], 'not both'],
    [['resume', '--type', 't', '--drop', '1'], 'A journal is repaired run by run'],
    [['remove', '--yes'], 'or choose many with options such as --type'],
    [['remove', '--key', 'k'], 'add its --type'],
    [['remove', '--all'], 'Unknown option'],
    [['pause', someId, '--reason', 'operater'], 'Did you mean "operator"?'],
    [['resume', someId, '--drop', 'first'], '--drop must be a whole number from 1'],
    [['resume', someId, '--result', '7'], '--result takes name=value'],
    [['start', 't', '{a:1}'], 'line 1, column 2'],
    [['start', 't', '--file', 'no-such.json'], 'The file "no-such.json" cannot be read'],
    [['start', 't', '1', '--file', 'x.json'], 'not both'],
    [['start', 't', '--meta', 'novalue'], '--meta takes name=value'],
    [['start', 't', '--scope', 'globl'], 'Did you mean "global"?'],
    [['start', 't', '--on-conflict', 'replace'], 'one of error, return'],
    [['start', 't', '--run-at', '10m'], '--run-at takes a time such as 2026-11-16T08:00:00Z'],
    [['start', 't', '--delay', 'soon'], '--delay is not a duration'],
    [['worker', '--lease', '10'], 'has no unit'],
    [['signal'], 'Which run?'],
    [['signal', someId], 'Which signal?'],
    [['list'], 'Did you mean runs?'],
    [['ps', '--json'], 'Did you mean runs?'],
    [['show', '019a8b6e'], '"019a8b6e" is only the beginning of an id.'],
    [['signal', 'order-42', 'paid'], '"order-42" is not the id of a run'],
    [['signal', '--key', 'k', 'paid'], 'add its --type'],
    [['signal', '--key', 'k', '--type', 't'], 'Which signal?'],
    [['signal', someId, 'paid', '1', '--key', 'k', '--type', 't'], 'not by both'],
    [['signal', someId, 'paid', '{a:1}'], 'line 1, column 2'],
    [['dead-letters', someId], 'Which letter?'],
    [['dead-letters', '--discard'], 'Which letter?'],
    [['dead-letters', someId, 'x'], 'Say what to do with the letter'],
    [['dead-letters', someId, 'x', '--discard', '--to-topic'], 'one of --to <run>'],
  ])('%j is a usage error: %s', async (argv, expected) => {
    const { code, stdout, stderr } = await cli(argv)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toContain(expected)
    expect(stderr).not.toContain('    at ')
  })

  it('is printed as JSON for callers that want JSON', async () => {
    const { code, stdout, stderr } = await cli(['rusn', '--json'])
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(JSON.parse(stderr)).toEqual({
      error: {
        code: 'INVALID_OPTION',
        family: 'usage',
        message: "Unknown command 'rusn'. (Did you mean runs?) See holdfast --help.",
        details: { parser: 'unknownCommand' },
      },
    })
  })

  it('has its stack only for those who ask', async () => {
    expect((await cli(['show', 'x', '--verbose'])).stderr).toContain('    at ')
    expect((await cli(['show', 'x'], { env: { DEBUG: '1' } })).stderr).toContain('    at ')
    expect((await cli(['show', 'x'], { env: { DEBUG: '0' } })).stderr).not.toContain('    at ')
  })
})

describe('the store', () => {
  const reading = [
    ['runs'],
    ['show', someId],
    ['journal', someId],
    ['export', someId],
    ['watch', someId],
    ['cancel', someId],
    ['pause', someId],
    ['resume', someId],
    ['retry', someId],
    ['remove', someId],
    ['signal', someId, 'paid'],
    ['dead-letters'],
    ['dead-letters', someId, 'x', '--discard'],
  ]

  it.each(reading)('must be named for %s', async (...argv) => {
    const { code, stderr } = await cli(argv)
    expect(code).toBe(2)
    expect(stderr).toMatch(/--store .*HOLDFAST_STORE/)
  })

  it.each(reading)('is not created by %s out of a misspelt path', async (...argv) => {
    const path = join(folder(), 'ap.db')
    const { code, stderr } = await cli([...argv, '--store', `sqlite:${path}`])
    expect(code).toBe(2)
    expect(stderr).toContain(`There is no SQLite file "${path}"`)
    expect(existsSync(path)).toBe(false)
  })

  it.each(['turso', 'libsql'])('%s: of a path where no file is is not made by one that reads', async (scheme) => {
    const path = join(folder(), 'ap.db')
    const { code, stderr } = await cli(['runs', '--store', `${scheme}:${path}`])
    expect(code).toBe(2)
    expect(stderr).toContain(`file "${path}"`)
    expect(existsSync(path)).toBe(false)
  })

  it.each(['sqlite::memory:', 'turso::memory:', 'libsql::memory:'])('%s is refused, too', async (store) => {
    const { code, stderr } = await cli(['runs', '--store', store])
    expect(code).toBe(2)
    expect(stderr).toContain('would always be empty')
  })

  it('of a server that is not there is reported, and its token is not shown', async () => {
    const { code, stdout, stderr } = await cli(['runs', '--store', 'libsql://127.0.0.1:9?tls=0&authToken=secret-token'])
    expect(code).not.toBe(0)
    expect(stderr).toContain('cannot be reached')
    expect(stdout + stderr).not.toContain('secret-token')
  })

  it.each([...reading, ['migrate'], ['start', 'demo.greet']])('in memory is refused for %s', async (...argv) => {
    const { code, stderr } = await cli([...argv, '--store', 'memory:', '--workflows', workflows])
    expect(code).toBe(2)
    expect(stderr).toContain('would always be empty')
  })

  it('of an unknown kind is refused, and no password is shown', async () => {
    const { code, stderr } = await cli(['runs', '--store', 'postgress://me:secret@host/db'])
    expect(code).toBe(2)
    expect(stderr).toContain('STORE_UNKNOWN')
    expect(stderr).not.toContain('secret')
  })

  it('is created by migrate, which may be repeated, and comes from the environment, too', async () => {
    const path = join(folder(), 'app.db')
    const scene = { env: { HOLDFAST_STORE: `sqlite:${path}` } }
    const made = `The tables of sqlite:${path} went from version 0 to ${migrations.length}.\n`
    const kept = `The tables of sqlite:${path} are up to date: version ${migrations.length}, nothing to do.\n`
    expect(await cli(['migrate'], scene)).toEqual({ code: 0, stdout: made, stderr: '' })
    expect(await cli(['migrate'], scene)).toEqual({ code: 0, stdout: kept, stderr: '' })
    expect((await cli(['runs'], scene)).stderr).toBe('No run matches.\n')
    expect((await cli(['--json', 'runs'], scene)).stdout).toBe('{"runs":[],"next":null}\n')
  })

  it('may be named before the command, and the option after it wins', async () => {
    const path = join(folder(), 'app.db')
    const { code } = await cli(['--store', 'memory:', 'migrate', '--store', `sqlite:${path}`])
    expect(code).toBe(0)
    expect(existsSync(path)).toBe(true)
  })

  it('SW-O3 unknown runs are not found, by id or by key', async () => {
    const store = `sqlite:${join(folder(), 'app.db')}`
    await cli(['migrate', '--store', store])
    for (const command of ['show', 'journal', 'watch', 'cancel', 'pause', 'resume', 'retry', 'remove']) {
      const { code, stderr } = await cli([command, someId, '--store', store, '--json'])
      expect({ command, code }).toEqual({ command, code: 3 })
      expect(JSON.parse(stderr)).toMatchObject({ error: { code: 'RUN_NOT_FOUND', family: 'not-found' } })
    }
    expect((await cli(['show', '--key', 'k', '--type', 't', '--store', store])).code).toBe(3)
  })
})

describe('the module', () => {
  const check = (path: string, ...more: string[]) => cli(['check', '--workflows', path, ...more])

  it.each([['worker'], ['start', 'demo.greet'], ['check']])('must be named for %s', async (...argv) => {
    const { code, stderr } = await cli([...argv, '--store', 'sqlite:unused.db'])
    expect(code).toBe(2)
    expect(stderr).toMatch(/--workflows .*HOLDFAST_WORKFLOWS/)
  })

  it('that is not there is reported, with the one that was probably meant', async () => {
    const { code, stderr } = await check('test/cli/workflows')
    expect(code).toBe(2)
    expect(stderr).toContain('There is no module "test/cli/workflows". Did you mean "test/cli/workflows.ts"?')
    expect((await check('./no/such.js')).stderr).toContain('Its folder does not exist either')
    expect((await check('test')).stderr).toContain('There is no module "test"')
  })

  it('that throws is reported with what it threw, and where if --verbose asks', async () => {
    const path = file('throws.mjs', 'throw new Error("no \\u001b[2J luck")')
    const { code, stderr } = await check(path)
    expect(code).toBe(2)
    expect(stderr).toContain('cannot be loaded: no \\x1b[2J luck. Run it with --verbose to see where.')
    expect(stderr).not.toMatch(hazardous)
    expect((await check(path, '--verbose')).stderr).toContain('throws.mjs:1')
    const report = file('report.mjs', 'throw new Error("failed:\\n  file.ts:1: no\\n")')
    expect((await check(report)).stderr).toContain('cannot be loaded: failed: file.ts:1: no')
  })

  it('that exports no workflow is refused with what it exports', async () => {
    const { code, stderr } = await check(file('none.mjs', 'export const price = 5, makeOrder = () => 1'))
    expect(code).toBe(2)
    expect(stderr).toContain('exports no workflow, but only makeOrder, price')
    expect((await check(file('empty.mjs', ''))).stderr).toContain('nothing at all')
  })

  it('that exports an open Holdfast instead of options is refused with that', async () => {
    const { code, stderr } = await check(file('open.mjs', 'export const holdfast = { work() {}, close() {} }'))
    expect(code).toBe(2)
    expect(stderr).toContain('is an open Holdfast')
  })

  it('in TypeScript on a runtime that has none is refused with what to do', () => {
    const fault = Object.assign(new TypeError('Unknown file extension ".ts"'), { code: 'ERR_UNKNOWN_FILE_EXTENSION' })
    expect(loadFault('./flows.ts', fault).message).toContain('NODE_OPTIONS="--import tsx" npx holdfast')
    expect(loadFault('./flows.txt', fault).message).toContain('cannot be loaded: Unknown file extension')
  })

  const definition = (type: string, version = 1): string =>
    `{ type: '${type}', version: ${version}, style: 'function', leaseMs: null, unique: null, tags: [], metadata: null, ` +
    'validate: (input) => input, open() {} }'

  it('is listed by check: types, versions and styles, also from lists', async () => {
    const text = `export const one = ${definition('a.one')}; export default one; export const more = [${definition('a.one', 2)}]`
    const { code, stdout } = await check(file('good.mjs', text), '--json')
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toEqual({
      workflows: [
        { type: 'a.one', version: 1, style: 'function', unique: null },
        { type: 'a.one', version: 2, style: 'function', unique: null },
      ],
      problems: [],
    })
  })

  it('is refused by check with each of its problems', async () => {
    const text = `export const a = ${definition('x.a')}, b = ${definition('x.a')}, c = ${definition('x.c')}, d = ${definition('x.c')}`
    const { code, stdout, stderr } = await check(file('twice.mjs', text), '--json')
    expect(code).toBe(2)
    expect((JSON.parse(stdout) as { problems: unknown[] }).problems).toHaveLength(2)
    expect(JSON.parse(stderr)).toMatchObject({ error: { code: 'INVALID_OPTION', family: 'usage' } })
    const options = `export const a = ${definition('x.a')}; export const holdfast = { codecs: 1 }`
    const misspelt = await check(file('options.mjs', options))
    expect(misspelt.stdout).toContain('Did you mean \\"codec\\"?'.replaceAll('\\', ''))
    expect(misspelt.code).toBe(2)
  })
})

describe('poison in the arguments', () => {
  const texts = poison
    .map(({ name, value }) => [name, value()] as const)
    .filter((one): one is readonly [string, string] => typeof one[1] === 'string' && !one[1].includes('\u0000'))

  const place = mkdtempSync(join(tmpdir(), 'holdfast-cli-'))
  const store = `sqlite:${join(place, 'app.db')}`
  beforeAll(() => cli(['migrate', '--store', store]))
  afterAll(() => rmSync(place, { recursive: true }))

  it.each(texts)('is refused or used without reaching the terminal: %s', async (_, text) => {
    const lines = [
      [text],
      [`--${text}`],
      ['show', text],
      ['check', text],
      ['runs', '--store', text],
      ['runs', '--status', text],
      ['runs', '--store', store, '--type', text],
      ['runs', '--store', store, '--key', text, '--tag', text],
      ['show', '--store', store, '--key', text, '--type', text],
      ['start', text, text, '--store', store, '--workflows', workflows],
      ['start', text, '--store', store, '--workflows', workflows],
      ['resume', someId, '--result', `1=${text}`],
      ['pause', someId, '--reason', text],
    ]
    for (const line of lines) {
      for (const json of [[], ['--json']]) {
        const { stdout, stderr, code } = await cli([...line, ...json], { terminal: 80 })
        expect(withoutColours(stdout + stderr)).not.toMatch(hazardous)
        expect([0, 2, 3]).toContain(code)
      }
    }
  })
})

describe('exit codes', () => {
  it('say who must act, for every error that there is', () => {
    const codes = new Set(errorCodes.map((code) => exitCodeOf(new HoldfastError(code, ''))))
    const documented = new Set(exitCodeRows.map(([code]) => code))
    for (const code of codes) expect(documented).toContain(code)
    expect(exitCodeOf(new Error('what?'))).toBe(1)
    expect(exitCodeOf(new HoldfastError('BUG', ''))).toBe(70)
  })

  it('are those of docs/cli.md', () => {
    const rows = [...readFileSync('docs/cli.md', 'utf8').matchAll(/^\| (\d+) +\| (.*?) +\|$/gm)]
    expect(rows.map(([, code, meaning]) => [Number(code), meaning])).toEqual(exitCodeRows)
  })
})
