// The entries of one decision: its events, and then what it asks for, in that order. An instance that is over afterwards arms
// no timer, and cancels none: its end does.

import type { EffectRequest } from '../../core/definition/decider-model.ts'
import { HoldfastError } from '../../core/errors/error.ts'
import { didYouMean, shown } from '../../core/text/suggest.ts'
import { checkKey } from '../../core/model/key.ts'
import type { Request, Typed } from '../api/decision.ts'
import { shownTyped } from '../api/identity.ts'
import type { Fold } from '../fold/fold.ts'
import { unkeyed } from '../fold/timers.ts'
import { versionOf } from '../past/past.ts'
import type { DeciderRules } from '../rules.ts'
import { recordSignal, recordStart, type Asking } from './run-requests.ts'
import { timerKey, timerMeta } from './timer-request.ts'
import type { TransitionDraft } from './transition-draft.ts'

export interface RecordOptions {
  readonly fold: Fold
  readonly draft: TransitionDraft
  readonly now: number
  readonly asking: Asking
}

/** Returns the events as a replay will read them. Throws what is wrong with the decision. */
export function recordDecision(
  options: RecordOptions,
  { events, requests }: { readonly events: readonly Typed[]; readonly requests: readonly Request[] },
): readonly unknown[] {
  const { fold, draft } = options
  const recorded = events.map((event) => {
    const { rules } = fold.options
    const name = writtenType(rules, typeOf(event, 'An event'))
    draft.add({ kind: 'event', name, meta: { version: versionOf(rules.past, name) }, value: event })
    return fold.lastEvent
  })
  const isOver = fold.isOver
  for (const request of requests) {
    if (isOver && (request.kind === 'timer' || request.kind === 'cancel-timer')) continue
    recordRequest(options, request)
  }
  if (isOver) {
    beginWaiting(options)
    draft.add({ kind: 'succeeded', name: null, meta: null, value: fold.state })
    draft.end = 'succeeded'
  }
  return recorded
}

/** The type of a new event. Throws if it may only be read. */
function writtenType({ past }: DeciderRules, type: string): string {
  const now = past.renamed.get(type)
  if (now === undefined && !past.retired.has(type)) return type
  const why = now === undefined ? 'it is retired: the fold passes over it' : `it is called ${shown(now)} now`
  throw new HoldfastError('INVALID_OPTION', `decide returned an event ${shown(type)}, and ${why}.`)
}

function recordRequest(options: RecordOptions, request: Request): void {
  const { fold, draft, now } = options
  switch (request.kind) {
    case 'effect':
      return recordEffect(options, request.effect)
    case 'timer': {
      const name = request.key === null ? `${unkeyed}${draft.next}` : timerKey(request.key)
      typeOf(request.input, 'The input of a timer')
      draft.add({ kind: 'timer', name, meta: timerMeta(request.when, now), value: request.input })
      return
    }
    case 'cancel-timer': {
      const key = timerKey(request.key)
      if (fold.timers.get(key) !== undefined) draft.add({ kind: 'timer-cancelled', name: key, meta: null })
      return
    }
    case 'start':
      return recordStart(draft, options.asking, request)
    case 'signal':
      return recordSignal(draft, request)
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
      `decide asked for an effect ${shown(type)}, and no handler performs it.${hint} Add it to the effects of the decider.`,
    )
  }
  const seq = draft.next
  const name = `${type}#${seq}`
  const order = orderOf(fold, type, effect)
  const isBlocked = order !== null && nextInOrder(fold, order) !== null
  draft.add({ kind: 'effect', name, meta: null, value: effect })
  if (!isBlocked) draft.effects.push({ seq, name, type, idempotencyKey: `${rules.type}:${id}:${seq}`, effect, order })
}

/** What orders an effect among those of its instance; null if nothing does. */
function orderOf({ options: { rules } }: Fold, type: string, effect: unknown): string | null {
  const order: unknown = rules.effects.get(type)?.orderBy?.(effect as Typed) ?? null
  return order === null ? null : checkKey(order, `The result of orderBy of effect "${type}"`)
}

/** The first pending effect with that order, which is the only one of them that is performed. */
function nextInOrder(fold: Fold, order: string): EffectRequest | null {
  const { rules, id } = fold.options
  for (const { name, type, seq, read } of fold.effects.values()) {
    if (rules.effects.get(type)?.orderBy === null) continue
    const effect = read()
    if (orderOf(fold, type, effect) !== order) continue
    return { seq, name, type, idempotencyKey: `${rules.type}:${id}:${seq}`, effect, order }
  }
  return null
}

/** Whether an effect is to be performed after others of its order, and is not the first of them. */
interface Ordered {
  readonly order: string
  readonly isFirst: boolean
}

/** The place of a pending effect in its order; null if it has none, or is not pending. */
export function placeInOrder(fold: Fold, name: string): Ordered | null {
  const pending = fold.effects.get(name)
  if (pending === undefined || (fold.options.rules.effects.get(pending.type)?.orderBy ?? null) === null) return null
  const order = orderOf(fold, pending.type, pending.read())
  return order === null ? null : { order, isFirst: nextInOrder(fold, order)?.name === name }
}

/** The effect that settled was the first of its order: the next one begins. */
export function beginNext({ fold, draft }: Pick<RecordOptions, 'fold' | 'draft'>, place: Ordered | null): void {
  const next = place === null || !place.isFirst ? null : nextInOrder(fold, place.order)
  // One that was asked for by the same input, after the first had settled, has begun with it.
  if (next !== null && draft.effects.every(({ name }) => name !== next.name)) draft.effects.push(next)
}

/** Nothing of the instance is decided any more: effects that wait for their turn begin at once. */
function beginWaiting({ fold, draft }: RecordOptions): void {
  const { rules, id } = fold.options
  for (const { name, type, seq, read } of fold.effects.values()) {
    const place = placeInOrder(fold, name)
    if (place === null || place.isFirst || draft.effects.some((one) => one.name === name)) continue
    const idempotencyKey = `${rules.type}:${id}:${seq}`
    draft.effects.push({ seq, name, type, idempotencyKey, effect: read(), order: place.order })
  }
}

function typeOf(given: unknown, what: string): string {
  const type: unknown = typeof given === 'object' && given !== null ? (given as Partial<Typed>).type : undefined
  if (typeof type === 'string') return checkKey(type, `The type of ${what.toLowerCase()}`)
  throw new HoldfastError('INVALID_OPTION', `${what} must be an object with a type. Got ${shownTyped(given)}.`)
}
