// A message that the body has taken, and that it can answer once. The answer is an entry of the journal; a replay makes the same
// message and the same calls of it, and so gives the same answer.

import { HoldfastError } from '../../core/errors/error.ts'
import { inspected } from '../../core/text/inspect.ts'
import { quotedText } from '../../core/text/printable.ts'
import type { Message } from '../api/context.ts'
import { replyContent, type SendSpec } from './contents.ts'

/** Sends an answer, as a call of the context. */
export type Answer = (make: () => SendSpec) => Promise<void>

export class TakenMessage implements Message {
  readonly id: string
  readonly value: unknown
  readonly #name: string
  readonly #answer: Answer
  #isAnswered = false

  constructor(name: string, id: string, value: unknown, answer: Answer) {
    this.id = id
    this.value = value
    this.#name = name
    this.#answer = answer
  }

  toJSON(): object {
    return { id: this.id, value: this.value }
  }

  [inspected](): object {
    return this.toJSON()
  }

  reply(value?: unknown): Promise<void> {
    return this.#answer(() => this.once(value, false))
  }

  refuse(error: unknown): Promise<void> {
    return this.#answer(() => this.once(error, true))
  }

  private once(value: unknown, refused: boolean): SendSpec {
    if (this.#isAnswered) {
      throw new HoldfastError(
        'ALREADY_ANSWERED',
        `The message ${quotedText(this.id)} (${quotedText(this.#name)}) was answered before. A message is answered once.`,
        { details: { id: this.id, name: this.#name } },
      )
    }
    this.#isAnswered = true
    const content = replyContent(this.id, value, refused)
    // An answer that cannot be stored is none: the body may give another.
    const reopen = (): void => {
      this.#isAnswered = false
    }
    return { name: this.#name, prepare: () => content, refused: reopen }
  }
}
