// An input in the mailbox of an instance. Its id is the id of its command, so it is decided once.

import type { Limits } from '../../core/definition/limits.ts'
import { HoldfastError } from '../../core/errors/error.ts'
import { inputName, type MessageDraft } from '../../core/model/message.ts'
import { messagePlaceOf } from '../../core/payload/place.ts'
import { refusalOf } from '../../core/payload/refusal.ts'
import { quotedText } from '../../core/text/printable.ts'
import type { DecidingEngine } from './deciding-engine.ts'

export async function inputMessage(
  { payloads, limits }: Pick<DecidingEngine, 'payloads' | 'limits'>,
  runId: string,
  input: unknown,
  id: string,
): Promise<MessageDraft & { readonly mostUnread: number }> {
  const place = messagePlaceOf(payloads.namespace, { kind: 'signal', runId, name: inputName, id })
  const data = await payloads.keep(encoded(), place)
  return { id, runId, kind: 'signal', name: inputName, data, policy: null, mostUnread: limits.mailbox }

  function encoded(): string {
    try {
      return payloads.encode(input, place)
    } catch (error) {
      throw refusalOf(error, 'The input')
    }
  }
}

/** The mailbox of an instance takes no more inputs. */
export function inputsFull({ mailbox: most }: Limits, type: string, id: string): HoldfastError {
  return new HoldfastError(
    'MAILBOX_FULL',
    `The mailbox of instance ${quotedText(id)} of decider ${quotedText(type)} is full: it takes at most ${most} inputs that are not ` +
      'decided yet. Send it again later, or raise the limit.',
    { details: { type, id, limit: 'mailbox', most } },
  )
}
