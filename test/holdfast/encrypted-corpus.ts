// A SQLite file in which every kind of payload stands, encrypted: every kind of entry that a function writes, what lies in
// mailboxes and topics, and dead letters. And an attacker who can write to that file without having a key.

import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'libsql'
import { onTestFinished } from 'vitest'
import { createHoldfast, topic, workflow, type Codec, type Holdfast, type HoldfastOptions, type Store } from 'holdfast'
import { encryptingCodec } from 'holdfast/encryption'
import { openSqliteStore } from 'holdfast/sqlite'
import type { EntryKind } from '../../src/core/model/entry.ts'
import { endedIn } from '../../src/core/model/engine-message.ts'
import type { Ended, Message } from '../../src/core/model/message.ts'
import { Payloads } from '../../src/core/payload/payload.ts'
import { controlRequestPlace, endPlace, messagePlace, topicPlace, type Place } from '../../src/core/payload/place.ts'
import { until } from './gate.ts'
import { keepLines } from './open.ts'

export const canary = 'correct-horse-battery-staple'

/** The secret as it might stand in a database: as text, in hex, and in base64 behind any number of other bytes. */
export const canaryForms: readonly string[] = [
  canary,
  Buffer.from(canary).toString('hex'),
  ...['', 'x', 'xx'].map((before) =>
    Buffer.from(before + canary)
      .toString('base64')
      .slice(4, -4),
  ),
]

const news = topic<string>('news', { retain: '1 day' })
const nearNews = topic<string>('news:a', { retain: '1 day' })
const jobs = topic<string>('jobs', { delivery: 'one', onUnread: 'broadcast' })
const paid = topic<string>('paid', { onUnread: 'dead-letter' })

const good = workflow('good', async (_ctx, input: string) => `${input} out`)
const bad = workflow('bad', { retry: 'none' }, async (_ctx, input: string) => {
  throw new Error(`${input} lost`)
})

const everything = workflow('everything', { retry: { maxAttempts: 2, initial: 0 } }, async (ctx, round: Round) => {
  ctx.log(`at ${round.secret}`, { secret: round.secret })
  ctx.progress(0.5, `half of ${round.secret}`)
  ctx.expose('shown', round.secret)
  ctx.expose('token', ctx.token().token)
  ctx.uuid()
  await ctx.step('twice', ({ attempt }) => {
    if (attempt === 1) throw new Error(`once more for ${round.secret}`)
    return round.secret
  })
  await ctx.step('never', () => Promise.reject(new Error(round.secret)), { retry: 'none' }).catch(() => undefined)
  await ctx.receive('go')
  await ctx.receive(news)
  await ctx.receive(paid)
  await ctx.child(good, round.secret)
  await ctx.child(bad, round.secret).then(undefined, () => undefined)
  if (!round.isLast) return ctx.continueAsNew({ ...round, isLast: true })
  return round.secret
})

interface Round {
  readonly secret: string
  readonly isLast: boolean
}

const undone = workflow('undone', { retry: { maxAttempts: 2, initial: 0 } }, async (ctx, secret: string) => {
  const stuck = (): never => {
    throw new Error(`not undone: ${secret}`)
  }
  await ctx.step('kept', () => secret, { undo: stuck })
  throw new Error(`failed with ${secret}`)
})

const waiting = workflow('waiting', async (ctx, secret: string) => {
  const found = await ctx.step('found', () => secret)
  return [found, await ctx.receive('never')]
})

const queued = workflow('queued', async (ctx, _input: string) => ctx.receive(jobs))

export const workflows = [good, bad, everything, undone, waiting, queued]

/** Writes one of everything with this Holdfast, and closes it. The store is another way to the same database. */
export async function writeEverything(holdfast: Holdfast, store: Store): Promise<void> {
  const worker = await holdfast.work()
  await holdfast.broadcast(news, canary, { id: 'a:b' })
  await holdfast.broadcast(news, canary, { id: 'second' })
  await holdfast.broadcast(nearNews, canary, { id: 'b' })
  const all = await holdfast.start(everything, { secret: canary, isLast: false })
  for (const round of [1, 2]) {
    await holdfast.signal(all, 'go', `${canary} ${round}`, { id: `go-${round}` })
    await holdfast.signal(all, paid, `${canary} ${round}`, { id: `paid-${round}` })
  }
  await all.result()
  const failed = await holdfast.start(undone, canary)
  await failed.result().catch(() => undefined)
  for (const note of ['retried for', 'not retried for']) {
    const lost = await holdfast.start(bad, canary)
    await lost.result().catch(() => undefined)
    await holdfast.retry(lost, { note: `${note} ${canary}` })
    await lost.result().catch(() => undefined)
  }
  const mended = await holdfast.start(waiting, canary)
  await until(async () => (await mended.status()) === 'waiting')
  await holdfast.pause(mended, { note: `paused for ${canary}` })
  const step = (await holdfast.journal(mended)).find(({ kind }) => kind === 'step-succeeded')
  const amend = [{ seq: step?.seq ?? 0, result: `${canary} mended` }]
  await holdfast.resume(mended, { amend, note: `resumed for ${canary}` })
  await until(async () => (await mended.status()) === 'waiting')
  // Two of each kind about one run.
  await holdfast.pause(mended, { note: `paused again for ${canary}` })
  await holdfast.resume(mended, { note: `resumed again for ${canary}` })
  await until(async () => (await mended.status()) === 'waiting')
  await worker.stop()
  // Asked of holders: of two that are still there, and of one that has given its run back.
  for (const session of ['one', 'two', 'three']) {
    const held = await holdfast.start(waiting, canary)
    const { runs } = await store.claim({ session, selectors: [{ type: 'waiting', version: 1 }], limit: 1 })
    await holdfast.pause(held, { note: `paused for ${canary} ${session}` })
    const claimed = runs.map(({ id, token }) => ({ runId: id, session, token }))
    if (claimed[0]?.runId !== held.id) throw new Error('Another run was claimed')
    if (session === 'three') await store.release(claimed)
  }
  await holdfast.signal(mended, 'never', canary, { id: 'unread' })
  await holdfast.signal(mended, 'other', canary, { id: 'unread-too' })
  await holdfast.broadcast(news, canary, { id: 'later' })
  // Under one id to two runs, and passed on by both.
  for (const payload of ['one', 'two']) {
    const run = await holdfast.start(queued, canary)
    await holdfast.signal(run, jobs, `${canary} ${payload}`, { id: 'same' })
    await holdfast.signal(run, paid, `${canary} ${payload}`, { id: 'letter' })
    await run.cancel()
  }
  const last = await holdfast.start(queued, canary)
  await holdfast.signal(last, jobs, canary, { id: 'same' })
  await holdfast.close()
}

export interface Row {
  readonly table: string
  readonly column: string
  readonly rowid: number
  /** Of an entry. */
  readonly seq: number
  /** The encrypted text. */
  readonly text: string
  /** Where it stands, as its reader computes it. */
  readonly place: Place
}

export class EncryptedFile {
  readonly folder: string
  readonly codec: Codec
  readonly payloads: Payloads
  private readonly keys: Record<string, Buffer> = { k1: randomBytes(32) }
  private raw: Database.Database | null = null

  constructor() {
    this.folder = mkdtempSync(join(tmpdir(), 'holdfast-'))
    onTestFinished(() => rmSync(this.folder, { recursive: true }))
    this.codec = encryptingCodec({ keys: this.keys, current: 'k1' })
    this.payloads = new Payloads(this.codec)
  }

  async open(options: Partial<HoldfastOptions> = {}): Promise<Holdfast> {
    const store = `sqlite:${join(this.folder, 'runs.db')}`
    const holdfast = await createHoldfast({ store, codec: this.codec, workflows, logger: keepLines(), ...options })
    onTestFinished(() => holdfast.close())
    return holdfast
  }

  /** A codec that writes with a new key, and reads what was written before. */
  addKey(id: string): Codec {
    this.keys[id] = randomBytes(32)
    return encryptingCodec({ keys: this.keys, current: id })
  }

  /** The file as an attacker sees it who has no key. */
  get attacker(): Database.Database {
    if (this.raw !== null) return this.raw
    const raw = new Database(join(this.folder, 'runs.db'))
    onTestFinished(() => void raw.close())
    return (this.raw = raw)
  }

  /** Writes one of everything. */
  async fill(): Promise<void> {
    const store = await openSqliteStore({ path: join(this.folder, 'runs.db') })
    await writeEverything(await this.open(), store)
    await store.close()
  }

  /** Every encrypted text of the file, wherever it is. */
  rows(): readonly Row[] {
    const found: Row[] = []
    for (const { name: table } of this.attacker
      .prepare(`select name from sqlite_master where type = 'table' and name not like 'sqlite_%'`)
      .all() as { readonly name: string }[]) {
      for (const row of this.attacker.prepare(`select rowid as rowid, * from "${table}"`).all() as RawRow[]) {
        for (const [column, value] of Object.entries(row)) {
          for (const [text] of typeof value === 'string' ? value.matchAll(encrypted) : []) {
            found.push({ table, column, rowid: row.rowid, seq: row.seq, text, place: this.placeOf(table, row) })
          }
        }
      }
    }
    return found
  }

  /** Puts a text where another one stands. */
  put({ table, column, rowid, text }: Row, other: string): void {
    const statement = `update "${table}" set "${column}" = replace("${column}", ?, ?) where rowid = ?`
    this.attacker.prepare(statement).run(text, other, rowid)
  }

  private placeOf(table: string, row: RawRow): Place {
    const { payloads } = this
    if (table === 'runs') return controlRequestPlace('', row.id, sealedForIn(row.control_request))
    if (table === 'journal' && row.meta?.includes('sealedFor') === true) {
      return controlRequestPlace('', row.run_id, sealedForIn(row.meta))
    }
    if (table === 'journal') return payloads.place(row.run_id, row.seq, row.kind as EntryKind, row.name)
    if (table === 'broadcasts') return topicPlace('', row.topic, row.id)
    if (table !== 'messages') throw new Error(`A payload stands in ${table}`)
    const message = { ...row, runId: row.run_id, policy: null } as unknown as Message
    if (message.kind !== 'ended') return messagePlace('', message)
    return endPlace('', message.name, endedIn(message) as Exclude<Ended, { status: 'not-found' }>)
  }
}

interface RawRow {
  readonly rowid: number
  readonly run_id: string
  readonly seq: number
  readonly kind: string
  readonly name: string | null
  readonly topic: string
  readonly id: string
  readonly meta: string | null
  readonly control_request: string | null
}

function sealedForIn(text: string | null): number {
  return (JSON.parse(text ?? '{}') as { readonly sealedFor: number }).sealedFor
}

const encrypted = /enc\d+\.[^."\s]+\.[\w-]+/g
