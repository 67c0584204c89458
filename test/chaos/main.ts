// `npm run chaos`: kills 50 processes over 200 runs and judges what is left. `-- --kills 12 --runs 60 --seed 7` for
// another size, or for the same blows again.

import { parseArgs } from 'node:util'
import { drill } from './drill.ts'

const { values } = parseArgs({
  options: {
    kills: { type: 'string', default: '50' },
    runs: { type: 'string', default: '200' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  },
})
const [kills, runs, seed] = [Number(values.kills), Number(values.runs), Number(values.seed)]

console.log(`chaos: ${kills} times kill -9 over ${runs} runs of 5 steps, 3 workers on one SQLite file, seed ${seed}`)
const report = await drill({ kills, runs, seed, onProgress: (line) => console.log(`  ${line}`) })

const at = (fraction: number): string => {
  const { recoveryMs } = report
  const ms = recoveryMs[Math.min(recoveryMs.length - 1, Math.floor(recoveryMs.length * fraction))]
  return ms === undefined ? '–' : `${ms} ms`
}
const table: readonly (readonly [string, string | number])[] = [
  ['kills', report.kills],
  ['runs, all succeeded', report.runs],
  ['steps recorded, each once', report.steps],
  ['steps that had to be repeated', report.repeated],
  ['takeovers', report.takeovers],
  ['recovery p50 (lease 1 s)', at(0.5)],
  ['recovery max', at(1)],
  ['took', `${report.seconds.toFixed(1)} s`],
]
if (report.violations.length > 0) {
  for (const violation of report.violations) console.error(`  ✗ ${violation}`)
  console.error(
    `${report.violations.length} violations. Again: npm run chaos -- --kills ${kills} --runs ${runs} --seed ${seed}`,
  )
  process.exitCode = 1
} else {
  for (const [name, value] of table) console.log(`  ${name.padEnd(32)}${String(value).padStart(10)}`)
}
