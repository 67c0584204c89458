// Judges what was done by what the sink saw: it has one clock for all, and knows nothing of the store.

import {
  entries,
  grouped,
  inputOf,
  isPoisoned,
  traceOf,
  type Evidence,
  type FinalRun,
  type Violation,
} from './evidence.ts'
import type { Effect } from './testbed.ts'
import { undoOf } from './workload.ts'
import { valueOf } from './workload-answers.ts'

/** Two processes that tell the sink of one moment may be heard so far apart. */
const noiseMs = 25

/** How far the clocks of the sink and the store, which are one machine's, may seem apart: rounding, and a commit's time. */
const skewMs = 5

/** How much later than its store a process that is busy may learn of a pause. */
const pauseNoticeMs = 250

/** Bodies of one step at the same time, each under a lease that was valid. */
export function* exclusive({ effects, goneAt }: Evidence): Iterable<Violation> {
  const over = ({ worker, ended }: Effect): number => Math.min(ended ?? Infinity, goneAt.get(worker) ?? Infinity)
  for (const group of grouped(effects, ({ run, step }) => `${run} ${step}`).values()) {
    for (const [index, later] of group.entries()) {
      for (const earlier of group.slice(0, index)) {
        const shared = Math.min(over(earlier), over(later)) - later.began
        if (shared <= noiseMs) continue
        const text =
          `step ${later.step} of ${later.run} was performed twice at once for ${shared} ms, ` +
          `by ${earlier.worker} (${earlier.mark}) and ${later.worker} (${later.mark})`
        yield { name: 'effect_exclusive', text, runs: [later.run] }
      }
    }
  }
}

/** Every attempt of a step has the same idempotency key, and no other step has it. */
export function* keyed({ effects }: Evidence): Iterable<Violation> {
  const owners = new Map<string, string>()
  const keys = new Map<string, string>()
  for (const { run, step, key } of effects) {
    const name = `${run} ${step}`
    if ((owners.get(key) ?? name) !== name || (keys.get(name) ?? key) !== key) {
      yield { name: 'effect_key_constant', text: `${name} had the key ${key} and another one`, runs: [run] }
    }
    owners.set(key, name)
    keys.set(name, key)
  }
}

/** No effect without a run that was asked for. */
export function* owned({ effects, runs }: Evidence): Iterable<Violation> {
  const known = new Set(runs.map(({ id }) => id))
  for (const run of new Set(effects.map(({ run }) => run))) {
    if (!known.has(run)) yield { name: 'effect_has_run', text: `run ${run} had effects and is not there`, runs: [run] }
  }
}

/** What is recorded was returned by a body that really ran to its end, before it was recorded, and is what it must be. */
export function* founded({ effects, runs }: Evidence): Iterable<Violation> {
  const byMark = new Map(effects.map((effect) => [effect.mark, effect]))
  for (const run of runs) {
    const broken = (text: string): Violation => ({ name: 'result_from_effect', text, runs: [run.id] })
    const made = new Map<string, string>()
    for (const entry of entries(run, 'step-succeeded')) {
      const { mark, value } = traceOf(entry)
      const what = `step ${entry.name} of ${run.id}`
      const effect = byMark.get(mark)
      if (effect?.run !== run.id || effect.step !== entry.name) yield broken(`${what} has a result that no body made`)
      else if (effect.ended === null || effect.ended > entry.at.getTime() + skewMs) {
        yield broken(`${what} was recorded before its body ended`)
      } else if (effect.attempt !== entry.meta.attempt) yield broken(`${what} is recorded for another attempt`)
      if (value !== valueOf(run, entry.name)) yield broken(`${what} is recorded as ${value}`)
      if (made.has(entry.name)) {
        yield { name: 'step_recorded_once', text: `${what} was recorded twice`, runs: [run.id] }
      }
      made.set(entry.name, mark)
    }
  }
}

/** By the sink's clock: the step after a sleep began no earlier than the sleep allows. */
export function* timely({ effects, runs }: Evidence): Iterable<Violation> {
  const byMark = new Map(effects.map((effect) => [effect.mark, effect]))
  const groups = grouped(effects, ({ run, step }) => `${run} ${step}`)
  for (const run of runs.filter(({ kind }) => kind === 'nap')) {
    const before = entries(run, 'step-succeeded').find(({ name }) => name === 'before')
    const slept = before === undefined ? undefined : byMark.get(traceOf(before).mark)?.ended
    const { sleepMs } = inputOf(run, 'nap')
    for (const { began } of groups.get(`${run.id} after`) ?? []) {
      const awake = began - (slept ?? Infinity)
      if (awake >= sleepMs - skewMs) continue
      yield { name: 'timer_not_early', text: `${run.id} slept ${awake} of ${sleepMs} ms`, runs: [run.id] }
    }
  }
}

/** A step that has an undo is undone once on record, last first, if its run did not succeed; and that really happened. */
export function* undone({ effects, runs }: Evidence): Iterable<Violation> {
  const done = new Set(effects.filter(({ ended }) => ended !== null).map(({ run, step }) => `${run} ${step}`))
  for (const run of runs) {
    // One that was given up in the middle says itself what it did not undo.
    if (run.kind !== 'saga' || isPoisoned(run) || !['failed', 'cancelled'].includes(run.status)) continue
    const steps = stepsToUndo(run)
    const found = entries(run, 'undone').map(({ name }) => name)
    if (found.join() !== steps.toReversed().join()) {
      const text = `${run.id} undid ${found.join(', ') || 'nothing'} of ${steps.join(', ')}`
      yield { name: 'undo_once', text, runs: [run.id] }
    }
    for (const name of found) {
      if (done.has(`${run.id} ${undoOf(name)}`)) continue
      yield { name: 'undo_once', text: `${run.id} says that it undid ${name}, and did not`, runs: [run.id] }
    }
  }
}

/** Those that happened, and those of which nobody knows, in the order of what is known last of each. */
function stepsToUndo(run: FinalRun): readonly string[] {
  const uncertain = [...entries(run, 'abandoned'), ...entries(run, 'step-failed')].filter(
    ({ meta }) => meta.undo === true,
  )
  const known = [...entries(run, 'step-succeeded'), ...uncertain].toSorted((one, other) => one.seq - other.seq)
  const last = new Map<string, number>()
  for (const { name, seq } of known) {
    last.delete(name)
    last.set(name, seq)
  }
  return [...last.keys()]
}

/** Nothing begins in a run that is paused. */
export function* resting({ effects, runs, goneAt }: Evidence): Iterable<Violation> {
  const byRun = grouped(effects, ({ run }) => run)
  for (const run of runs) {
    for (const pause of entries(run, 'paused')) {
      const next = run.journal[pause.seq]
      const from = pause.at.getTime() + pauseNoticeMs
      const to = next?.at.getTime() ?? Infinity
      for (const { worker, step, began } of byRun.get(run.id) ?? []) {
        if (began <= from || began >= to - skewMs || (goneAt.get(worker) ?? Infinity) <= began) continue
        yield { name: 'paused_rests', text: `${run.id} began ${step} while it was paused`, runs: [run.id] }
      }
    }
  }
}
