// Encrypts payloads anew that were written with another key than the current one, so that old keys can be put away. It walks all
// runs, the newest first and then the removed ones, and then the dead letters, page by page and at a bounded rate; workers go on
// meanwhile.
//
// An entry keeps its place and its meaning: only the text of its payload changes. A run that a session holds is skipped and tried
// once more at the end; the answer counts those that are still held. Payloads under the current key are left alone, so a call may
// be stopped anywhere and repeated. A call that goes on where another was stopped also visits the runs that had a holder then: the
// cursor says between which ids they are.

import { HoldfastError, isHoldfastError } from '../../core/errors/error.ts'
import type { Run } from '../../core/model/run.ts'
import { checkOptions, shown } from '../../core/text/suggest.ts'
import type { Engine } from '../../engine/engine.ts'
import { loadJournal } from '../../engine/store/journal-pages.ts'
import { loadMailbox } from '../../engine/store/mailbox-pages.ts'
import type { DeadLetter, Page, PayloadRewrite, PayloadsRewritten, StoreAdmin } from '../../store.ts'
import { abortable, assertNotAborted, checkAbortSignal } from '../abort-option.ts'
import { adminOf } from '../../engine/store/store-admin.ts'
import { letterCursorWord } from '../read/cursor.ts'
import { PayloadRewriter } from './payload-rewriter.ts'
import { HeldRange, lettersMark, removedMark, startOf, type RekeyStart } from './rekey-cursor.ts'

export interface RekeyOptions {
  /** Goes on behind this run or dead letter: the `next` of a call that was stopped. @default from the newest run on */
  readonly after?: string
  /** At most this many runs or dead letters a second. @default 500 */
  readonly rate?: number
  /**
   * Stops the walk as soon as it fires: the answer says where to go on. If no page was done by then, the call is rejected with
   * STORE_UNAVAILABLE. The last request to the store may still take effect, which does no harm.
   */
  readonly abortSignal?: AbortSignal
  /** Called after each page of runs or dead letters, with the counts so far. */
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
  /** Runs of which a payload cannot be read: a key is missing, or its text was changed. They keep their key. */
  readonly unreadable: number
  /** The first 20 of them, with the reason. */
  readonly unreadableRuns: readonly { readonly runId: string; readonly why: string }[]
  /** The keys that are missing. */
  readonly missingKeys: readonly string[]
  /** Where to go on; null when all runs and dead letters were looked at. */
  readonly next: string | null
}

/** How many runs or dead letters are one page. */
const mostAtOnce = 100
/** The bounds of one rewrite. */
const pageOptions = { limit: 500, mostBytes: 4 * 1024 * 1024 }
/** How many runs that were held are tried once more. */
const mostHeld = 10_000
/** How many runs that cannot be read are named. */
const mostNamed = 20

/** @internal */
export async function rekeyRuns(engine: Engine, options: RekeyOptions = {}): Promise<RekeyResult> {
  checkOptions(options, ['after', 'rate', 'onProgress', 'abortSignal'], 'rekey()')
  const { rate = 500, after } = options
  if (!(rate > 0)) throw new HoldfastError('INVALID_OPTION', `rekey({ rate }) is a number over 0. Got ${shown(rate)}.`)
  const from = startOf(after)
  engine.assertOpen()
  if (engine.payloads.currentKey === null) {
    throw new HoldfastError('INVALID_OPTION', 'rekey() needs a codec that has keys, such as encryptingCodec().')
  }
  return new Rekeying(engine, options, rate, from).walk()
}

class Rekeying {
  private readonly engine: Engine
  private readonly admin: StoreAdmin
  private readonly rewriter: PayloadRewriter
  private readonly options: RekeyOptions
  private readonly rate: number
  private readonly signal: AbortSignal | undefined
  private readonly held: string[] = []
  /** Dead letters of runs that have a holder again. */
  private readonly heldLetters: DeadLetter[] = []
  private readonly missing = new Set<string>()
  private runs = 0
  private rewritten = 0
  private written = 0
  private skipped = 0
  private unreadable = 0
  private readonly named: RekeyResult['unreadableRuns'][number][] = []
  private readonly from: RekeyStart
  /** Behind which run or dead letter to go on if it is stopped now; null if that is from the beginning. */
  private position: string | null
  /** Where the runs are that had a holder: those of this call, and those of the stopped call that are still to be visited. */
  private readonly heldRange: HeldRange

  /** @internal */
  constructor(engine: Engine, options: RekeyOptions, rate: number, from: RekeyStart) {
    this.engine = engine
    this.admin = adminOf(engine)
    this.rewriter = new PayloadRewriter(engine.payloads)
    this.options = options
    this.rate = rate
    this.signal = checkAbortSignal(options.abortSignal)
    this.from = from
    this.position = from.position
    this.heldRange = new HeldRange(from.held)
  }

  async walk(): Promise<RekeyResult> {
    try {
      return await abortable('rekey()', this.signal, () => this.walkThrough())
    } catch (error) {
      if (this.signal?.aborted !== true || this.position === null) throw error
      return this.sofar(this.next)
    }
  }

  private async walkThrough(): Promise<RekeyResult> {
    const { part, after, held } = this.from
    if (part === 'runs') await this.walkRuns(false, after)
    if (part !== 'letters') await this.walkRuns(true, part === 'removed' ? after : undefined)
    await this.walkLetters(part === 'letters' ? after : undefined)
    if (held !== null) await this.visitHeld(held.newest, held.oldest)
    await this.tryHeldAgain()
    return this.sofar(null)
  }

  /** Where to go on if it is stopped now. */
  private get next(): string | null {
    return this.position === null ? null : `${this.position}${this.heldRange.text}`
  }

  /**
   * The runs of these ids, and all between them: those that the stopped call could not write are among them. Some may have been
   * removed since.
   */
  private async visitHeld(newest: string, oldest: string): Promise<void> {
    const first = (await this.engine.store.get([newest])).filter((run) => run !== undefined)
    await this.each(first, this.position, (run) => this.rekey(run))
    for (const deleted of [false, true]) {
      for (let after = newest; after > oldest;) {
        const page = await this.admin.find({ deleted }, this.pageBehind(after))
        const due = page.filter(({ id }) => id >= oldest)
        await this.each(due, this.position, (run) => this.rekey(run))
        after = page.at(-1)?.id ?? oldest
      }
    }
  }

  /** The caller has given up: nothing more is begun. */
  private assertNotAborted(): void {
    assertNotAborted('rekey()', this.signal)
  }

  private async walkRuns(deleted: boolean, from: string | undefined): Promise<void> {
    for (let after = from; ;) {
      const page = await this.admin.find({ deleted }, this.pageBehind(after))
      const last = page.at(-1)
      if (last === undefined) return
      after = last.id
      await this.each(page, deleted ? `${removedMark}${after}` : after, (run) => {
        this.runs += 1
        return this.rekey(run)
      })
    }
  }

  /** At most as many as the rate allows in a second, so that no rest is longer than that. */
  private get pageSize(): number {
    return Math.min(mostAtOnce, Math.ceil(this.rate))
  }

  private pageBehind(after: string | undefined): Page {
    return { limit: this.pageSize, ...(after === undefined ? {} : { after }) }
  }

  /**
   * Does a page, reports it, and rests for as long as the rate demands. `position` is where to go on from then on, unless a dead
   * letter of the page had to be left: then that page is done again.
   */
  private async each<Item>(
    page: readonly Item[],
    position: string | null,
    work: (item: Item) => Promise<void>,
  ): Promise<void> {
    const { clock } = this.engine.ports
    const begunAt = clock.monotonic()
    for (const item of page) {
      this.assertNotAborted()
      await work(item)
    }
    this.assertNotAborted()
    if (this.heldLetters.length === 0) this.position = position
    this.options.onProgress?.(this.sofar(this.next))
    const restMs = (page.length * 1_000) / this.rate - (clock.monotonic() - begunAt)
    if (restMs > 0) await this.rest(Math.ceil(restMs))
    this.assertNotAborted()
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
  private async walkLetters(from: string | undefined): Promise<void> {
    for (let after = from; ;) {
      const page = await this.admin.deadLetters({}, this.pageBehind(after))
      const last = page.at(-1)
      if (last === undefined) return
      after = `${last.runId} ${last.id}`
      await this.each(page, `${lettersMark}${letterCursorWord(after)}`, (letter) => this.rekeyLetter(letter))
    }
  }

  private async rekeyLetter(letter: DeadLetter): Promise<void> {
    const [run] = await this.engine.store.get([letter.runId])
    if (run === undefined) return
    const messages = await this.tried(run.id, () => this.rewriter.messages([letter]))
    if (messages === null || messages.length === 0) return
    const outcome = await this.write(run, { keyId: run.keyId, messages, entries: [] })
    if (outcome !== 'held' && outcome !== 'changed') return
    // An operator has retried the run, and it has a holder now.
    if (this.heldLetters.length < mostHeld) this.heldLetters.push(letter)
    else this.skipped += 1
  }

  private async tryHeldAgain(): Promise<void> {
    await this.again(this.held, async (id) => {
      const [run] = await this.engine.store.get([id])
      if (run !== undefined) await this.rekey(run)
    })
    await this.again(this.heldLetters, (letter) => this.rekeyLetter(letter))
  }

  /** Tries each of a list once. It leaves the list only when it was tried, so that a call that is stopped here counts the others. */
  private async again<Item>(list: Item[], work: (item: Item) => Promise<void>): Promise<void> {
    for (let left = list.length; left > 0;) {
      const page = list.slice(0, Math.min(left, this.pageSize))
      left -= page.length
      await this.each(page, this.position, async (item) => {
        await work(item)
        // One that is still held was added at the end.
        list.shift()
      })
    }
  }

  private async rekey(run: Run): Promise<void> {
    const before = this.written
    const outcome = await this.tried(run.id, () => this.rewriteRun(run))
    if (this.written > before) this.rewritten += 1
    if (outcome === 'held' || outcome === 'changed') {
      this.heldRange.add(run.id)
      if (this.held.length < mostHeld) this.held.push(run.id)
      else this.skipped += 1
    }
  }

  /**
   * Rewrites page by page: the unread messages, then the journal. The last write sets the key of the row: by then every payload
   * of the run is under the current key.
   */
  private async rewriteRun(run: Run): Promise<PayloadsRewritten> {
    if (run.session !== null) return 'held'
    const answer = await this.rewriteMailbox(run)
    return answer === 'written' ? this.rewriteJournal(run) : answer
  }

  private async rewriteMailbox(run: Run): Promise<PayloadsRewritten> {
    for await (const unread of loadMailbox(this.engine.store, run.id, pageOptions.mostBytes)) {
      this.assertNotAborted()
      const messages = await this.rewriter.messages(unread)
      if (messages.length === 0) continue
      const answer = await this.write(run, { keyId: run.keyId, entries: [], messages })
      if (answer !== 'written') return answer
    }
    return 'written'
  }

  private async rewriteJournal(run: Run): Promise<PayloadsRewritten> {
    const { currentKey } = this.engine.payloads
    let needsKey = run.keyId !== null && run.keyId !== currentKey
    for await (const page of loadJournal(this.engine.store, run.id, pageOptions)) {
      this.assertNotAborted()
      const entries = await this.rewriter.entries(run.id, page.entries)
      const isLast = (page.entries.at(-1)?.seq ?? run.seq) >= run.seq
      needsKey ||= entries.length > 0
      const keyId = isLast && needsKey ? currentKey : run.keyId
      if (entries.length > 0 || (isLast && needsKey)) {
        const answer = await this.write(run, { keyId, entries, messages: [] })
        if (answer !== 'written') return answer
      }
      if (isLast) return 'written'
    }
    // The journal is shorter than its row says: all that is left of it is under the current key.
    return needsKey ? this.write(run, { keyId: currentKey, entries: [], messages: [] }) : 'written'
  }

  private async write(
    { id, seq }: Run,
    what: Pick<PayloadRewrite, 'keyId' | 'entries' | 'messages'>,
  ): Promise<PayloadsRewritten> {
    const answer = await this.admin.rewritePayloads({ runId: id, seq, ...what })
    if (answer === 'written') this.written += what.entries.length + what.messages.length
    return answer
  }

  /** Counts and names a run that cannot be read, and gives null for it, so that the walk goes on with the others. */
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
    const held = new Set([...this.held, ...this.heldLetters.map(({ runId }) => runId)]).size + this.skipped
    const [unreadableRuns, missingKeys] = [[...this.named], [...this.missing].toSorted()]
    return { runs, rewritten, payloads, held, unreadable, unreadableRuns, missingKeys, next }
  }
}
