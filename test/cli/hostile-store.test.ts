// A store and files in which every text is an attack on the terminal: an attacker who can write rows, or hand over an export, must not
// reach the user who looks at them. Each command is run over them, for a terminal, for a pipe and for a program.

import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'libsql'
import { describe, expect, it } from 'vitest'
import { createHoldfast, type ExportedRun } from '../../src/index.ts'
import { exitCodeRows } from '../../src/cli/exit-code.ts'
import { cli, folder, hazardous, withoutColours, type Scene } from './world.ts'
import * as workflows from './workflows.ts'

/** Fills the clipboard, clears the screen, sets the title, hides, forges a line and a colour, turns the writing, hides a letter. */
const attack = [
  '\u001B]52;c;ZXZpbA==\u0007',
  '\u001B[2J\u001B[1;1H',
  '\u001B]0;title\u001B\\',
  '\u001B[8m',
  '\u009B2J',
  '\r\nFORGED LINE\u0085FORGED LINE\u2028FORGED LINE',
  '\u001B[31mFORGED COLOUR\u001B[39m',
  '\u202Eevil\u2066\u200Bkey\u200D\uFEFF\u3164',
  "'; drop table runs; --",
].join('')

const quiet = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }
const module = 'test/cli/workflows.ts'

interface Hostile {
  readonly store: string
  readonly place: string
  readonly ids: readonly string[]
  readonly exported: ExportedRun
}

async function hostileStore(): Promise<Hostile> {
  const place = folder()
  const path = join(place, 'app.db')
  const store = `sqlite:${path}`
  const holdfast = await createHoldfast({ store, workflows, logger: quiet })
  const worker = await holdfast.work({ signals: false })
  const tagged = { tags: ['tag'], metadata: { note: 'note' } }
  const done = await holdfast.start(workflows.greet, 'Ada', { ...tagged, key: 'done' })
  const failed = await holdfast.start(workflows.fail, attack, { ...tagged, idempotencyKey: 'failed' })
  const asleep = await holdfast.start(workflows.sleepy, undefined, { ...tagged, parent: done })
  const removed = await holdfast.start(workflows.greet, attack, { ...tagged, key: 'removed' })
  for (const run of [done, failed, removed]) await run.result().catch(() => undefined)
  await expect.poll(async () => (await holdfast.get(asleep)).status).toBe('waiting')
  await holdfast.signal(asleep, attack.replaceAll(/\p{Cc}|\u2028/gu, ''), attack)
  await holdfast.remove(removed, { reason: attack })
  await worker.stop()
  const late = await holdfast.start(workflows.sleepy)
  await holdfast.signal(late, workflows.paid, { amount: 1 }, { id: 'letter' })
  await holdfast.cancel(late, { reason: attack })
  const exported = await holdfast.export(done)
  await holdfast.close()
  spoil(path, done.id)
  return { store, place, ids: [done.id, failed.id, asleep.id, removed.id, late.id], exported }
}

/** Writes the attack over every text that is not needed to find the row. */
function spoil(path: string, copied: string): void {
  const db = new Database(path)
  const json = JSON.stringify(attack)
  db.prepare(`update runs set "key" = "key" || ? where "key" is not null`).run([attack])
  db.prepare(`update runs set idempotency_key = idempotency_key || ? where idempotency_key is not null`).run([attack])
  db.prepare('update runs set parent_id = ?, metadata = ?, tags = ?').run([attack, `{${json}:${json}}`, `[${json}]`])
  db.prepare(`update journal set name = name || ? where kind in ('waiting', 'woken') or seq % 2 = 0`).run([attack])
  db.prepare(`update journal set data = ? where kind = 'step-succeeded'`).run([json])
  db.prepare(`update messages set id = id || ?, name = ? where on_unread is null`).run([attack, attack])
  db.prepare(`update messages set data = ?`).run([json])
  const columns = (db.prepare(`select name from pragma_table_info('runs')`).all([]) as { readonly name: string }[])
    .map(({ name }) => name)
    .filter((name) => name !== 'unique_key' && name !== 'idempotency_key')
  const list = columns.map((name) => `"${name}"`).join(', ')
  const values = columns.map((name) => (name === 'id' || name === 'type' ? `"${name}" || ?` : `"${name}"`)).join(', ')
  db.prepare(`insert into runs (${list}) select ${values} from runs where id = ?`).run([attack, attack, copied])
  db.close()
}

function expectHarmless(text: string): void {
  expect(withoutColours(text)).not.toMatch(hazardous)
  expect(text).not.toContain('\u001B[31mFORGED')
  expect(text.split('\n').filter((line) => /^\s*FORGED/.test(line))).toEqual([])
}

const scenes: readonly (readonly [string, readonly string[], Scene])[] = [
  ['a terminal', [], { terminal: 100 }],
  ['a wide terminal', ['--verbose'], { terminal: 10_000 }],
  ['a pipe', [], {}],
  ['a program', ['--json'], {}],
]

/** In every scene at once: a run that has drifted is waited for, for some seconds. */
async function expectAllHarmless(argv: readonly string[]): Promise<string> {
  const endings = await Promise.all(scenes.map(([, more, scene]) => cli([...argv, ...more], scene)))
  for (const { stdout, stderr, code } of endings) {
    expectHarmless(stdout)
    // The bar of a long command begins its line anew, and ends in it.
    expectHarmless(argv[0] === 'check' ? stderr.replaceAll(/\r(?=█| *\r)|(?<= )\r/g, '') : stderr)
    expect(exitCodeRows.map(([known]) => known)).toContain(code)
  }
  return endings.map(({ stdout, stderr }) => stdout + stderr).join('')
}

describe('what an intruder wrote into the store', () => {
  it('reaches the terminal of no command that looks', async () => {
    const { store, ids } = await hostileStore()
    const at = ['--store', store]
    const lists = [
      ['runs', ...at],
      ['runs', '--deleted', ...at],
      ['runs', '--limit', '1', ...at],
      ['dead-letters', ...at],
      ['dead-letters', '--limit', '1', ...at],
      ['doctor', ...at],
      ['check', module, '--against', store],
      ['check', module, '--against', store, '--ended'],
      ['migrate', '--dry-run', ...at],
    ]
    let all = (await Promise.all(lists.map(expectAllHarmless))).join('')
    for (const id of ids) {
      for (const command of ['show', 'journal', 'export']) all += await expectAllHarmless([command, id, ...at])
    }
    for (const id of ids.slice(0, 2)) all += await expectAllHarmless(['watch', id, ...at])
    // It was there to be shown.
    expect(all.split('FORGED').length).toBeGreaterThan(100)
  })

  it('reaches the terminal of no command that steers', async () => {
    const { store, ids } = await hostileStore()
    const at = ['--store', store]
    for (const command of ['pause', 'resume', 'cancel', 'retry', 'remove']) {
      for (const id of ids) await expectAllHarmless([command, id, ...at])
    }
    for (const id of ids) await expectAllHarmless(['signal', id, 'go', '1', '--id', 'one', ...at])
    await expectAllHarmless(['start', 'demo.greet', '"Ada"', '--key', 'done', '--workflows', module, ...at])
    await expectAllHarmless(['dead-letters', ids[4] ?? '', 'letter', '--to-topic', '--workflows', module, ...at])
    await expectAllHarmless(['dead-letters', ids[4] ?? '', 'letter', '--discard', ...at])
  })
})

describe('what an intruder wrote into an export', () => {
  it('is refused where it is no id, kind or name, and reaches no terminal where it is text', async () => {
    const { place, exported } = await hostileStore()
    const { run, entries } = exported
    const [first, second, ...rest] = entries
    const spoilt: Readonly<Record<string, unknown>> = {
      id: { ...exported, run: { ...run, id: attack } },
      type: { ...exported, run: { ...run, type: attack } },
      kind: { ...exported, entries: [first, { ...second, kind: attack }, ...rest] },
      name: { ...exported, entries: [first, { ...second, name: attack }, ...rest] },
      hidden: { ...exported, entries: [first, { ...second, name: 'greet\u202E\u200B' }, ...rest] },
      data: { ...exported, entries: [first, { ...second, data: JSON.stringify(attack) }, ...rest] },
      broken: { ...exported, entries: [first, { ...second, data: attack }, ...rest] },
      format: { ...exported, format: attack },
    }
    const codes = await Promise.all(
      Object.entries(spoilt).map(async ([name, value]) => {
        const path = join(place, `${name}.json`)
        writeFileSync(path, JSON.stringify(value))
        const argv = ['check', module, '--against', path]
        const [{ code }] = await Promise.all([cli(argv), expectAllHarmless(argv)])
        return [name, code] as const
      }),
    )
    expect(Object.fromEntries(codes)).toEqual({
      id: 2,
      type: 2,
      kind: 2,
      name: 2,
      hidden: 6,
      data: 6,
      broken: 6,
      format: 2,
    })
    writeFileSync(join(place, `${attack.replaceAll('/', '')}.json`), '{}')
    await expectAllHarmless(['check', module, '--against', place])
  })
})

describe('the command line', () => {
  it('writes in one place, which obeys only our colours', () => {
    const files = readdirSync('src/cli', { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'))
    expect(files).toContain('output/printer.ts')
    const writing = files.filter((name) => {
      const text = readFileSync(join('src/cli', name), 'utf8')
      return /\b(?:stdout|stderr|stream)\.write\(|\bconsole\./.test(text)
    })
    // main.ts makes the streams, and program.ts prints help, which holds nothing of anybody else's.
    expect(writing.toSorted()).toEqual(['main.ts', 'output/printer.ts', 'program.ts'])
  })
})
