// `npm run bench`: measures the compiled package, one fresh process after another, and shows a table.

import { checkTarget, readBaseline, writeBaseline, type Baseline } from './compare/baseline.ts'
import { hasMoved, renderComparison } from './compare/comparison.ts'
import { conductComparison, type Measure } from './compare/conduct.ts'
import { measureScenario, type Result } from './conduct.ts'
import { helpText, parseOptions, type Options } from './options.ts'
import { withServer } from './postgres.ts'
import { profileScenario } from './profile.ts'
import { thisMachine, writeReport } from './report.ts'
import type { Scenario, Settings } from './scenario.ts'
import { scenarios } from './scenarios.ts'
import { storeKindOf } from './stores.ts'
import { renderTable } from './table.ts'
import { UsageError } from './usage.ts'

async function main(options: Options): Promise<void> {
  if (options.help) return console.log(helpText())
  const { quick } = options
  const profiled = scenarios.find(({ name }) => name === options.profile)
  // Whatever is wrong with a file is said before minutes are spent on measuring.
  const baseline = await baselineOf(options)
  if (options.writeBaseline !== undefined) await checkTarget(options.writeBaseline)
  await withServer(
    options.store,
    async (store) => {
      if (profiled === undefined) return measure(options, { store, quick }, baseline)
      console.log(`Profiling ${profiled.name} …`)
      console.log(await profileScenario(profiled, { store, quick }))
    },
    {
      timesStatements:
        profiled !== undefined || scenarios.find(({ name }) => name === options.only)?.timesStatements === true,
    },
  )
}

async function measure(options: Options, settings: Settings, baseline: Baseline | null): Promise<void> {
  const kind = storeKindOf(settings.store)
  const began = performance.now()
  const seconds = (): string => `${((performance.now() - began) / 1_000).toFixed(0).padStart(4)} s`
  const progress = (text: string): void => console.log(`${seconds()}  ${text}`)
  const chosen = scenarios.filter(({ name, onlyOn }) => {
    if (options.only !== undefined && name !== options.only) return false
    if (baseline !== null && !baseline.rows.some(({ scenario }) => scenario === name)) return false
    return onlyOn?.includes(kind) !== false
  })
  const measureOne = (scenario: Scenario): Promise<readonly Result[]> => measureScenario(scenario, settings, progress)
  const named: Measure = (name) => measureOne(chosen.find((scenario) => scenario.name === name)!)
  const comparison =
    baseline === null
      ? null
      : await conductComparison(
          baseline,
          chosen.map(({ name }) => name),
          named,
        )
  const results: Result[] = [...(comparison?.results ?? [])]
  if (comparison === null) for (const scenario of chosen) results.push(...(await measureOne(scenario)))
  const { node, cores, platform } = thisMachine()
  console.log(`${seconds()}  done\n\nnode ${node}, ${cores} cores, ${platform}, store ${kind}\n`)
  console.log(renderTable(results))
  if (options.json !== undefined) await writeReport(options.json, settings, results)
  if (options.writeBaseline !== undefined) await writeBaseline(options.writeBaseline, settings, results)
  if (baseline === null || comparison === null) return
  const { machine } = baseline
  console.log(`\nThe baseline: node ${machine.node}, ${machine.cores} cores, ${machine.platform}\n`)
  console.log(renderComparison(comparison.compared))
  if (comparison.compared.some(hasMoved)) process.exitCode = 1
}

async function baselineOf({ compare, store, quick, only }: Options): Promise<Baseline | null> {
  if (compare === undefined) return null
  const baseline = await readBaseline(
    compare,
    { store, quick },
    scenarios.map(({ name }) => name),
  )
  if (only !== undefined && !baseline.rows.some(({ scenario }) => scenario === only)) {
    throw new UsageError(`The baseline ${compare} says nothing about the scenario "${only}".`)
  }
  return baseline
}

try {
  await main(parseOptions(process.argv.slice(2)))
} catch (error) {
  console.error(error instanceof UsageError ? error.message : error)
  process.exitCode = error instanceof UsageError ? 2 : 1
}
