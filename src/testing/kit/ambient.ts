// What a body must not look at: the machine's clock and its chance. While a body is replayed in a test, both are made to differ
// from one replay to the next, and whoever looks is noted with the place: so a branch on `Math.random()` or on the hour of the day is
// found in a moment, and not once in a thousand runs.
//
// Only what the replay itself calls sees anything unusual: the rest of the process, other tests among it, goes by its own.

import { AsyncLocalStorage } from 'node:async_hooks'
import { createSeededRandom } from '../seeded-random.ts'
import { randomFraction } from '../../core/ports.ts'

/** A look at the machine's clock or chance. */
export interface AmbientRead {
  readonly what: 'Math.random()' | 'Date.now()' | 'new Date()'
  /** The file, line and column; null if they are not known. */
  readonly place: string | null
}

interface Skew {
  readonly offsetMs: number
  readonly random: () => number
  readonly reads: AmbientRead[]
}

/** A day and a bit, so that hours, minutes, weekdays and parities differ. */
const strideMs = 31 * 3_600_000 + 13 * 60_000 + 7_001
const mostReads = 100

const skewed = new AsyncLocalStorage<Skew>()
let users = 0
let restore = (): void => undefined

/** Does something for which the clock and chance of the machine are other ones than for the `number` before. */
export async function withOtherAmbient<Result>(
  number: number,
  reads: AmbientRead[],
  work: () => Promise<Result>,
): Promise<Result> {
  const skew = { offsetMs: number * strideMs, random: chance(number), reads }
  users += 1
  if (users === 1) restore = install()
  try {
    return await skewed.run(skew, work)
  } finally {
    users -= 1
    if (users === 0) restore()
  }
}

/** The first number is near 0 and near 1 by turns: most branches ask for no more than that. */
function chance(number: number): () => number {
  const random = createSeededRandom(number)
  let isFirst = true
  return () => {
    const fraction = randomFraction(random)
    const first = number % 2 === 0 ? fraction / 1_000 : 1 - (1 + fraction) / 1_000
    const next = isFirst ? first : fraction
    isFirst = false
    return next
  }
}

function install(): () => void {
  const RealDate = Date
  const realRandom = Math.random
  const random = (): number => {
    const skew = skewed.getStore()
    if (skew === undefined) return realRandom()
    note(skew, 'Math.random()', random)
    return skew.random()
  }
  const now = (): number => {
    const skew = skewed.getStore()
    if (skew === undefined) return RealDate.now()
    note(skew, 'Date.now()', now)
    return RealDate.now() + skew.offsetMs
  }
  const construct = (target: DateConstructor, given: unknown[], newTarget: NewableFunction): object => {
    const skew = skewed.getStore()
    if (skew === undefined || given.length > 0) return Reflect.construct(target, given, newTarget) as object
    note(skew, 'new Date()', construct)
    return Reflect.construct(target, [RealDate.now() + skew.offsetMs], newTarget) as object
  }
  const get = (target: DateConstructor, name: string | symbol, receiver: unknown): unknown =>
    name === 'now' ? now : Reflect.get(target, name, receiver)
  Math.random = random
  globalThis.Date = new Proxy(RealDate, { get, construct })
  return () => {
    Math.random = realRandom
    globalThis.Date = RealDate
  }
}

function note({ reads }: Skew, what: AmbientRead['what'], by: unknown): void {
  if (reads.length >= mostReads) return
  const holder: { stack?: unknown } = {}
  Error.captureStackTrace(holder, by as () => unknown)
  const line =
    typeof holder.stack === 'string' ? holder.stack.split('\n').find((one) => /:\d+:\d+\)?$/.test(one)) : undefined
  const place =
    line === undefined
      ? null
      : line
          .replace(/^\s*at (?:.*\()?/, '')
          .replace(/\)$/, '')
          .replace(/^file:\/\//, '')
  if (!reads.some((read) => read.what === what && read.place === place)) reads.push({ what, place })
}
