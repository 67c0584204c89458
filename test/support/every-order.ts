// Every order in which the statements of calls can come that are made at once on the read-committed store: depth first over
// whose statement goes on next. Each order is executed in a world of its own, from the beginning, so nothing is left of the
// one before. A call that waits for a lock has no statement to choose until whom it waits for has ended.
//
// Orders that differ only in statements that do not meet are one and the same (sleep sets): two statements meet if they take or
// wait for the same row, or if one of them ends a transaction and the other one sees what was committed. A test that explores
// says whether it wants them all the same.

import { AsyncLocalStorage } from 'node:async_hooks'

/** A statement that is about to be executed. */
export interface Turn {
  /** Which of the calls. */
  readonly call: number
  readonly statement: string
}

/** A statement that was executed, and whom it may have met. */
export interface Step extends Turn {
  /** The keys of rows that it took or waited for. */
  readonly keys: Set<string>
  /** It ended its transaction, in whatever way. */
  ends: boolean
}

interface Waiting extends Turn {
  readonly goOn: () => void
}

/** Which call is under way; one for all, because each makes every promise slower. */
const caller = new AsyncLocalStorage<number>()

const mostIdleTurns = 20

/** Lets one statement go on at a time. Calls that are not made through `perform` are not kept waiting. */
export class Director {
  readonly executed: Step[] = []
  private waiting: Waiting[] = []

  readonly schedule = (statement: string): Promise<void> => {
    const call = caller.getStore()
    if (call === undefined) return Promise.resolve()
    return new Promise((goOn) => this.waiting.push({ call, statement, goOn }))
  }

  /** For the database: what the present statement does. */
  readonly witness = (key: string | null): void => {
    const step = this.executed.at(-1)
    if (step === undefined) return
    if (key === null) step.ends = true
    else step.keys.add(key)
  }

  /** Makes the calls at once; null if the chooser does not want to know how it goes on. */
  async perform(
    calls: readonly (() => Promise<unknown>)[],
    choose: (open: readonly Turn[]) => number | null,
    waits: () => readonly string[],
  ): Promise<readonly unknown[] | null> {
    let isOver = false
    const all = Promise.all(calls.map((call, index) => caller.run(index, call))).finally(() => (isOver = true))
    // It is awaited below, unless this comes to a standstill first.
    all.catch(() => undefined)
    for (let idle = 0; ; idle += 1) {
      await turn()
      if (isOver) return all
      if (idle > mostIdleTurns) throw new Error(`Nothing goes on: ${waits().join('; ')}`)
      if (this.waiting.length === 0) continue
      idle = 0
      const open = this.waiting.toSorted((a, b) => a.call - b.call)
      const chosen = choose(open)
      if (chosen === null) return null
      const next = open.find(({ call }) => call === chosen) as Waiting
      this.waiting = open.filter((one) => one !== next)
      this.executed.push({ call: next.call, statement: next.statement, keys: new Set(), ends: false })
      next.goOn()
    }
  }
}

/** What one order is tried on. */
export interface Trial {
  readonly director: Director
  readonly calls: readonly (() => Promise<unknown>)[]
  readonly waits: () => readonly string[]
  /** Rejects if something is wrong with what came of it. */
  readonly judge: (answers: readonly unknown[], executed: readonly Turn[]) => Promise<void>
}

export interface Explored {
  /** Orders that were executed to their end. */
  readonly orders: number
  /** Orders that are the same as another one, and were left when that was clear. */
  readonly same: number
  /** What was wrong, and in which order: the first few. */
  readonly wrong: readonly string[]
}

interface Choice {
  readonly open: readonly Turn[]
  readonly asleep: readonly Step[]
  readonly tried: Step[]
  chosen: Turn
  /** What came of it, once it was executed. */
  step: Step | null
}

export interface Exploring {
  /** Leaves out orders that differ only in statements that cannot meet. @default false */
  readonly merging?: boolean
  /** Stops at the first that is wrong. @default false */
  readonly untilWrong?: boolean
  readonly most: number
}

/** Executes every order. More than so many are an error: nobody would know what was left out. */
export async function everyOrder(
  begin: () => Promise<Trial>,
  { merging = false, untilWrong = false, most }: Exploring,
): Promise<Explored> {
  const path: Choice[] = []
  const wrong: string[] = []
  let orders = 0
  let same = 0
  do {
    const trial = await begin()
    const { director } = trial
    let depth = 0
    const choose = (open: readonly Turn[]): number | null => {
      const known = path[depth]
      const before = path[depth - 1]
      if (before !== undefined) before.step = director.executed[depth - 1] ?? null
      depth += 1
      if (known !== undefined) return known.chosen.call
      const asleep = merging ? asleepAfter(before) : []
      const chosen = open.find((one) => !has(asleep, one))
      if (chosen === undefined) return null
      path.push({ open, asleep, tried: [], chosen, step: null })
      return chosen.call
    }
    const violation = await tried(trial, choose)
    const last = path.at(-1)
    if (last !== undefined) last.step ??= director.executed[path.length - 1] ?? null
    if (violation === null) same += 1
    else orders += 1
    if (violation !== null && violation !== '' && wrong.length < 5) wrong.push(`${violation}\n${shown(director)}`)
    if (orders + same > most) throw new Error(`There are more than ${most} orders`)
  } while (!(untilWrong && wrong.length > 0) && goBack(path))
  return { orders, same, wrong }
}

/** What is wrong with one order; nothing if it is right, null if it is the same as another one. */
async function tried(
  { director, calls, waits, judge }: Trial,
  choose: (open: readonly Turn[]) => number | null,
): Promise<string | null> {
  try {
    const answers = await director.perform(calls, choose, waits)
    if (answers === null) return null
    await judge(answers, director.executed)
    return ''
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

/** To the last choice that has another one left; false if there is none. */
function goBack(path: Choice[]): boolean {
  for (let last = path.at(-1); last !== undefined; last = path.at(-1)) {
    const { open, asleep, tried, step } = last
    if (step !== null) tried.push(step)
    const next = open.find((one) => !has(asleep, one) && !has(tried, one))
    if (next !== undefined) {
      last.chosen = next
      last.step = null
      return true
    }
    path.pop()
  }
  return false
}

/** Statements that need not come next, because an order in which they came before is the same. */
function asleepAfter(choice: Choice | undefined): readonly Step[] {
  const step = choice?.step
  if (choice === undefined || step === undefined || step === null) return []
  return [...choice.asleep, ...choice.tried].filter((one) => !meet(one, step))
}

function has(turns: readonly Turn[], { call }: Turn): boolean {
  return turns.some((one) => one.call === call)
}

/** Writes of rows that are locked or new: what others have committed is nothing to them. */
const own = /\.(append|bump|write|take|put|insert|settle|waits|broadcasts|feed)$/u

function meet(a: Step, b: Step): boolean {
  if (a.call === b.call || [...a.keys].some((key) => b.keys.has(key))) return true
  if (a.ends && b.ends) return true
  return (a.ends && !isOwn(b)) || (b.ends && !isOwn(a))
}

function isOwn({ statement, ends }: Step): boolean {
  return own.test(statement) && !statement.startsWith('start.') && !ends
}

function shown({ executed }: Director): string {
  return executed.map(({ call, statement }) => `${call}:${statement}`).join(' ')
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
