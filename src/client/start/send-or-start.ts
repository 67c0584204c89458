// Sends a signal to the live run that has a key; if there is none, starts a run that finds the signal in its mailbox.
// Start and signal are one insert, so that there is never a run without the signal that it was started for.

import type { Definition } from '../../core/definition/definition.ts'
import type { Topic } from '../../core/definition/declared-topic.ts'
import type { MessageDraft } from '../../core/model/message.ts'
import { checkOptions } from '../../core/text/suggest.ts'
import type { Engine } from '../../engine/engine.ts'
import type { Client } from '../client.ts'
import { adminOf } from '../../engine/store/store-admin.ts'
import { checkAbortSignal } from '../abort-option.ts'
import { signalPayloadOf, messageTo, signalOutcome, type SignalPayload, type SignalOutcome } from '../send/send.ts'
import { startOptionNames, type StartOptions } from './start-options.ts'

export interface SendOrStartOptions extends Omit<StartOptions, 'id' | 'key' | 'onConflict'> {
  /** Makes a repeated signal harmless for the run that got it. @default a new one */
  readonly id?: string
}

/** A run was started for the signal, or the signal went to the run that has the key. */
export type SendOrStartOutcome =
  | { readonly outcome: 'started'; readonly runId: string; readonly signalId: string }
  | Exclude<SignalOutcome, { readonly outcome: 'target-not-found' }>

export interface SendOrStart {
  readonly workflow: Definition | string
  readonly key: string
  readonly name: string | Topic
  readonly payload?: unknown
  readonly input?: unknown
  readonly options?: SendOrStartOptions | undefined
}

const optionNames = startOptionNames.filter((name) => name !== 'key' && name !== 'onConflict')

/** @internal */
export async function sendOrStart(engine: Engine, client: Client, given: SendOrStart): Promise<SendOrStartOutcome> {
  engine.assertOpen()
  const { workflow, key, name, payload, input, options = {} } = given
  checkOptions(options, optionNames, 'sendOrStart()')
  checkAbortSignal(options.abortSignal)
  const { id, ...start } = options
  const content = await signalPayloadOf(engine, name, payload, id)
  const dead: MessageDraft[] = []
  // Another try is needed only if a run of this key ended or was removed between the start and the delivery.
  for (;;) {
    const sent = await once(engine, client, { workflow, input, options: { ...start, key } }, content)
    if (!sent.again) {
      await settleDead(engine, dead)
      return sent.outcome
    }
    if (sent.message.policy !== null) dead.push(sent.message)
  }
}

type Tried =
  | { readonly again: false; readonly outcome: SendOrStartOutcome }
  | { readonly again: true; readonly message: MessageDraft }

async function once(
  engine: Engine,
  client: Client,
  start: Pick<SendOrStart, 'workflow' | 'input'> & { readonly options: StartOptions },
  content: SignalPayload,
): Promise<Tried> {
  const { taken, run } = await client.startWithMessages(start, (runId) => messageTo(engine, runId, content))
  const signalId = content.id
  if (taken === null) {
    engine.onReady()
    return { again: false, outcome: { outcome: 'started', runId: run.id, signalId } }
  }
  const message = await messageTo(engine, run.id, content)
  const delivered = await engine.send(message, start.options.abortSignal)
  const outcome = signalOutcome(engine.limits, run.id, signalId, delivered)
  // The run has ended, so its key is free. A signal that its topic has passed on to other runs must not be sent again.
  const isFree = taken === 'key' && outcome.outcome === 'target-terminated'
  if (isFree && message.policy?.onUnread !== 'broadcast') return { again: true, message }
  // The run was removed in between, which frees its key like an end.
  if (outcome.outcome === 'target-not-found') return { again: true, message }
  return { again: false, outcome }
}

/** Settles the dead letters that earlier tries left with ended runs: another run has got the signal. */
async function settleDead(engine: Engine, letters: readonly MessageDraft[]): Promise<void> {
  if (letters.length === 0) return
  const admin = adminOf(engine)
  for (const { runId, id } of letters) await admin.settleDeadLetter({ runId, id }, 'retried')
}
