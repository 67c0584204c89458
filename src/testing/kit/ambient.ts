// The machine as code of a test finds it: its clock, its chance, its timers and its network. While a test is open, code that it
// follows, that of bodies and steps, sees the time of the test as `Date`, and whoever watches a body hears what it uses and where.
//
// Only code inside a scope sees anything unusual, with all that it awaits: the rest of the process, other tests and the engine
// among it, goes by the machine. So any number of tests may be open at once. What is replaced is put back when the last one closes.

import { AsyncLocalStorage } from 'node:async_hooks'
import nodeCrypto from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'
import nodeTimers from 'node:timers'
import timersPromises from 'node:timers/promises'

/** What a body must not use, as a person would write it. */
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

/** What code finds the machine to be. */
export interface AmbientScope {
  /** What `Date` says. */
  now(): number
  /** What `Math.random()` says; null for the machine's own. */
  readonly random: (() => number) | null
  /** Told of every use; null if all of them are fine. */
  readonly onUse: ((use: AmbientUse) => void) | null
}

const scopes = new AsyncLocalStorage<AmbientScope | undefined>()
let users = 0
let restore = (): void => undefined

/** Lets scopes have their effect until the function that it returns is called. */
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

/** Calls code that finds the machine to be this, also after it has awaited something. */
export function withAmbient<Result>(scope: AmbientScope, work: () => Result): Result {
  return scopes.run(scope, work)
}

/** Calls code that finds the machine as it is. */
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
  // Modules that have imported a function by its name get the other one.
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
  // Without `new` it is the time as a text, whatever is given.
  const apply = (): string => {
    reportUse('new Date()', apply)
    return new RealDate(now()).toString()
  }
  const undoNow = replace(RealDate, 'now', 'Date.now()', (scope) => scope.now())
  const ours = new Proxy(RealDate, { construct, apply })
  globalThis.Date = ours
  // Some tell dates by their constructor.
  RealDate.prototype.constructor = ours
  const undoDate = (): void => {
    RealDate.prototype.constructor = RealDate
    if (globalThis.Date === ours) globalThis.Date = RealDate
  }
  return [undoNow, undoDate]
}

/** Lets a function of the machine tell that it is called, and give back what the scope says. Returns what puts it back. */
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
    // Whoever has put something of their own in its place meanwhile keeps it.
    if (Reflect.get(owner, name) !== value) return
    if (before === undefined) Reflect.deleteProperty(owner, name)
    else Object.defineProperty(owner, name, before)
  }
}

function reportUse(what: AmbientName, by: unknown): void {
  const onUse = scopes.getStore()?.onUse ?? null
  if (onUse === null) return
  const lines = stackAbove(by)
  // What the machine does for a call of theirs, `fetch()` for example, is no call of theirs.
  if (lines[0] !== undefined && ofMachine.test(lines[0])) return
  const line = lines.find((one) => !ofOthers.test(one)) ?? lines[0]
  // Who is told may use the machine, too.
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
