// What the journal of an account must be, judged by what its inputs ask for, and by nothing of the decider style: a command is
// decided once; a timer fires once, not early, and not if it was replaced or cancelled; an effect has one outcome, after it was
// performed.

import { jsonCodec } from '../../src/core/payload/codec.ts'
import type { Entry } from '../../src/core/model/entry.ts'
import { isTerminal } from '../../src/core/model/run.ts'
import { nowhere } from '../../src/core/payload/place.ts'
import {
  decideAccount,
  evolveAccount,
  initialAccount,
  type Account,
  type AccountEvent,
  type AccountInput,
} from './account.ts'
import type { Checker, Known } from './checker.ts'
import type { Effects } from './effects.ts'

const codec = jsonCodec()

function decoded(data: string | null): unknown {
  return codec.decode(data ?? 'null', nowhere)
}

export function eventsOf(entries: readonly Entry[]): readonly AccountEvent[] {
  return entries.flatMap(({ kind, data }) => (kind === 'event' ? [decoded(data) as AccountEvent] : []))
}

export function foldOf(entries: readonly Entry[]): Account {
  return eventsOf(entries).reduce(evolveAccount, initialAccount)
}

/** A name and a message for each promise that it breaks. */
export function checkAccount(
  known: Known,
  checker: Checker,
  effects: Effects,
): readonly (readonly [name: string, message: string])[] {
  const broken = [...commandsTwice(known), ...checkTimers(known), ...checkEffects(known, checker, effects)]
  return [...broken, ...checkReplay(known)]
}

type Broken = [name: string, message: string]

function commandsTwice({ entries }: Known): readonly Broken[] {
  const commands = eventsOf(entries).flatMap((event) => (event.type === 'Done' ? [event.command] : []))
  const twice = commands.filter((command, at) => commands.indexOf(command) !== at)
  return twice.map((command) => ['command_once', `${command} was decided again`])
}

/** To decide every recorded input again gives what the journal has: its events, and what they ask for. */
function checkReplay({ entries }: Known): readonly Broken[] {
  const broken: Broken[] = []
  let state = initialAccount
  for (const [at, entry] of entries.entries()) {
    if (entry.kind === 'event') state = evolveAccount(state, decoded(entry.data) as AccountEvent)
    if (entry.kind !== 'input' || (entry.meta.outcome !== 'accepted' && entry.meta.outcome !== 'rejected')) continue
    const input = decoded(entry.data ?? entries[0]?.data ?? null) as AccountInput
    const next = entries.findIndex((one, index) => index > at && !ofDecisions.has(one.kind))
    const recorded = entries.slice(at + 1, next === -1 ? undefined : next)
    const [found, made] = [recorded.map(said), again(state, input)]
    // Of a key that no timer has there is nothing to cancel.
    const isSame = JSON.stringify(found) === JSON.stringify(made.slice(0, found.length))
    const isWhole = found.length === made.length || made.at(-1)?.startsWith('timer-cancelled') === true
    if (!isSame || !isWhole)
      broken.push(['replay_deterministic', `entry ${entry.seq}: ${found.join()} or ${made.join()}`])
  }
  return broken
}

const ofDecisions = new Set<Entry['kind']>(['event', 'effect', 'timer', 'timer-cancelled', 'input-rejected'])

function said({ kind, name, data }: Entry): string {
  if (kind === 'timer-cancelled') return `${kind} ${name}`
  const key = kind === 'timer' && !name.startsWith('#') ? name : ''
  return `${kind} ${key} ${JSON.stringify(decoded(data))}`
}

function again(state: Account, input: AccountInput): readonly string[] {
  const decided = decideAccount(state, input)
  if (!('events' in decided)) return [`input-rejected  ${JSON.stringify(decided.value)}`]
  const events = decided.events.map((event) => `event  ${JSON.stringify(event)}`)
  const requests = decided.requests.map((request) => {
    if (request.kind === 'effect') return `effect  ${JSON.stringify(request.effect)}`
    if (request.kind === 'timer') return `timer ${request.key ?? ''} ${JSON.stringify(request.input)}`
    return request.kind === 'cancel-timer' ? `timer-cancelled ${request.key}` : request.kind
  })
  return [...events, ...requests]
}

/** A timer that is armed, and the command that asked for it. */
interface Armed {
  readonly of: string
  readonly dueAt: number
}

function checkTimers({ run, entries }: Known): readonly Broken[] {
  const broken: Broken[] = []
  const armed = new Map<string, Armed>()
  for (const entry of entries) {
    if (entry.kind === 'timer') {
      const { of } = decoded(entry.data) as { of: string }
      armed.set(entry.name, { of, dueAt: entry.at + (entry.meta.afterMs ?? 0) })
    }
    if (entry.kind === 'timer-cancelled') armed.delete(entry.name)
    if (entry.kind !== 'input' || entry.meta.from.kind !== 'timer') continue
    const { name } = entry.meta.from
    const timer = armed.get(name)
    const { of } = decoded(entry.data) as Extract<AccountInput, { of: string }>
    if (timer?.of !== of) broken.push(['timer_once', `${name} of ${of} fired, and ${timer?.of ?? 'nothing'} is set`])
    else if (entry.at < timer.dueAt)
      broken.push(['timer_never_early', `${name} fired ${timer.dueAt - entry.at} ms early`])
    armed.delete(name)
  }
  if (isTerminal(run.status)) return broken
  return [
    ...broken,
    ...[...armed].map(([name, { of }]): Broken => ['timer_eventually', `${name} of ${of} never fired`]),
  ]
}

function checkEffects({ run, entries }: Known, checker: Checker, effects: Effects): readonly Broken[] {
  return entries.flatMap((entry): readonly Broken[] => {
    if (entry.kind !== 'effect') return []
    const { name } = entry
    const outcomes = entries.filter(
      (one) => (one.kind === 'effect-succeeded' || one.kind === 'effect-failed') && one.name === name,
    )
    const key = `${run.type}:${run.idempotencyKey}:${entry.seq}`
    const performed = effects.all.filter((one) => one.key === key)
    const runs = [...checker.runs.values()].filter(
      ({ run: { parentId, metadata } }) => parentId === run.id && metadata?.includes(`"${name}"`) === true,
    )
    const broken: Broken[] = []
    if (runs.length !== 1) broken.push(['effect_once', `${runs.length} runs perform ${name}`])
    if (outcomes.length !== 1 && !isTerminal(run.status))
      broken.push(['outcome_not_lost', `${name} has ${outcomes.length} outcomes`])
    if (outcomes.length > 1) broken.push(['outcome_once', `${name} has ${outcomes.length} outcomes`])
    const [outcome] = outcomes
    const isSo = outcome?.kind !== 'effect-succeeded' || performed.some(({ isDone }) => isDone)
    if (!isSo) broken.push(['effects_at_least_once', `${name} is recorded, and was not performed`])
    return broken
  })
}
