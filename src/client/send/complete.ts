// Completes a wait from outside with a completion token that its run has issued. The answer to a forged token reveals nothing
// about any run, not even whether it exists.

import { bug } from '../../core/errors/error.ts'
import type { Payloads } from '../../core/payload/payload.ts'
import { messagePlaceOf, type Place } from '../../core/payload/place.ts'
import { refusalOf } from '../../core/payload/refusal.ts'
import type { RunStatus } from '../../core/model/run.ts'
import {
  isSecretOf,
  readCompletionToken,
  completionSignal,
  type CompletionToken,
} from '../../core/completion/completion-token.ts'
import { checkOptions } from '../../core/text/suggest.ts'
import type { Engine } from '../../engine/engine.ts'
import { entryRequest } from '../../engine/store/journal-pages.ts'
import { abortable, checkAbortSignal, type AbortOption } from '../abort-option.ts'
import { readData } from '../read/run-view.ts'

export type CompleteOptions = AbortOption

/** The outcome of a completion. */
export type CompleteOutcome =
  /** `delivered`: the run was waiting for it, and goes on. `queued`: it does when it comes to wait. */
  | { readonly outcome: 'delivered' | 'queued'; readonly runId: string }
  /** It was completed before; that value counts. */
  | { readonly outcome: 'already-completed'; readonly runId: string }
  | { readonly outcome: 'target-terminated'; readonly runId: string; readonly status: RunStatus }
  /** No run has issued it, or its run has begun anew since. */
  | { readonly outcome: 'invalid-token' }

/** @internal */
export function completeToken(
  engine: Engine,
  text: string,
  value: unknown,
  options?: CompleteOptions,
): Promise<CompleteOutcome> {
  return endWait(engine, text, { kind: 'signal', value, where: 'complete()' }, options)
}

/** Makes the wait fail with that error. @internal */
export function refuseToken(
  engine: Engine,
  text: string,
  error: unknown,
  options?: CompleteOptions,
): Promise<CompleteOutcome> {
  return endWait(engine, text, { kind: 'failure', value: error, where: 'refuse()' }, options)
}

interface End {
  readonly kind: 'signal' | 'failure'
  readonly value: unknown
  readonly where: string
}

async function endWait(
  engine: Engine,
  text: string,
  { kind, value, where }: End,
  options: CompleteOptions = {},
): Promise<CompleteOutcome> {
  engine.assertOpen()
  checkOptions(options, ['abortSignal'], where)
  const abortSignal = checkAbortSignal(options.abortSignal)
  const token = readCompletionToken(text)
  if (token === null || !(await abortable(where, abortSignal, () => isIssued(engine, token)))) {
    return { outcome: 'invalid-token' }
  }
  const { runId, seq } = token
  const { payloads } = engine
  const name = completionSignal(seq)
  const place = messagePlaceOf(payloads.namespace, { kind, runId, name, id: name })
  const data = await payloads.keep(valueText(payloads, value, place), place)
  const delivered = await engine.send({ id: name, runId, kind, name, data, policy: null }, abortSignal)
  if (delivered.outcome === 'target-not-found') return { outcome: 'invalid-token' }
  // Completions are bounded by the tokens that the run has issued: a mailbox full of signals refuses none.
  if (delivered.outcome === 'full') throw bug('A completion was refused that has no bound', { runId })
  if (delivered.repeated === true) return { outcome: 'already-completed', runId }
  if (delivered.outcome !== 'target-terminated') return { outcome: delivered.outcome, runId }
  return { outcome: 'target-terminated', runId, status: delivered.status }
}

function valueText(payloads: Payloads, value: unknown, place: Place): string {
  try {
    return payloads.encode(value, place)
  } catch (error) {
    throw refusalOf(error, 'The value of the completion token')
  }
}

async function isIssued({ store, payloads, ports }: Engine, { runId, seq, secret }: CompletionToken): Promise<boolean> {
  const [[run], [page]] = await Promise.all([store.get([runId]), store.load([entryRequest(runId, seq)])])
  const entry = page?.entries[0]
  // The tokens of a run expire when it begins anew.
  if (run === undefined || entry?.kind !== 'issued' || entry.seq !== seq || seq < run.base) return false
  const kept = await readData(runId, entry, payloads)
  return typeof kept === 'string' && isSecretOf(ports.digest, kept, secret)
}
