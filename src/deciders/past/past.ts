// What earlier code of a decider has written, and how this code reads it: event types that have another name now, types that
// are gone, events and states of older forms. Checked once, when the decider is defined.
//
// The versions of a chain are the keys of its functions: { 1: …, 2: … } reads versions 1 and 2, and what is written is of
// version 3. The oldest may be taken away when no journal has it any more; none may be missing between.

import { HoldfastError } from '../../core/errors/error.ts'
import { isPlainObject, shown } from '../../core/text/suggest.ts'

/** Makes of something that older code wrote what the next version would have written. */
export type Upcaster = (old: unknown) => unknown

/** The functions from one version to the next. */
export interface Chain {
  /** The oldest version that is read. */
  readonly oldest: number
  /** The version that is written. */
  readonly version: number
  /** From `oldest` on. */
  readonly steps: readonly Upcaster[]
}

export interface Past {
  /** By the types of events. A type that is not here has version 1. */
  readonly chains: ReadonlyMap<string, Chain>
  /** The present type of events, by the one that they were written under. */
  readonly renamed: ReadonlyMap<string, string>
  /** Types that the fold passes over. */
  readonly retired: ReadonlySet<string>
  /** Of states, by `stateVersion`; null if older states are not read. */
  readonly states: Chain | null
}

/** The options that say it. */
export interface PastOptions {
  readonly upcast?: unknown
  readonly renamed?: unknown
  readonly retired?: unknown
  readonly upcastState?: unknown
}

/** The version in which events of that type are written. */
export function versionOf({ chains }: Past, type: string): number {
  return chains.get(type)?.version ?? 1
}

/** Throws INVALID_OPTION. */
export function pastOf(options: PastOptions, stateVersion: number, where: string): Past {
  const retired = retiredOf(options.retired, where)
  const renamed = renamedOf(options.renamed, where)
  const chains = chainsOf(options.upcast, where)
  for (const [from, to] of renamed) {
    if (retired.has(from)) throw invalid(`renamed and retired of ${where} both name ${shown(from)}. Keep one of them.`)
    if (retired.has(to))
      throw invalid(`renamed of ${where} leads to ${shown(to)}, which is retired. Retire both types.`)
  }
  for (const type of chains.keys()) {
    const now = renamed.get(type)
    if (now !== undefined) {
      throw invalid(
        `upcast of ${where} names ${shown(type)}, which is called ${shown(now)} now: upcast it under that name.`,
      )
    }
    if (retired.has(type)) throw invalid(`upcast of ${where} names ${shown(type)}, which is retired and never read.`)
  }
  return { chains, renamed, retired, states: statesOf(options.upcastState, stateVersion, where) }
}

function retiredOf(given: unknown, where: string): ReadonlySet<string> {
  if (given === undefined) return new Set()
  const isList = Array.isArray(given) && given.every((type) => typeof type === 'string' && type !== '')
  if (!isList)
    throw invalid(`retired of ${where} must be a list of event types, such as ['Noted']. Got ${shown(given)}.`)
  return new Set(given as readonly string[])
}

function renamedOf(given: unknown, where: string): ReadonlyMap<string, string> {
  if (given === undefined) return new Map()
  const isMap = isPlainObject(given) && Object.entries(given).every((pair) => pair.every(isText))
  if (!isMap) {
    throw invalid(`renamed of ${where} must say for each old event type what it is called now: { Charged: 'Paid' }.`)
  }
  const renamed = new Map(Object.entries(given as Readonly<Record<string, string>>))
  for (const [from, to] of renamed) {
    const now = renamed.get(to)
    if (now === undefined) continue
    throw invalid(
      `renamed of ${where} leads from ${shown(from)} to ${shown(to)}, which is called ${shown(now)} now: name that.`,
    )
  }
  return renamed
}

function chainsOf(given: unknown, where: string): ReadonlyMap<string, Chain> {
  if (given === undefined) return new Map()
  const hint = "such as { Paid: { 1: (old) => ({ type: 'Paid', amount: old.cents / 100 }) } }"
  if (!isPlainObject(given)) {
    throw invalid(`upcast of ${where} must have functions by event type and version, ${hint}. Got ${shown(given)}.`)
  }
  const types = Object.entries(given as Readonly<Record<string, unknown>>)
  return new Map(types.map(([type, steps]) => [type, chainOf(steps, `upcast.${type} of ${where}`, { least: 1, hint })]))
}

function statesOf(given: unknown, stateVersion: number, where: string): Chain | null {
  if (given === undefined) return null
  const hint = 'such as { 1: (old) => ({ ...old, notes: [] }) }'
  const chain = chainOf(given, `upcastState of ${where}`, { least: 0, hint })
  if (chain.version === stateVersion) return chain
  throw invalid(
    `upcastState of ${where} leads to version ${chain.version}, and its stateVersion is ${stateVersion}. Make them agree.`,
  )
}

function chainOf(
  given: unknown,
  what: string,
  { least, hint }: { readonly least: number; readonly hint: string },
): Chain {
  if (!isPlainObject(given) || Object.keys(given).length === 0) {
    throw invalid(`${what} must have a function for each older version, ${hint}. Got ${shown(given)}.`)
  }
  const steps = given as Readonly<Record<string, unknown>>
  const versions = Object.keys(steps).map(Number)
  const odd = Object.keys(steps).find((_, at) => !Number.isSafeInteger(versions[at]) || (versions[at] ?? 0) < least)
  if (odd !== undefined)
    throw invalid(`${what} has versions, whole numbers from ${least}, as its keys. Got ${shown(odd)}.`)
  versions.sort((one, other) => one - other)
  const [oldest = least] = versions
  const version = oldest + versions.length
  const gap = versions.findIndex((one, at) => one !== oldest + at)
  if (gap !== -1)
    throw invalid(`${what} has no function for version ${oldest + gap}, and has one for ${versions[gap]}.`)
  const functions = versions.map((one) => {
    const step = steps[one]
    if (typeof step !== 'function')
      throw invalid(`${what} must be a function for version ${one}, ${hint}. Got ${shown(step)}.`)
    return step as Upcaster
  })
  return { oldest, version, steps: functions }
}

function isText(given: unknown): boolean {
  return typeof given === 'string' && given !== ''
}

function invalid(message: string): HoldfastError {
  return new HoldfastError('INVALID_OPTION', message)
}
