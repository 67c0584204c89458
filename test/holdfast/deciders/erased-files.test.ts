// After the key of a data subject is destroyed its data is nowhere in the files of the database: neither in plain text, nor in a
// form that the other keys open.

import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'libsql'
import { Client } from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createHoldfast, decider, decision, type Codec, type HoldfastOptions } from 'holdfast'
import { encryptingCodec, subjectKeysIn } from 'holdfast/encryption'
import { migratedSchema } from '../../support/postgres-shared.ts'

type Signed = { readonly type: 'Signed'; readonly customer: string; readonly mail: string }
const member = decider('member', {
  initial: () => [] as readonly Signed[],
  evolve: (signed, event: Signed) => [...signed, event].slice(-1),
  decide: (_signed, { customer, mail }: { type: 'Sign'; customer: string; mail: string }) =>
    decision({ type: 'Signed', customer, mail }).effect({ type: 'greet', customer, mail }),
  id: 'customer',
  effects: { greet: () => undefined },
  snapshotEvery: 5,
})

function folder(): string {
  const place = mkdtempSync(join(tmpdir(), 'holdfast-erased-'))
  onTestFinished(() => rmSync(place, { recursive: true }))
  return place
}

/** The forms in which a text could be found. */
function formsOf(text: string): readonly Buffer[] {
  const inner = text.slice(2, -2)
  return [
    Buffer.from(text),
    Buffer.from(text, 'utf16le'),
    Buffer.from(inner.slice(0, 30)),
    Buffer.from(text.toUpperCase()),
  ].flatMap((form) => [
    form,
    Buffer.from(form.toString('hex')),
    Buffer.from(form.toString('base64').replaceAll('=', '').slice(0, -1)),
  ])
}

/** The files that hold one of these, of those that have changed since then. */
function filesWith(place: string, forms: readonly Buffer[], since = 0): readonly string[] {
  return readdirSync(place, { recursive: true, encoding: 'utf8' }).filter((name) => {
    try {
      const path = join(place, name)
      const { mtimeMs } = statSync(path)
      if (!statSync(path).isFile() || mtimeMs < since) return false
      const content = readFileSync(path)
      return forms.some((form) => content.includes(form))
    } catch {
      // The server has removed it meanwhile.
      return false
    }
  })
}

interface Erased {
  /** Of the subject that was erased. */
  readonly ada: string
  readonly bob: string
}

/** Two members sign several times, one is erased, and encryption begins anew under another key. */
async function eraseAda(options: Pick<HoldfastOptions, 'store'>, isEncrypted = true): Promise<Erased> {
  const subjectKeys = subjectKeysIn(join(folder(), 'keys'))
  const of = (value: unknown): string | null => {
    const [first] = Array.isArray(value) ? (value as readonly unknown[]) : [value]
    return (first as { readonly customer?: string } | null | undefined)?.customer ?? null
  }
  const keys = { a: randomBytes(32), b: randomBytes(32) }
  const codec = (current: string): { readonly codec?: Codec } =>
    isEncrypted ? { codec: encryptingCodec({ keys, current, subjects: { of, keys: subjectKeys } }) } : {}
  const mails = {
    ada: `ada-${randomBytes(20).toString('hex')}@example.com`,
    bob: `bob-${randomBytes(20).toString('hex')}@example.com`,
  }
  const before = await createHoldfast({ ...options, workflows: [member], ...codec('a'), logger: quiet })
  for (const customer of ['ada', 'bob'] as const) {
    for (let times = 0; times < 3; times += 1)
      await before.execute(member, { type: 'Sign', customer, mail: mails[customer] })
  }
  await before.close()
  subjectKeys.destroy('ada')
  const after = await createHoldfast({ ...options, workflows: [member], ...codec('b'), logger: quiet })
  onTestFinished(() => after.close())
  if (!isEncrypted) return mails
  expect(await after.state(member, 'ada')).toEqual([])
  expect(await after.state(member, 'bob')).toMatchObject([{ mail: mails.bob }])
  expect(await after.rekey()).toMatchObject({ unreadable: 0 })
  expect(await after.state(member, 'ada')).toEqual([])
  expect(await after.state(member, 'bob')).toMatchObject([{ mail: mails.bob }])
  return mails
}

const quiet = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }

describe('the data of an erased subject', () => {
  it('IF-V2 is nowhere in a SQLite file and its log, and what is left of it has no ciphertext', async () => {
    const place = folder()
    const { ada, bob } = await eraseAda({ store: `sqlite:${join(place, 'app.db')}` })
    expect(filesWith(place, [...formsOf(ada), ...formsOf(bob)])).toEqual([])
    const db = new Database(join(place, 'app.db'))
    db.exec('pragma wal_checkpoint(truncate)')
    db.exec('vacuum')
    const rows = db.prepare("select data from journal where data like 'enc2.%'").all() as { readonly data: string }[]
    db.close()
    expect(filesWith(place, [...formsOf(ada), ...formsOf(bob)])).toEqual([])
    const ofAda = rows.filter(({ data }) => data.startsWith('enc2.b.YWRh.'))
    expect(ofAda.length).toBeGreaterThan(5)
    expect(ofAda.filter(({ data }) => data !== 'enc2.b.YWRh.')).toEqual([])
    expect(rows.length).toBeGreaterThan(ofAda.length)
    // The same without encryption is found: the search finds what is there.
    const plain = folder()
    const known = await eraseAda({ store: `sqlite:${join(plain, 'app.db')}` }, false)
    expect(filesWith(plain, formsOf(known.ada)).length).toBeGreaterThan(0)
  })

  it('IF-V2 is nowhere in the data folder of Postgres after a checkpoint', async () => {
    const { url, schema } = await migratedSchema()
    const client = new Client({ connectionString: url })
    await client.connect()
    onTestFinished(() => client.end())
    const { rows } = await client.query<{ readonly data_directory: string }>('show data_directory')
    const place = rows[0]?.data_directory ?? ''
    const since = Date.now() - 5_000
    const { ada, bob } = await eraseAda({ store: `${url}?schema=${schema}` })
    await client.query('checkpoint')
    expect(filesWith(place, [...formsOf(ada), ...formsOf(bob)], since)).toEqual([])
    const other = await migratedSchema()
    const known = await eraseAda({ store: `${other.url}?schema=${other.schema}` }, false)
    await client.query('checkpoint')
    expect(filesWith(place, formsOf(known.ada), since).length).toBeGreaterThan(0)
  }, 60_000)
})
