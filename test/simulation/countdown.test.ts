// The countdown: each program is played with a fault at the first call of the store, then at the second, and so on until it
// ends before the fault comes; for each kind of fault. Wherever it strikes, what comes of the run is what comes without it.

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { brokenDriver, faultKinds, unavailable, type FaultKind } from 'holdfast/testing'
import { play, type Played, type Program } from '../support/countdown.ts'
import { programs } from '../support/programs.ts'

const errors = { 'an unavailable store': unavailable, 'a broken driver': brokenDriver }
/** No program makes so many calls. */
const most = 500

const steps = (played: Played, kind: string): string[] =>
  played.runs.flatMap(({ journal }) => {
    const from = journal.findLastIndex((entry) => entry.kind === 'continued')
    return journal.slice(from + 1).flatMap((entry) => (entry.kind === kind ? [String(entry.name)] : []))
  })

/** A journal in one line. */
const summaryOf = ({ runs }: Played): string =>
  runs
    .map(({ journal }) => journal.map(({ kind, name }) => `${kind}${name === null ? '' : ` ${name}`}`).join(', '))
    .join('; ')

function expectSame(program: Program, played: Played, whole: Played): void {
  if (program.isSteered !== true) {
    expect(summaryOf(played)).toBe(summaryOf(whole))
    expect(played.runs).toEqual(whole.runs)
  }
  expect(played.runs.map(({ status, journal }) => [status, journal.at(-1)])).toEqual(
    whole.runs.map(({ status, journal }) => [status, journal.at(-1)]),
  )
  for (const kind of ['step-succeeded', 'undone']) {
    const names = steps(played, kind)
    expect(new Set(names).size, `${kind} once each: ${names.join()}`).toBe(names.length)
  }
  expect(steps(played, 'undone')).toEqual(steps(whole, 'undone'))
  for (const effect of whole.effects) expect(played.effects).toContain(effect)
}

/** Who may end a process: what is never answered. */
function mayNeedAnother(kind: FaultKind): boolean {
  return kind.startsWith('lost')
}

async function sweep(program: Program, kind: FaultKind, error: () => Error): Promise<number> {
  const options = { error, delayMs: 1_000 }
  const whole = await play(program, { n: 0, kind, options })
  const wrong: string[] = []
  let n = 1
  for (; n < most; n += 1) {
    let played: Played | null = null
    try {
      played = await play(program, { n, kind, options })
      if (!played.isReached) break
      expectSame(program, played, whole)
      expect(played.replaced && !mayNeedAnother(kind), 'the process had to be replaced').toBe(false)
    } catch (failure) {
      wrong.push(`${kind} at call ${n} (${played?.befallen ?? '?'}): ${(failure as Error).message}`)
    }
  }
  expect(wrong.join('\n')).toBe('')
  return n - 1
}

beforeEach(() => {
  vi.spyOn(console, 'log').mockReturnValue(undefined)
})
afterEach(() => {
  vi.unstubAllGlobals()
})

describe.each(programs)('PQ-P1 SW-P2 HE-P1 a fault at any one call of the store leaves no trace: $name', (program) => {
  it.each(
    faultKinds
      .flatMap((kind) => Object.entries(errors).map(([title, error]) => ({ kind, title, error })))
      .filter(({ kind, title }) => kind === 'before' || kind === 'after' || title === 'an unavailable store'),
  )('$kind, with the error of $title', async ({ kind, error }) => {
    expect(await sweep(program, kind, error)).toBeGreaterThan(8)
  })
})
