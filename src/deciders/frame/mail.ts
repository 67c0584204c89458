// The mailbox of an instance that this process holds, as offers: inputs, and the outcomes of its effects. The store has what
// was read until a transition takes it, so what is decided and not committed is offered again.

import type { Answer, DeciderInstance, Offer } from '../../core/definition/decider-model.ts'
import type { Host } from '../../core/definition/definition.ts'
import { HoldfastError } from '../../core/errors/error.ts'
import { inputName, messagesAtOnce, type Ended, type Message } from '../../core/model/message.ts'
import type { Run } from '../../core/model/run.ts'
import { endPlace, messagePlace } from '../../core/payload/place.ts'
import { fetchPatiently } from '../../core/runtime/fetch.ts'
import { quotedText } from '../../core/text/printable.ts'

interface Letter {
  readonly message: Message
  readonly text: string
  /** The instance could not decide what the effect returned. */
  failure: HoldfastError | null
}

export class Mail {
  /** Everything that had arrived is among the letters. */
  isWhole = false
  private letters: Letter[] = []
  private offered: readonly Letter[] = []
  private done: Set<Letter> = new Set()
  private seen = 0
  private readonly host: Host
  private readonly run: Pick<Run, 'id' | 'type'>

  constructor(host: Host, run: Pick<Run, 'id' | 'type'>) {
    this.host = host
    this.run = run
  }

  /** Reads what has arrived, if that is more than is at hand. `inbox` is the number of all that ever came. */
  async read(inbox: number): Promise<void> {
    if (inbox === this.seen && this.isWhole) return
    const known = new Map(this.letters.map((letter) => [letter.message.id, letter]))
    const { messages, isCut } = await this.host.mailbox(this.run.id, null)
    this.letters = await Promise.all(messages.map(async (message) => known.get(message.id) ?? this.letter(message)))
    this.isWhole = !isCut && messages.length < messagesAtOnce
    this.seen = inbox
  }

  offers(instance: DeciderInstance): readonly Offer[] {
    this.offered = [...this.letters]
    return this.offered.map((letter) => this.offer(letter, instance))
  }

  /** The first of the offers were decided. True if one of them has to be offered again, as what gave up. */
  decided(answers: readonly Answer[]): boolean {
    this.done = new Set(this.offered.slice(0, answers.length))
    let hasGivenUp = false
    for (const [at, answer] of answers.entries()) {
      const letter = this.offered[at] as Letter
      if (answer.outcome !== 'failed' || letter.message.kind !== 'ended' || letter.failure !== null) continue
      letter.failure = answer.error
      this.done.delete(letter)
      hasGivenUp = true
    }
    return hasGivenUp
  }

  /** What was decided is committed. */
  settled(): void {
    this.letters = this.letters.filter((letter) => !this.done.has(letter))
  }

  private async letter(message: Message): Promise<Letter> {
    const kept = message.kind === 'ended' ? (endOf(message).data ?? '') : message.data
    const fetched = message.kind === 'refused' ? message.data : this.host.payloads.fetch(kept)
    const text = typeof fetched === 'string' ? fetched : await fetchPatiently(this.host, fetched, kept, () => true)
    return { message, text, failure: null }
  }

  private offer(letter: Letter, instance: DeciderInstance): Offer {
    const { message, text, failure } = letter
    const { id, at, kind, name } = message
    if (kind === 'signal' && name === inputName) {
      const place = messagePlace(this.host.payloads.namespace, message)
      return { kind: 'message', id, at, read: () => this.host.payloads.decode(text, place) }
    }
    const effect = kind === 'ended' || kind === 'refused' ? instance.effectOf(name) : null
    if (effect === null) return { kind: 'message', id, at, read: () => unexpected(this.run, message) }
    if (kind === 'refused') return gaveUp(effect, id, 0, new Error(`Its run could not be started: ${text}`))
    return this.outcome(letter, effect, failure)
  }

  private outcome({ message, text }: Letter, name: string, failure: HoldfastError | null): Offer {
    const ended = endOf(message)
    const attempt = attemptIn(ended)
    if (failure !== null) return gaveUp(name, message.id, attempt, failure)
    if (ended.status === 'not-found') return gaveUp(name, message.id, attempt, new Error('Its run was removed.'))
    if (ended.status === 'cancelled') {
      const reason = ended.reason === null ? '' : `: ${ended.reason}`
      return gaveUp(name, message.id, attempt, new HoldfastError('RUN_CANCELLED', `The effect was cancelled${reason}`))
    }
    const place = endPlace(this.host.payloads.namespace, message.name, ended)
    let value: unknown
    try {
      value = text === '' ? undefined : this.host.payloads.decode(text, place)
    } catch (error) {
      return gaveUp(name, message.id, attempt, error)
    }
    if (ended.status === 'failed') return gaveUp(name, message.id, attempt, value)
    return { kind: 'performed', name, message: message.id, meta: { attempt, ms: 0 }, result: value }
  }
}

/** Before its last entry the journal of an effect has its start, and an entry for each attempt that did not end it. */
function attemptIn(ended: Ended): number {
  return ended.status === 'not-found' ? 0 : Math.max(1, ended.seq - 1)
}

function gaveUp(name: string, message: string, attempt: number, error: unknown): Offer {
  return { kind: 'gave-up', name, message, meta: { attempt, ms: 0 }, error }
}

function endOf({ data }: Message): { readonly data?: string | null } & Ended {
  return JSON.parse(data) as Ended
}

function unexpected({ type }: Pick<Run, 'type'>, { kind, name }: Message): never {
  throw new HoldfastError(
    'INVALID_INPUT',
    `A ${kind} ${quotedText(name)} came for an instance of decider ${quotedText(type)}, which takes inputs: holdfast.enqueue().`,
    { details: { type, kind, name } },
  )
}
