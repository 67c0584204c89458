// `npm run soak`: mixed work at a share of what was measured to be possible, for as long as you like. In the end it shows what
// became of memory, latency, tables and invariants, draws it, and says whether something is wrong.

import { writeFileSync } from 'node:fs'
import { UsageError } from '../usage.ts'
import { drawChart } from './chart.ts'
import { conduct } from './conduct.ts'
import { helpText, parseOptions, type Options } from './options.ts'
import { withPlace } from './place.ts'
import { renderSummary } from './summary.ts'
import { judge } from './findings.ts'

/** The process that launched us may pass on the signal that the terminal has sent to us as well: so soon, it is the same. */
const echoMs = 1_000

async function main(options: Options): Promise<void> {
  if (options.help) return console.log(helpText)
  const interrupted = new AbortController()
  let askedAt = 0
  const interrupt = (): void => {
    if (!interrupted.signal.aborted) {
      askedAt = performance.now()
      console.log('Ends in good order; once more to end at once.')
      interrupted.abort()
    } else if (performance.now() > askedAt + echoMs) process.exit(130)
  }
  process.on('SIGINT', interrupt).on('SIGTERM', interrupt)
  const conducted = await withPlace(options.store, (place) =>
    conduct(place, options, (line) => console.log(line), interrupted.signal),
  )
  process.off('SIGINT', interrupt).off('SIGTERM', interrupt)
  if (conducted === null) return console.log('It was interrupted before anything could be measured.')
  const { soak, incidents } = conducted
  const summary = judge(soak, incidents)
  writeFileSync(`${options.out}.svg`, drawChart(soak, summary))
  console.log(`\n${renderSummary(conducted)}\n`)
  for (const note of summary.notes) console.log(note)
  for (const finding of summary.findings) console.error(`✗ ${finding}`)
  if (summary.findings.length === 0) console.log('✓ Nothing is wrong.')
  console.log(`${options.out}.svg shows it, ${options.out}.ndjson holds it.`)
  if (summary.findings.length > 0) process.exitCode = 1
}

try {
  await main(parseOptions(process.argv.slice(2)))
} catch (error) {
  console.error(error instanceof UsageError ? error.message : error)
  process.exitCode = error instanceof UsageError ? 2 : 1
}
