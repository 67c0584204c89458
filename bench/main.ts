// `npm run bench`: measures the compiled package, one fresh process after another, and shows a table.

import { measureScenario, type Result } from './conduct.ts'
import { helpText, parseOptions, type Options } from './options.ts'
import { withServer } from './postgres.ts'
import { profileScenario } from './profile.ts'
import { thisMachine, writeReport } from './report.ts'
import type { Settings } from './scenario.ts'
import { scenarios } from './scenarios.ts'
import { storeKindOf } from './stores.ts'
import { renderTable } from './table.ts'
import { UsageError } from './usage.ts'

async function main(options: Options): Promise<void> {
  if (options.help) return console.log(helpText())
  const { quick } = options
  const profiled = scenarios.find(({ name }) => name === options.profile)
  await withServer(
    options.store,
    async (store) => {
      if (profiled === undefined) return measure(options, { store, quick })
      console.log(`Profiling ${profiled.name} …`)
      console.log(await profileScenario(profiled, { store, quick }))
    },
    { tells: profiled !== undefined || scenarios.find(({ name }) => name === options.only)?.tells === true },
  )
}

async function measure(options: Options, settings: Settings): Promise<void> {
  const kind = storeKindOf(settings.store)
  const began = performance.now()
  const seconds = (): string => `${((performance.now() - began) / 1_000).toFixed(0).padStart(4)} s`
  const results: Result[] = []
  for (const scenario of scenarios) {
    if (options.only !== undefined && scenario.name !== options.only) continue
    if (scenario.onlyOn?.includes(kind) === false) continue
    const progress = (text: string): void => console.log(`${seconds()}  ${text}`)
    results.push(...(await measureScenario(scenario, settings, progress)))
  }
  const { node, cores, platform } = thisMachine()
  console.log(`${seconds()}  done\n\nnode ${node}, ${cores} cores, ${platform}, store ${kind}\n`)
  console.log(renderTable(results))
  if (options.json !== undefined) await writeReport(options.json, settings, results)
}

try {
  await main(parseOptions(process.argv.slice(2)))
} catch (error) {
  console.error(error instanceof UsageError ? error.message : error)
  process.exitCode = error instanceof UsageError ? 2 : 1
}
