// A signal to whoever has a key; if nobody has it, a run is started that finds the signal in its mailbox from the beginning.
// Start and signal are one insert, so that there is never a run without the signal that it was started for.

import type { Definition } from '../../core/definition/definition.ts'
import type { Topic } from '../../core/definition/declared-topic.ts'
import type { MessageDraft } from '../../core/rules/unit-of-work.ts'
import { checkOptions } from '../../core/text/suggest.ts'
import type { Engine } from '../../engine/engine.ts'
import type { Client } from '../client.ts'
import { adminOf } from '../read/find.ts'
import { checkAbortSignal } from '../abort-option.ts'
import { signalContentOf, messageTo, signalOutcome, type SignalContent, type SignalOutcome } from '../send/send.ts'
import { startOptionNames, type StartOptions } from './start-options.ts'

export interface SendOrStartOptions extends Omit<StartOptions, 'id' | 'key' | 'onConflict'> {
  /** Makes a repeated signal harmless for the run that got it. @default a new one */
  readonly id?: string
}

/** What became of it: a run was started for it, or it went to the one that has the key. */
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

export async function sendOrStart(engine: Engine, client: Client, asked: SendOrStart): Promise<SendOrStartOutcome> {
  engine.assertOpen()
  const { workflow, key, name, payload, input, options = {} } = asked
  checkOptions(options, optionNames, 'sendOrStart()')
  checkAbortSignal(options.abortSignal)
  const { id, ...start } = options
  const content = await signalContentOf(engine, name, payload, id)
  const buried: MessageDraft[] = []
  // It ends when a start or a delivery meets nobody who ends or starts a run of this key in the same moment.
  for (;;) {
    const sent = await once(engine, client, { workflow, input, options: { ...start, key } }, content)
    if (!sent.again) {
      await exhume(engine, buried)
      return sent.outcome
    }
    if (sent.letter.policy !== null) buried.push(sent.letter)
  }
}

type Tried =
  | { readonly again: false; readonly outcome: SendOrStartOutcome }
  | { readonly again: true; readonly letter: MessageDraft }

async function once(
  engine: Engine,
  client: Client,
  start: Pick<SendOrStart, 'workflow' | 'input'> & { readonly options: StartOptions },
  content: SignalContent,
): Promise<Tried> {
  const { taken, run } = await client.startWithMail(start, (runId) => messageTo(engine, runId, content))
  const signalId = content.id
  if (taken === null) {
    engine.onReady()
    return { again: false, outcome: { outcome: 'started', runId: run.id, signalId } }
  }
  const letter = await messageTo(engine, run.id, content)
  const delivered = await engine.send(letter, start.options.abortSignal)
  const outcome = signalOutcome(engine.limits, run.id, signalId, delivered)
  // Its key is free by now. What its topic has passed on to others must not be sent a second time.
  const isFree = taken === 'key' && outcome.outcome === 'target-terminated'
  if (isFree && letter.policy?.onUnread !== 'broadcast') return { again: true, letter }
  // Removed in between: as good as ended.
  if (outcome.outcome === 'target-not-found') return { again: true, letter }
  return { again: false, outcome }
}

/** What a run that had ended left as a dead letter has found another run. */
async function exhume(engine: Engine, letters: readonly MessageDraft[]): Promise<void> {
  if (letters.length === 0) return
  const admin = adminOf(engine)
  for (const { runId, id } of letters) await admin.settleDeadLetter({ runId, id }, 'retried')
}
