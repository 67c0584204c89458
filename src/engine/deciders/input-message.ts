// An input in the mailbox of an instance. Its id is the id of its command, so it is decided once.

import { inputName, type MessageDraft } from '../../core/model/message.ts'
import { messagePlaceOf } from '../../core/payload/place.ts'
import { refusalOf } from '../../core/payload/refusal.ts'
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
