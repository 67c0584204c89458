// Encrypting anew what was written with other keys than the current one, so that those can be put away. It walks all runs, the
// newest first and then those that were removed, page by page and no faster than it is told; workers go on meanwhile.
//
// An entry keeps its place and its meaning: only the text of its payload is another one. A run that somebody holds is passed
// over, and looked at once more at the end; what is left then is told. What is written already needs nothing, so it may be
// stopped anywhere and called again.

import { damagedRow } from '../../core/payload/codec.ts'
import type { Entry } from '../../core/model/entry.ts'
import { HoldfastError, isHoldfastError } from '../../core/errors/error.ts'
import { endedIn } from '../../core/rows/engine-message.ts'
import type { Message } from '../../core/model/message.ts'
import { endPlace, messagePlace, type Place } from '../../core/payload/place.ts'
import type { Payloads } from '../../core/payload/payload.ts'
import type { Run } from '../../core/model/run.ts'
import { checkOptions, shown } from '../../core/text/suggest.ts'
import type { Engine } from '../../engine/engine.ts'
import { noMessages } from '../../engine/batch/mailer.ts'
import type { PayloadRewrite, PayloadsRewritten, StoreAdmin } from '../../store.ts'
import { abortable, assertWanted, checkAbortSignal } from '../abort-option.ts'
import { adminOf } from '../read/find.ts'
import { checkRunCursor } from '../read/cursor.ts'
import { placeOfData } from '../read/run-view.ts'

export interface RekeyOptions {
  /** Goes on behind this run: the `next` of a call that was stopped. @default from the newest run on */
  readonly after?: string
  /** At most so many runs a second. @default 500 */
  readonly rate?: number
  /**
   * Stops it as soon as it fires: the answer says where to go on. If nothing was done by then, the call is rejected with
   * STORE_UNAVAILABLE. What the store was asked for last may still take effect, which harms nothing.
   */
  readonly abortSignal?: AbortSignal
  /** Called after each page, with what was done so far. */
  readonly onProgress?: (sofar: RekeyResult) => void
}

export interface RekeyResult {
  /** How many runs were looked at. */
  readonly runs: number
  /** How many of them had payloads of another key. */
  readonly rewritten: number
  readonly payloads: number
  /** Runs that were being performed: call again later. */
  readonly held: number
  /** Runs of which a payload cannot be read: a key is missing, or somebody has changed it. They are left as they are. */
  readonly unreadable: number
  /** The first 20 of them, with what cannot be read. */
  readonly unreadableRuns: readonly { readonly runId: string; readonly why: string }[]
  /** The keys that are missing. */
  readonly missingKeys: readonly string[]
  /** Where to go on; null when all runs were looked at. */
  readonly next: string | null
}

const runsAtOnce = 100
const entriesAtOnce = 500
const bytesAtOnce = 4 * 1024 * 1024
const lettersAtOnce = 100
/** How many runs that were held are looked at again. */
const mostHeld = 10_000
/** How many runs that cannot be read are named. */
const mostNamed = 20
/** In front of the id, for runs that were removed. */
const removedMark = 'removed:'

export async function rekeyRuns(engine: Engine, options: RekeyOptions = {}): Promise<RekeyResult> {
  checkOptions(options, ['after', 'rate', 'onProgress', 'abortSignal'], 'rekey()')
  const { rate = 500, after } = options
  if (!(rate > 0)) throw new HoldfastError('INVALID_OPTION', `rekey({ rate }) is a number over 0. Got ${shown(rate)}.`)
  if (after !== undefined) checkRunCursor(after, 'rekey({ after })', removedMark)
  engine.assertOpen()
  if (engine.payloads.currentKey === null) {
    throw new HoldfastError('INVALID_OPTION', 'rekey() needs a codec that has keys, such as encryptingCodec().')
  }
  return new Rekeying(engine, options, rate).walk()
}

class Rekeying {
  private readonly engine: Engine
  private readonly admin: StoreAdmin
  private readonly payloads: Payloads
  private readonly options: RekeyOptions
  private readonly rate: number
  private readonly signal: AbortSignal | undefined
  private readonly held: string[] = []
  private readonly missing = new Set<string>()
  private runs = 0
  private rewritten = 0
  private written = 0
  private skipped = 0
  private unreadable = 0
  private readonly named: RekeyResult['unreadableRuns'][number][] = []
  /** Where to go on if it is stopped now; null if that is from the beginning. */
  private next: string | null

  constructor(engine: Engine, options: RekeyOptions, rate: number) {
    this.engine = engine
    this.admin = adminOf(engine)
    this.payloads = engine.payloads
    this.options = options
    this.rate = rate
    this.signal = checkAbortSignal(options.abortSignal)
    this.next = options.after ?? null
  }

  async walk(): Promise<RekeyResult> {
    try {
      return await abortable('rekey()', this.signal, () => this.walkThrough())
    } catch (error) {
      if (this.signal?.aborted !== true || this.next === null) throw error
      return this.sofar(this.next)
    }
  }

  private async walkThrough(): Promise<RekeyResult> {
    const { after } = this.options
    const isRemoved = after?.startsWith(removedMark) === true
    for (const deleted of isRemoved ? [true] : [false, true]) {
      const from = isRemoved === deleted ? after?.replace(removedMark, '') : undefined
      await this.walkAll(deleted, from)
    }
    await this.walkLetters()
    for (const id of this.held.splice(0)) {
      this.assertWanted()
      const [run] = await this.engine.store.get([id])
      if (run !== undefined) await this.rekey(run)
    }
    return this.sofar(null)
  }

  /** Nobody waits for it any more: nothing is begun. */
  private assertWanted(): void {
    assertWanted('rekey()', this.signal)
  }

  private async walkAll(deleted: boolean, from: string | undefined): Promise<void> {
    for (let after = from; ;) {
      // As many as it may look at in a second, so that no rest is longer.
      const limit = Math.min(runsAtOnce, Math.ceil(this.rate))
      const page = await this.admin.find({ deleted }, { limit, ...(after === undefined ? {} : { after }) })
      const last = page.at(-1)
      if (last === undefined) return
      const { clock } = this.engine.ports
      const begunAt = clock.monotonic()
      for (const run of page) {
        this.assertWanted()
        this.runs += 1
        await this.rekey(run)
      }
      this.assertWanted()
      after = last.id
      this.next = deleted ? `${removedMark}${after}` : after
      this.options.onProgress?.(this.sofar(this.next))
      const restMs = (page.length * 1_000) / this.rate - (clock.monotonic() - begunAt)
      if (restMs > 0) await this.rest(Math.ceil(restMs))
      this.assertWanted()
    }
  }

  private rest(ms: number): Promise<void> {
    const { signal } = this
    return new Promise((resolve) => {
      const over = (): void => {
        cancel()
        signal?.removeEventListener('abort', over)
        resolve()
      }
      const cancel = this.engine.ports.clock.after(ms, over)
      signal?.addEventListener('abort', over, { once: true })
    })
  }

  /** Messages that their runs never read are kept beside the mailboxes. */
  private async walkLetters(): Promise<void> {
    for (let after: string | undefined; ;) {
      const page = { limit: lettersAtOnce, ...(after === undefined ? {} : { after }) }
      const letters = await this.admin.deadLetters({}, page)
      const last = letters.at(-1)
      if (last === undefined) return
      for (const letter of letters) {
        this.assertWanted()
        const [run] = await this.engine.store.get([letter.runId])
        if (run === undefined) continue
        const messages = await this.tried(run.id, () => this.messages([letter]))
        if (messages !== null && messages.length > 0) await this.write(run, { keyId: run.keyId, messages, entries: [] })
      }
      after = `${last.runId} ${last.id}`
    }
  }

  private async rekey(run: Run): Promise<void> {
    const before = this.written
    const outcome = await this.tried(run.id, () => this.rewriteRun(run))
    if (this.written > before) this.rewritten += 1
    if (outcome === 'held' || outcome === 'changed') {
      if (this.held.length < mostHeld) this.held.push(run.id)
      else this.skipped += 1
    }
  }

  /** Page by page. The row says that the run needs the current key when all of it does. */
  private async rewriteRun(run: Run): Promise<PayloadsRewritten> {
    if (run.session !== null) return 'held'
    const { currentKey } = this.payloads
    let needsKey = run.keyId !== null && run.keyId !== currentKey
    for (let after = 0; ;) {
      const request = { runId: run.id, after, limit: entriesAtOnce, ...(after === 0 ? {} : { mail: noMessages }) }
      const [page] = await this.engine.store.load([request], bytesAtOnce)
      const read = page?.entries ?? []
      const entries = await this.entries(run.id, read)
      const messages = await this.messages(page?.messages ?? [])
      after += read.length
      const isLast = read.length === 0 || after >= run.seq
      needsKey ||= entries.length > 0
      const keyId = isLast && needsKey ? currentKey : run.keyId
      if (entries.length + messages.length > 0 || (isLast && needsKey)) {
        const answer = await this.write(run, { keyId, entries, messages })
        if (answer !== 'written') return answer
      }
      if (isLast) return 'written'
    }
  }

  private async write(
    { id, seq }: Run,
    what: Pick<PayloadRewrite, 'keyId' | 'entries' | 'messages'>,
  ): Promise<PayloadsRewritten> {
    const answer = await this.admin.rewritePayloads({ runId: id, seq, ...what })
    if (answer === 'written') this.written += what.entries.length + what.messages.length
    return answer
  }

  private async entries(runId: string, read: readonly Entry[]): Promise<PayloadRewrite['entries']> {
    const entries: { seq: number; data: string }[] = []
    for (const entry of read) {
      if (entry.kind === 'damaged') {
        const place = placeOfData(runId, entry, this.payloads)
        throw damagedRow(place, `entry ${entry.seq}`, entry.meta.why)
      }
      if (entry.data === null) continue
      const place = placeOfData(runId, entry, this.payloads)
      const data = staysInline.has(entry.kind)
        ? this.payloads.rekey(entry.data, place)
        : await this.kept(entry.data, place)
      if (data !== entry.data) entries.push({ seq: entry.seq, data })
    }
    return entries
  }

  private async messages(read: readonly Message[]): Promise<PayloadRewrite['messages']> {
    const messages: { id: string; data: string }[] = []
    for (const message of read) {
      const sent = sentIn(this.payloads.namespace, message)
      if (sent === null) continue
      const data = await this.kept(sent.payload, sent.place)
      if (data !== sent.payload) messages.push({ id: message.id, data: sent.with(data) })
    }
    return messages
  }

  /** As the journal keeps it, under the current key. What lies elsewhere is put there once more. */
  private async kept(kept: string, place: Place): Promise<string> {
    const text = await this.payloads.fetch(kept)
    const anew = this.payloads.rekey(text, place)
    return anew === text ? kept : this.payloads.keep(anew, place)
  }

  /** Counts and names a run that cannot be read, and gives null for it: it keeps no other from being encrypted anew. */
  private async tried<Result>(runId: string, work: () => Promise<Result>): Promise<Result | null> {
    try {
      return await work()
    } catch (error) {
      if (!isHoldfastError(error, 'PAYLOAD_CORRUPT')) throw error
      this.unreadable += 1
      const { key } = error.details
      if (this.named.length < mostNamed) this.named.push({ runId, why: error.message })
      if (typeof key === 'string') this.missing.add(key)
      return null
    }
  }

  private sofar(next: string | null): RekeyResult {
    const { runs, rewritten, written: payloads, unreadable } = this
    const held = this.held.length + this.skipped
    const [unreadableRuns, missingKeys] = [[...this.named], [...this.missing].toSorted()]
    return { runs, rewritten, payloads, held, unreadable, unreadableRuns, missingKeys, next }
  }
}

/** These are kept as the codec wrote them: never elsewhere. */
const staysInline: ReadonlySet<Entry['kind']> = new Set(['recorded', 'issued', 'paused', 'resumed', 'retried'])

interface Sent {
  /** As it is kept. */
  readonly payload: string
  /** The place that it was written for. */
  readonly place: Place
  /** The data of the message with another payload. */
  readonly with: (payload: string) => string
}

/** What somebody wrote into a message; null if there is nothing. Throws PAYLOAD_CORRUPT at what nobody can have written. */
function sentIn(namespace: string, message: Message): Sent | null {
  const { kind, name, data } = message
  if (kind === 'refused') return null
  const place = messagePlace(namespace, message)
  if (kind !== 'ended') return { payload: data, place, with: (payload) => payload }
  const ended = endedIn(message)
  if (ended === null) throw damagedRow(place, `message ${JSON.stringify(message.id)}`, 'no run can have ended so')
  if (ended.status === 'not-found' || ended.data === null) return null
  const withPayload = (payload: string): string => JSON.stringify({ ...ended, data: payload })
  return { payload: ended.data, place: endPlace(namespace, name, ended), with: withPayload }
}
