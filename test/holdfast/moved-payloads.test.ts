// An attacker who can write to the database, but has no key, can put no text where another one stands: neither one that was encrypted
// for another place, nor one of their own.

import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createHoldfast, workflow, type JournalEntry, type Offload } from 'holdfast'
import { encryptingCodec } from 'holdfast/encryption'
import { openPostgresStore } from 'holdfast/postgres'
import { isHoldfastError } from '../../src/core/errors/error.ts'
import { freshSchema } from '../support/postgres-shared.ts'
import { canary, canaryForms, EncryptedFile, workflows, writeEverything, type Row } from './encrypted-corpus.ts'
import { gate, settled, until } from './gate.ts'
import { keepLines } from './open.ts'

function isCorrupt(act: () => unknown): boolean {
  try {
    act()
  } catch (error) {
    if (isHoldfastError(error, 'PAYLOAD_CORRUPT')) return true
    throw error
  }
  return false
}

const labelOf = ({ table, place }: Row): string => `${table} ${JSON.stringify(place)}`

describe('of all encrypted texts in a database', () => {
  it('none is read in the place of another, whichever two are swapped', async () => {
    const file = new EncryptedFile()
    await file.fill()
    const rows = file.rows()
    // Nothing is left out: whatever writes a payload stands here.
    const kinds = new Set(rows.map(({ table, place }) => `${table} ${place.kind}`))
    const expected = {
      journal:
        'started continued step-succeeded step-failed attempt-failed recorded woken logged issued exposed progressed amended ' +
        'failing undo-attempt-failed undo-failed succeeded failed paused resumed retried',
      messages: 'signal topic-signal broadcast succeeded failed',
      broadcasts: 'broadcast topic-signal',
      // What is asked of the holder of a run.
      runs: 'paused',
    }
    const all = Object.entries(expected).flatMap(([table, listed]) =>
      listed.split(' ').map((kind) => `${table} ${kind}`),
    )
    expect(kinds).toEqual(new Set(all))
    const wrong: string[] = []
    let pairs = 0
    for (const here of rows) {
      if (isCorrupt(() => file.payloads.decode(here.text, here.place))) wrong.push(`${labelOf(here)} cannot be read`)
      for (const there of rows) {
        // What a topic passes on, or a run ended with, stands in several rows as the same text.
        if (there.text === here.text) continue
        pairs += 1
        if (!isCorrupt(() => file.payloads.decode(there.text, here.place))) {
          wrong.push(`${labelOf(there)} is read as ${labelOf(here)}`)
        }
      }
    }
    expect(wrong).toEqual([])
    expect(pairs).toBeGreaterThan(2_000)
  })

  it('none that was moved into an entry is shown by journal(), and none into a dead letter by deadLetters()', async () => {
    const file = new EncryptedFile()
    await file.fill()
    const holdfast = await file.open()
    const rows = file.rows()
    const entries = rows.filter(({ table, place }) => table === 'journal' && place.kind !== 'issued')
    for (const [at, here] of entries.entries()) {
      for (const step of [1, 7, 19]) {
        const there = entries[(at + step) % entries.length] as Row
        file.put(here, there.text)
        const [{ runId }, { seq }] = [here.place, here]
        expect([labelOf(here), await isMarked(holdfast.journal(runId, { after: seq - 1, limit: 1 }))]).toEqual([
          labelOf(here),
          true,
        ])
        file.put({ ...here, text: there.text }, here.text)
      }
      await holdfast.journal(here.place.runId, { after: here.seq - 1, limit: 1 })
    }
    // One id went to two runs: each has its own.
    const letters = async (): Promise<ReadonlySet<unknown>> => {
      const found = (await holdfast.deadLetters()).letters.map(({ payload }) => payload)
      return new Set(found.map((payload) => (payload as { readonly code?: string }).code ?? payload))
    }
    expect(await letters()).toEqual(new Set([`${canary} one`, `${canary} two`]))
    const [one, two] = rows.filter(({ place }) => place.id === 'letter') as [Row, Row]
    file.put(one, two.text)
    expect(await letters()).toEqual(new Set(['PAYLOAD_CORRUPT', `${canary} two`]))
  })

  it('nothing of a secret is in the files in the clear: not in progress, notes, logs, signals, errors or dead letters', async () => {
    const file = new EncryptedFile()
    await file.fill()
    const files = readdirSync(file.folder).map((name) => readFileSync(join(file.folder, name), 'latin1'))
    expect(files.some((text) => text.includes('everything'))).toBe(true)
    for (const form of canaryForms) expect(files.some((text) => text.includes(form))).toBe(false)
  })

  it('nothing of a secret is in any column of any table on Postgres: not in progress, notes, logs, signals, errors or dead letters', async () => {
    const { url, schema } = await freshSchema()
    const store = await openPostgresStore({ url, schema })
    onTestFinished(() => store.close())
    const codec = encryptingCodec({ keys: { k1: randomBytes(32) }, current: 'k1' })
    const address = `${url}?schema=${schema}`
    await writeEverything(await createHoldfast({ store: address, codec, workflows, logger: keepLines() }), store)
    const attacker = new Client({ connectionString: url })
    await attacker.connect()
    onTestFinished(() => attacker.end())
    const tables = await attacker.query<{ readonly name: string }>(
      `select relname as name from pg_class where relnamespace = $1::regnamespace and relkind in ('r', 'p', 'm', 'v')`,
      [schema],
    )
    const encrypted: string[] = []
    for (const { name } of tables.rows) {
      const { rows } = await attacker.query<{ readonly text: string }>(
        `select (one.*)::text as text from ${schema}.${name} one`,
      )
      const text = rows.map((row) => row.text).join('\n')
      for (const form of canaryForms) expect([name, text.includes(form)]).toEqual([name, false])
      if (text.includes('enc1.k1.')) encrypted.push(name)
    }
    // Whatever holds a payload was read.
    expect(encrypted.toSorted()).toEqual(['broadcasts', 'journal', 'messages', 'runs'])
  }, 60_000)
})

/** Whether a journal shows an entry as unreadable, and nothing of what stands there. */
async function isMarked(journal: Promise<readonly JournalEntry[]>): Promise<boolean> {
  return (await journal).some(({ unreadable, data }) => unreadable !== undefined && data === undefined)
}

const listener = workflow('listener', { retry: 'none' }, async (ctx, _input: string) => {
  const first = await ctx.receive('pay')
  return [first, await ctx.receive('pay')]
})
const parent = workflow('parent', { retry: 'none' }, async (ctx, input: string) => {
  await ctx.receive('begin')
  return ctx.child(child, input)
})
const child = workflow('child', async (ctx, _input: string) => ctx.receive('end'))

const all = [...workflows, listener, parent, child]

/** Lets workers have a go, until the run moves no more. */
async function restOf(file: EncryptedFile, runId: string): Promise<{ status: string; story: readonly string[] }> {
  const holdfast = await file.open({ workflows: all })
  await holdfast.work({ signals: false })
  const run = holdfast.run(runId)
  await until(async () => ['failed', 'paused', 'succeeded', 'cancelled'].includes(await run.status()))
  const status = await run.status()
  await holdfast.close()
  const rows = file.attacker.prepare('select kind from journal where run_id = ? order by seq').all(runId)
  return { status, story: (rows as { readonly kind: string }[]).map(({ kind }) => kind) }
}

describe('a ciphertext moved', () => {
  it('from one signal of a run to another is refused, and the body does not see it', async () => {
    const file = new EncryptedFile()
    const holdfast = await file.open({ workflows: all })
    const run = await holdfast.start(listener, 'x')
    await holdfast.signal(run, 'pay', 1, { id: 'one' })
    await holdfast.signal(run, 'pay', 1_000_000, { id: 'two' })
    await holdfast.close()
    const [one, two] = file.rows().filter(({ table }) => table === 'messages') as [Row, Row]
    file.put(one, two.text)
    const { status, story } = await restOf(file, run.id)
    expect(status).not.toBe('succeeded')
    expect(story).not.toContain('woken')
  })

  it('from a signal of another name is refused, also if its row is given the name', async () => {
    const file = new EncryptedFile()
    const holdfast = await file.open({ workflows: all })
    const run = await holdfast.start(listener, 'x')
    await holdfast.signal(run, 'refuse', 1, { id: 'one' })
    await holdfast.close()
    file.attacker.prepare(`update messages set name = 'pay'`).run()
    const { status, story } = await restOf(file, run.id)
    expect(status).not.toBe('succeeded')
    expect(story).not.toContain('woken')
  })

  it('from the input of a child to its output is refused, whatever place the row names', async () => {
    const file = new EncryptedFile()
    const holdfast = await file.open({ workflows: all })
    const worker = await holdfast.work({ signals: false })
    const run = await holdfast.start(parent, 'input')
    await holdfast.signal(run, 'begin')
    await until(async () => (await holdfast.find({ type: 'child', status: 'waiting' })).runs.length === 1)
    await until(async () => (await run.status()) === 'waiting')
    await worker.stop()
    const [started] = (await holdfast.find({ type: 'child' })).runs
    const input = file.rows().find(({ place }) => place.runId === started?.id && place.kind === 'started') as Row
    // The child ends without its parent being looked at, and the attacker rewrites what the parent gets.
    await holdfast.cancel(started?.id ?? '')
    await holdfast.close()
    const data = JSON.stringify({ status: 'succeeded', seq: 1, data: input.text, reason: null })
    const { changes } = file.attacker.prepare(`update messages set data = ? where kind = 'ended'`).run(data)
    expect(changes).toBe(1)
    const { status, story } = await restOf(file, run.id)
    expect(status).not.toBe('succeeded')
    expect(story.filter((kind) => kind === 'woken')).toHaveLength(1)
  })

  it('from the input of another run into what a run received is refused, whatever its meta says of where it came from', async () => {
    const file = new EncryptedFile()
    const holdfast = await file.open({ workflows: all })
    const worker = await holdfast.work({ signals: false })
    const victim = await holdfast.start(listener, 'victim')
    const other = await holdfast.start(listener, 'paid 1000000 to EVIL')
    await holdfast.signal(victim, 'pay', 1, { id: 'one' })
    await until(async () => (await holdfast.journal(victim)).some(({ kind }) => kind === 'woken'))
    await until(async () => (await victim.status()) === 'waiting')
    await worker.stop()
    const rows = file.rows()
    const woken = rows.find(({ place }) => place.kind === 'woken') as Row
    const input = rows.find(({ place }) => place.runId === other.id && place.kind === 'started') as Row
    file.put(woken, input.text)
    const place = JSON.stringify({ runId: other.id, seq: 1, name: null })
    file.attacker
      .prepare(`update journal set meta = json_set(meta, '$.by.place', json(?)) where kind = 'woken'`)
      .run(place)
    expect(await isMarked(holdfast.journal(victim))).toBe(true)
    await holdfast.signal(victim, 'pay', 2)
    await holdfast.close()
    expect((await restOf(file, victim.id)).status).not.toBe('succeeded')
  })

  it('with its reference to where large payloads lie is refused, and a receiver keeps one of its own', async () => {
    const objects = new Map<string, string>()
    const offload: Offload = {
      thresholdBytes: 200,
      put: async (text, { runId, seq, kind, id }) => {
        const reference = `${runId}/${seq}/${kind}/${id}`
        objects.set(reference, text)
        return reference
      },
      get: async (reference) => objects.get(reference) ?? '',
    }
    const file = new EncryptedFile()
    const holdfast = await file.open({ workflows: all, offload })
    const run = await holdfast.start(listener, 'x')
    const [one, two] = ['1', '2'].map((digit) => digit.repeat(500)) as [string, string]
    await holdfast.signal(run, 'pay', one, { id: 'one' })
    await holdfast.signal(run, 'pay', two, { id: 'two' })
    await holdfast.work({ signals: false })
    expect(await run.result()).toEqual([one, two])
    const woken = (await holdfast.journal(run)).filter(({ kind }) => kind === 'woken')
    expect(woken.map(({ data }) => data)).toEqual([one, two])
    expect([...objects.keys()].filter((reference) => reference.includes('/woken/'))).toHaveLength(2)
    const [first] = woken
    const references = file.attacker.prepare(`select data from journal where kind = 'woken' order by seq`).all()
    const [, moved] = references as { readonly data: string }[]
    file.attacker
      .prepare('update journal set data = ? where run_id = ? and seq = ?')
      .run(moved?.data, run.id, first?.seq)
    expect(await isMarked(holdfast.journal(run))).toBe(true)
  })
})

describe('forged plaintext', () => {
  const mark = '\u0001plain:'
  const forgeries = [
    `${mark}{"$error":{"name":"Error","message":"paid 1000000 to EVIL","props":{"paid":1000000}}}`,
    `${mark}{"code":"RUN_CRASHED","message":"paid 1000000 to EVIL"}`,
    `${mark}"paid 1000000 to EVIL"`,
    '"paid 1000000 to EVIL"',
  ]

  it.each(forgeries)('%j is no value anywhere, with readPlain off', async (forged) => {
    const file = new EncryptedFile()
    await file.fill()
    const holdfast = await file.open()
    for (const row of file.rows()) {
      const { kind, runId } = row.place
      const { seq } = row
      if (row.table !== 'journal' || kind === 'issued' || /fail/.test(kind)) continue
      file.put(row, forged)
      expect([labelOf(row), await isMarked(holdfast.journal(runId, { after: seq - 1, limit: 1 }))]).toEqual([
        labelOf(row),
        true,
      ])
      file.put({ ...row, text: forged }, row.text)
    }
  })

  it.each(forgeries)('%j left in a mailbox is not read', async (forged) => {
    const file = new EncryptedFile()
    const holdfast = await file.open({ workflows: all })
    const run = await holdfast.start(listener, 'x')
    await holdfast.signal(run, 'pay', 1)
    await holdfast.close()
    const [message] = file.rows().filter(({ table }) => table === 'messages') as [Row]
    file.put(message, forged)
    const { status, story } = await restOf(file, run.id)
    expect(status).not.toBe('succeeded')
    expect(story).not.toContain('woken')
  })

  it('where a failure is expected is a code and a message of the engine, or nothing', async () => {
    const file = new EncryptedFile()
    await file.fill()
    const holdfast = await file.open()
    for (const row of file.rows()) {
      if (row.table !== 'journal' || !/fail/.test(row.place.kind)) continue
      const { runId, seq } = row.place
      const read = async (text: string): Promise<unknown> => {
        file.put(row, text)
        const [entry] = await holdfast.journal(runId, { after: seq - 1, limit: 1 })
        return entry?.unreadable === undefined ? entry?.data : 'unreadable'
      }
      for (const forged of forgeries) {
        if (forged === forgeries[1]) {
          const error = (await read(forged)) as Error
          expect(JSON.stringify(error)).toBe(
            '{"name":"HoldfastError","code":"RUN_CRASHED","message":"paid 1000000 to EVIL","details":{}}',
          )
        } else expect(await read(forged)).toBe('unreadable')
        file.put({ ...row, text: forged }, row.text)
      }
    }
  })
})

describe('what is written beside others', () => {
  it('the result of a step beside which others with an undo run is read again by the next process', async () => {
    const file = new EncryptedFile()
    const undo = (): void => undefined
    const [fast, slow] = [gate(), gate()]
    const both = workflow('both', { retry: 'none' }, async (ctx) => {
      const first = ctx.step('fast', () => fast.passed.then(() => 'fast'), { undo })
      const second = ctx.step('slow', () => slow.passed.then(() => 'slow'), { undo })
      return [await first, await second, await ctx.receive('go')]
    })
    const before = await file.open({ workflows: [both] })
    await before.work({ signals: false })
    const run = await before.start(both)
    await settled()
    fast.open()
    await settled()
    slow.open()
    await until(async () => (await run.status()) === 'waiting')
    const story = (await before.journal(run)).map(({ kind, name }) => `${kind} ${name}`)
    expect(story.slice(1, 4)).toEqual(['begun fast', 'begun slow', 'step-succeeded fast'])
    await before.close()
    const after = await file.open({ workflows: [both] })
    await after.work({ signals: false })
    await after.signal(run.id, 'go', 'went')
    expect(await after.run(run.id).result()).toEqual(['fast', 'slow', 'went'])
  })
})
