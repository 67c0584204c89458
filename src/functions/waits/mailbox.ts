// The mailbox of a run as its holder knows it: messages by their names, and how many of the arrived ones are among them.
//
// Positions in a mailbox have no gaps, so counting says whether all messages are known: a run without messages never reads
// anything, and one that knows all of them can say, when it ends, that none is left unread. Otherwise only messages that an
// open wait asks for are read, and that reading is valid until more arrive.

import { isHoldfastError } from '../../core/errors/error.ts'
import { fetchPatiently } from '../../core/runtime/fetch.ts'
import { messagesAtOnce, type Message } from '../../core/model/message.ts'
import { createBackoff } from '../../core/runtime/backoff.ts'
import type { FrameState } from '../frame/frame-state.ts'

/** A reading is used until the run is `gone`. */
type MailboxState = Pick<FrameState, 'host' | 'runId' | 'writer' | 'phase' | 'scheduleTurn'>

/** The last reading. */
interface Reading {
  /** How many messages had arrived by then, at least. */
  readonly inbox: number
  /** For which names; null if for all. */
  readonly names: ReadonlySet<string> | null
  /** There may be more of these than were read; null if that may be so of any name. */
  readonly cut: ReadonlySet<string> | null
}

/** More names than this are not asked for one by one, unless there is no other way. */
const mostNames = 100

const noNames: ReadonlySet<string> = new Set()

export class Mailbox {
  /** A reading is under way: nothing can be decided meanwhile. */
  isReading = false
  private readonly state: MailboxState
  /** Messages that are known and not taken, first in first out. */
  private byName: Map<string, Message[]> | null = null
  /** How many of those that arrived are known, taken ones included; null if they were not counted. */
  private counted: number | null = 0
  private reading: Reading | null = null
  /** More messages may have arrived than were reported. */
  private isStale = false
  /** The payload of the next message, if it was stored elsewhere. */
  private fetched: { readonly id: string; readonly text: string } | null = null

  constructor(state: MailboxState, inbox: number, messages: readonly Message[] | null) {
    this.state = state
    if (messages !== null) this.learnAll(messages, inbox, noNames)
    else this.counted = inbox === 0 ? 0 : null
  }

  /** A frame that was parked goes on: these are the messages that it wanted, null if they were not read. */
  resume(inbox: number, names: readonly string[] | null, messages: readonly Message[] | null): void {
    this.isStale = false
    if (messages !== null) this.learn(messages, names, inbox, noNames)
  }

  /** More messages may have arrived. */
  markStale(): void {
    this.isStale = true
  }

  /** The names to read by; null to read the whole mailbox. */
  namesToRead(names: readonly string[]): readonly string[] | null {
    return names.length > mostNames && this.reading?.cut !== null ? null : names
  }

  /** Every arrived message is known. */
  get isAllKnown(): boolean {
    return this.counted === this.state.writer.arrived && !this.isStale && !this.isReading
  }

  /** Every message that can have come under these names is known, as far as it matters now. */
  isCurrent(names: readonly string[]): boolean {
    if (names.length === 0 || this.isAllKnown) return true
    if (this.isStale || this.isReading) return false
    const { reading } = this
    if (reading === null || reading.inbox < this.state.writer.arrived) return false
    return names.every((name) => {
      if (reading.names !== null && !reading.names.has(name)) return false
      const isCut = reading.cut === null || reading.cut.has(name)
      return !isCut || this.byName?.has(name) === true
    })
  }

  /** Reads the messages of these names, unless a reading is under way; the frame takes a turn when they are there. */
  read(names: readonly string[]): void {
    if (this.isReading) return
    this.isReading = true
    this.isStale = false
    void this.fetch(this.namesToRead(names))
  }

  private async fetch(names: readonly string[] | null): Promise<void> {
    const { state } = this
    const { writer, host } = state
    const pause = createBackoff(host.ports)
    for (;;) {
      const inbox = writer.arrived
      const taken = new Set(writer.taken)
      try {
        const { messages, isCut } = await host.mailbox(state.runId, names)
        this.isReading = false
        this.learn(messages, names, inbox, taken, isCut)
        return state.scheduleTurn()
      } catch (error) {
        if (state.phase === 'gone') return
        if (!isHoldfastError(error, 'STORE_UNAVAILABLE')) return writer.lose(error)
        await pause()
      }
    }
  }

  /** Takes in a reading. A message that is taken already stays in the mailbox until that is durable. */
  private learn(
    messages: readonly Message[],
    names: readonly string[] | null,
    inbox: number,
    taken: ReadonlySet<string>,
    isCut = false,
  ): void {
    if (names === null) return this.learnAll(messages, inbox, taken, isCut)
    const before = new Set<number>()
    for (const name of names) {
      for (const { position } of this.byName?.get(name) ?? []) before.add(position)
      this.byName?.delete(name)
    }
    const counts = new Map<string, number>()
    let last = inbox
    for (const message of messages) {
      const { name, position } = message
      counts.set(name, (counts.get(name) ?? 0) + 1)
      last = Math.max(last, position)
      if (taken.has(message.id)) continue
      this.add(message)
      if (this.counted !== null && !before.has(position)) this.counted += 1
    }
    const cut = new Set([...counts].filter(([, count]) => isCut || count >= messagesAtOnce).map(([name]) => name))
    this.reading = { inbox: last, names: new Set(names), cut }
    this.state.writer.heard(last)
  }

  private learnAll(messages: readonly Message[], inbox: number, taken: ReadonlySet<string>, isCut = false): void {
    this.byName = null
    let last = inbox
    for (const message of messages) {
      last = Math.max(last, message.position)
      if (!taken.has(message.id)) this.add(message)
    }
    const isAll = messages.length < messagesAtOnce && !isCut
    this.counted = isAll ? last : null
    if (messages.length > 0 || !isAll) this.reading = { inbox: last, names: null, cut: isAll ? noNames : null }
    this.state.writer.heard(last)
  }

  private add(message: Message): void {
    this.byName ??= new Map()
    const others = this.byName.get(message.name)
    if (others === undefined) this.byName.set(message.name, [message])
    else others.push(message)
  }

  /**
   * The text of the payload of a message; null if it is stored elsewhere: then it is fetched, and nothing is decided
   * meanwhile.
   */
  textOf({ id }: Message, kept: string): string | null {
    if (this.fetched?.id === id) return this.fetched.text
    const { host, writer } = this.state
    const text = host.payloads.fetch(kept)
    if (typeof text === 'string') return text
    this.isReading = true
    void fetchPatiently(host, text, kept, () => this.state.phase !== 'gone').then(
      (there) => {
        this.isReading = false
        this.fetched = { id, text: there }
        this.state.scheduleTurn()
      },
      (error: unknown) => writer.lose(error),
    )
    return null
  }

  /** There is a message. */
  get hasSome(): boolean {
    return this.byName !== null && this.byName.size > 0
  }

  /** The names that have messages. */
  get names(): Iterable<string> {
    return this.byName?.keys() ?? noNames
  }

  /** The known messages of these names. */
  under(names: readonly string[]): readonly Message[] {
    const { byName } = this
    if (byName === null) return []
    const [only] = names
    if (names.length === 1 && only !== undefined) return byName.get(only) ?? []
    return names.flatMap((name) => byName.get(name) ?? [])
  }

  /** A wait has taken it. */
  take({ name, id }: Message): void {
    if (this.fetched?.id === id) this.fetched = null
    const messages = this.byName?.get(name) ?? []
    const at = messages.findIndex((other) => other.id === id)
    if (at !== -1) messages.splice(at, 1)
    if (messages.length === 0) this.byName?.delete(name)
  }

  /** How many messages had arrived when the mailbox was empty, as it still is for all that is known; or undefined. */
  get emptyAt(): number | undefined {
    return this.isAllKnown && !this.hasSome ? this.state.writer.arrived : undefined
  }
}
