// The entries of one decision: its events, and then what it asks for, in that order. An instance that is over afterwards arms
// no timer, and cancels none: its end does.

import { HoldfastError } from '../../core/errors/error.ts'
import { didYouMean, shown } from '../../core/text/suggest.ts'
import { checkKey } from '../../core/model/key.ts'
import type { Request, SignalTarget, Typed } from '../api/decision.ts'
import { eventVersion } from '../fold/checked-event.ts'
import type { Fold } from '../fold/fold.ts'
import { unkeyed } from '../fold/timers.ts'
import { timerKey, timerMeta } from './timer-request.ts'
import type { TransitionDraft } from './transition-draft.ts'

export interface RecordOptions {
  readonly fold: Fold
  readonly draft: TransitionDraft
  readonly now: number
}

/** Returns the events as a replay will read them. Throws what is wrong with the decision. */
export function recordDecision(
  options: RecordOptions,
  { events, requests }: { readonly events: readonly Typed[]; readonly requests: readonly Request[] },
): readonly unknown[] {
  const { fold, draft } = options
  const recorded = events.map((event) => {
    draft.add({ kind: 'event', name: typeOf(event, 'An event'), meta: { version: eventVersion }, value: event })
    return fold.lastEvent
  })
  const isOver = fold.isOver
  for (const request of requests) {
    if (isOver && (request.kind === 'timer' || request.kind === 'cancel-timer')) continue
    recordRequest(options, request)
  }
  if (isOver) {
    draft.add({ kind: 'succeeded', name: null, meta: null, value: fold.state })
    draft.end = 'succeeded'
  }
  return recorded
}

function recordRequest(options: RecordOptions, request: Request): void {
  const { fold, draft, now } = options
  const seq = draft.next
  switch (request.kind) {
    case 'effect':
      return recordEffect(options, request.effect)
    case 'timer': {
      const name = request.key === null ? `${unkeyed}${seq}` : timerKey(request.key)
      typeOf(request.input, 'The input of a timer')
      draft.add({ kind: 'timer', name, meta: timerMeta(request.when, now), value: request.input })
      return
    }
    case 'cancel-timer': {
      const key = timerKey(request.key)
      if (fold.timers.get(key) !== undefined) draft.add({ kind: 'timer-cancelled', name: key, meta: null })
      return
    }
    case 'start': {
      const { workflow, input, options: given } = request
      const name = typeof workflow === 'string' ? workflow : workflow.type
      draft.add({ kind: 'start-sent', name, meta: null })
      draft.starts.push({ seq, workflow, input, options: { ...given } })
      return
    }
    case 'signal': {
      const name = checkKey(request.name, 'The name of a signal')
      draft.add({ kind: 'signal-sent', name, meta: null })
      draft.signals.push({ seq, to: targetOf(request.to), name, payload: request.payload })
    }
  }
}

function recordEffect({ fold, draft }: RecordOptions, effect: Typed): void {
  const { rules, id } = fold.options
  const type = typeOf(effect, 'An effect')
  const handled = rules.effects.get(type)
  if (handled === undefined) {
    const hint = didYouMean(type, rules.effects.keys())
    throw new HoldfastError(
      'INVALID_OPTION',
      `decide asked for an effect ${shown(type)}, and no handler performs it.${hint}`,
    )
  }
  const seq = draft.next
  const name = `${type}#${seq}`
  const order: unknown = handled.orderBy?.(effect) ?? null
  const data = draft.add({ kind: 'effect', name, meta: null, value: effect }) ?? ''
  const idempotencyKey = `${rules.type}:${id}:${seq}`
  draft.effects.push({
    seq,
    name,
    type,
    idempotencyKey,
    data,
    order: order === null ? null : checkKey(order, `The result of orderBy of effect "${type}"`),
  })
}

function typeOf(given: unknown, what: string): string {
  const type: unknown = typeof given === 'object' && given !== null ? (given as Partial<Typed>).type : undefined
  if (typeof type === 'string') return checkKey(type, `The type of ${what.toLowerCase()}`)
  throw new HoldfastError('INVALID_OPTION', `${what} must be an object with a type. Got ${shown(given)}.`)
}

function targetOf(to: SignalTarget): Exclude<SignalTarget, { readonly id: string }> {
  return typeof to === 'object' && 'id' in to ? to.id : to
}
