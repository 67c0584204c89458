// The machine as the code under test sees it: its clock, its randomness, its timers and its network. While a test is open,
// code of bodies and steps sees the time of the test as `Date`, and the watcher of a body is notified of what it uses and
// where.
//
// Only code inside a scope, and all that it awaits, is affected: the rest of the process, including other tests and the
// engine, uses the machine. So any number of tests may be open at once. Replaced functions are restored when the last one
// closes.

import { AsyncLocalStorage } from 'node:async_hooks'
import nodeCrypto from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'
import nodeTimers from 'node:timers'
import timersPromises from 'node:timers/promises'

/** The functions that a body must not use, as code writes them. */
export type AmbientName =
  | 'Date.now()'
  | 'new Date()'
  | 'performance.now()'
  | 'Math.random()'
  | 'crypto.randomUUID()'
  | 'crypto.getRandomValues()'
  | 'fetch()'
  | 'setTimeout()'
  | 'setInterval()'
  | 'setImmediate()'

/** A use of the machine. */
export interface AmbientUse {
  readonly what: AmbientName
  /** The file, line and column; null if they are not known. */
  readonly place: string | null
}

/** The machine that code in a scope sees. */
export interface AmbientScope {
  /** The time of `Date`. */
  now(): number
  /** The value of `Math.random()`; null for the machine's own. */
  readonly random: (() => number) | null
  /** Called for every use; null if all of them are allowed. */
  readonly onUse: ((use: AmbientUse) => void) | null
}

const scopes = new AsyncLocalStorage<AmbientScope | undefined>()
let users = 0
let restore = (): void => undefined

/** Enables scopes until the returned function is called. */
export function holdAmbient(): () => void {
  users += 1
  if (users === 1) restore = install()
  let isHeld = true
  return () => {
    if (!isHeld) return
    isHeld = false
    users -= 1
    if (users === 0) restore()
  }
}

/** Calls code in this scope, also after an `await`. */
export function withAmbient<Result>(scope: AmbientScope, work: () => Result): Result {
  return scopes.run(scope, work)
}

/** Calls code outside of any scope. */
export function withoutAmbient<Result>(work: () => Result): Result {
  return scopes.run(undefined, work)
}

function install(): () => void {
  const undo = [
    ...installDate(),
    replace(Math, 'random', 'Math.random()', ({ random }) => random?.()),
    replace(performance, 'now', 'performance.now()'),
    replace(crypto, 'randomUUID', 'crypto.randomUUID()'),
    replace(crypto, 'getRandomValues', 'crypto.getRandomValues()'),
    replace(nodeCrypto, 'randomUUID', 'crypto.randomUUID()'),
    replace(globalThis, 'fetch', 'fetch()'),
    ...[globalThis, nodeTimers, timersPromises].flatMap((timers) => [
      replace(timers, 'setTimeout', 'setTimeout()'),
      replace(timers, 'setInterval', 'setInterval()'),
      replace(timers, 'setImmediate', 'setImmediate()'),
    ]),
  ]
  // Modules that have imported a function by its name get the replacement, too.
  syncBuiltinESMExports()
  return () => {
    for (const one of undo.toReversed()) one()
    syncBuiltinESMExports()
  }
}

function installDate(): readonly (() => void)[] {
  const RealDate = Date
  const now = (): number => scopes.getStore()?.now() ?? RealDate.now()
  const construct = (target: DateConstructor, given: unknown[], newTarget: NewableFunction): object => {
    const isRead = given.length === 0
    if (isRead) reportUse('new Date()', construct)
    const time = isRead && scopes.getStore() !== undefined ? [now()] : given
    return Reflect.construct(target, time, newTarget) as object
  }
  // Without `new`, `Date` returns the time as a text and ignores its arguments.
  const apply = (): string => {
    reportUse('new Date()', apply)
    return new RealDate(now()).toString()
  }
  const undoNow = replace(RealDate, 'now', 'Date.now()', (scope) => scope.now())
  const ours = new Proxy(RealDate, { construct, apply })
  globalThis.Date = ours
  // Some libraries recognise dates by their constructor.
  RealDate.prototype.constructor = ours
  const undoDate = (): void => {
    RealDate.prototype.constructor = RealDate
    if (globalThis.Date === ours) globalThis.Date = RealDate
  }
  return [undoNow, undoDate]
}

/**
 * Replaces a function of the machine: a call is reported, and returns the value of the scope. Returns the function that
 * restores it.
 */
function replace(
  owner: object,
  name: string,
  what: AmbientName,
  instead: (scope: AmbientScope) => unknown = () => undefined,
): () => void {
  const real: unknown = Reflect.get(owner, name)
  if (typeof real !== 'function') return () => undefined
  const before = Object.getOwnPropertyDescriptor(owner, name)
  const apply = (target: typeof real, self: unknown, given: unknown[]): unknown => {
    const scope = scopes.getStore()
    if (scope === undefined) return Reflect.apply(target, self, given)
    reportUse(what, apply)
    return instead(scope) ?? Reflect.apply(target, self, given)
  }
  const value = new Proxy(real, { apply })
  const enumerable = before?.enumerable ?? false
  Object.defineProperty(owner, name, { value, writable: true, configurable: true, enumerable })
  return () => {
    // If other code has replaced it meanwhile, that replacement stays.
    if (Reflect.get(owner, name) !== value) return
    if (before === undefined) Reflect.deleteProperty(owner, name)
    else Object.defineProperty(owner, name, before)
  }
}

function reportUse(what: AmbientName, by: unknown): void {
  const onUse = scopes.getStore()?.onUse ?? null
  if (onUse === null) return
  const lines = stackAbove(by)
  // Calls that the machine makes inside a call of the body, such as inside `fetch()`, are not calls of the body.
  if (lines[0] !== undefined && ofMachine.test(lines[0])) return
  const line = lines.find((one) => !ofOthers.test(one)) ?? lines[0]
  // The listener may use the machine, too.
  withoutAmbient(() => onUse({ what, place: line === undefined ? null : readable(line) }))
}

/** A library may be called through several others. */
const deepestStack = 50
const located = /:\d+:\d+\)?$/
const ofMachine = /\bnode:/
const ofOthers = /[\\/]node_modules[\\/]|\bnode:/

/** The lines of the stack that name a place, from where that function was called on. */
function stackAbove(called: unknown): readonly string[] {
  const { stackTraceLimit } = Error
  const holder: { stack?: unknown } = {}
  try {
    Error.stackTraceLimit = deepestStack
    Error.captureStackTrace(holder, called as () => unknown)
    return typeof holder.stack === 'string' ? holder.stack.split('\n').filter((one) => located.test(one)) : []
  } finally {
    Error.stackTraceLimit = stackTraceLimit
  }
}

function readable(line: string): string {
  return line
    .replace(/^\s*at (?:.*\()?/, '')
    .replace(/\)$/, '')
    .replace(/^async /, '')
    .replace(/^file:\/\//, '')
}
