// The runs that a decision starts, and those that it sends signals to. All of it is checked and encoded here, while the input
// is being decided: what is wrong with it fails that input alone, and nothing of it is left to fail its transition.

import type { SignalRequest, StartRequest } from '../../core/definition/decider-model.ts'
import type { Host } from '../../core/definition/definition.ts'
import { HoldfastError } from '../../core/errors/error.ts'
import { checkKey } from '../../core/model/key.ts'
import { shown } from '../../core/text/suggest.ts'
import type { Request, SignalTarget } from '../api/decision.ts'
import type { TransitionDraft } from './transition-draft.ts'

/** The instance that asks. */
export interface Asking {
  readonly runId: string
  /** Null if nothing can be started here. */
  readonly prepare: Host['prepare'] | null
}

type Asked<Kind extends Request['kind']> = Extract<Request, { readonly kind: Kind }>

/** Throws what is wrong with the run. */
export function recordStart(draft: TransitionDraft, { runId, prepare }: Asking, asked: Asked<'start'>): void {
  const { workflow, input } = asked
  const name = typeOf(workflow, '.start() of a decision takes a workflow, or the type of one')
  const options = { ...asked.options }
  const seq = draft.next
  draft.add({ kind: 'start-sent', name, meta: null })
  const run = prepare?.({ parentId: runId, workflow, input, options, atOnce: true }) ?? null
  // If the input is taken back, nobody waits for its offload.
  if (run instanceof Promise) run.catch(() => undefined)
  else draft.carry(run?.first.data ?? null)
  draft.starts.push({ seq, workflow, input, options, run } satisfies StartRequest)
}

/** Throws what is wrong with the signal. */
export function recordSignal(draft: TransitionDraft, asked: Asked<'signal'>): void {
  const name = checkKey(asked.name, 'The name of a signal')
  const to = targetOf(asked.to)
  const { payload } = asked
  const seq = draft.next
  // Where it goes is not known yet, and its text is encoded once more for that place.
  draft.carry(draft.encode(payload, 'signal-sent', name))
  draft.add({ kind: 'signal-sent', name, meta: null })
  draft.signals.push({ seq, to, name, payload } satisfies SignalRequest)
}

function targetOf(to: SignalTarget): SignalRequest['to'] {
  if (typeof to === 'string') return to
  const given: unknown = to
  if (typeof given === 'object' && given !== null) {
    if ('id' in to && typeof to.id === 'string') return to.id
    if ('workflow' in to) {
      typeOf(to.workflow, '.signal() of a decision takes the type of a workflow')
      return { workflow: to.workflow, key: checkKey(to.key, 'The key of the run that a signal is for') }
    }
  }
  throw new HoldfastError(
    'INVALID_OPTION',
    `.signal() of a decision takes the id of a run, or { workflow, key }. Got ${shown(given)}.`,
  )
}

function typeOf(workflow: unknown, what: string): string {
  if (typeof workflow === 'string') return workflow
  const type: unknown =
    typeof workflow === 'object' && workflow !== null ? (workflow as { readonly type?: unknown }).type : undefined
  if (typeof type === 'string') return type
  throw new HoldfastError('INVALID_OPTION', `${what}. Got ${shown(workflow)}.`)
}
