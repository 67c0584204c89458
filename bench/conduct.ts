// Starts the processes that measure, one after another, and gathers what they report.

import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Task, Sample } from './child.ts'
import { median } from './numbers.ts'
import type { Better, Case, Goal, Scenario, Settings } from './scenario.ts'
import { storeKindOf } from './stores.ts'

/** One line of the table: a metric of a case over all its samples. */
export interface Result {
  readonly scenario: string
  readonly case: string
  readonly metric: string
  readonly unit: string
  /** The median of the samples. */
  readonly value: number
  readonly samples: readonly number[]
  readonly goal: Goal | null
  /** Which way is better, if it can be compared with a baseline; otherwise null. */
  readonly better: Better | null
}

const child = fileURLToPath(new URL('child.js', import.meta.url))

export async function measureScenario(
  scenario: Scenario,
  settings: Settings,
  progress: (text: string) => void,
): Promise<readonly Result[]> {
  const results: Result[] = []
  for (const [index, one] of scenario.cases(settings).entries()) {
    progress(`${scenario.name}${one.name === '' ? '' : `: ${one.name}`}`)
    results.push(...(await measureCase(scenario, one, index, settings)))
  }
  return results
}

/** Performs a task in a fresh process and gives back its samples. */
export function perform(task: Task, nodeOptions: readonly string[] = []): Promise<readonly Sample[]> {
  return new Promise((resolve, reject) => {
    const taken: Sample[] = []
    const process = fork(child, { execArgv: ['--expose-gc', ...nodeOptions] })
    process.send(task)
    process.on('message', (sample) => taken.push(sample as Sample))
    process.on('error', reject)
    process.on('exit', (code, signal) => {
      if (code === 0 && taken.length === task.samples) resolve(taken)
      else reject(new Error(`Measuring "${task.scenario}" ended with ${signal ?? `exit code ${code}`}; see above.`))
    })
  })
}

async function measureCase(
  scenario: Scenario,
  one: Case,
  index: number,
  settings: Settings,
): Promise<readonly Result[]> {
  const samples = one.samples ?? (one.isolated === true || settings.quick ? 3 : 5)
  const task = { scenario: scenario.name, index, settings, warmUpMs: settings.quick ? 1_500 : 3_000, samples }
  const taken: Sample[] = []
  if (one.isolated === true) {
    for (let count = 0; count < samples; count += 1)
      taken.push(...(await perform({ ...task, warmUpMs: 0, samples: 1 })))
  } else taken.push(...(await perform(task)))
  return (taken[0] ?? []).map(({ metric, unit, goals, better = null }, at) => {
    const values = taken.map((readings) => readings[at]?.value ?? Number.NaN)
    const shared = { scenario: scenario.name, case: one.name, metric, unit }
    const goal = goals?.[storeKindOf(settings.store)] ?? null
    return { ...shared, value: median(values), samples: values, goal, better }
  })
}
