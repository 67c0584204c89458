// `npm run chaos`: kills 50 processes over 200 runs and judges what is left. `-- --kills 12 --runs 60 --seed 7` for
// another size, or for the same blows again. `-- --store postgres` starts a Postgres of its own, which writes to disk what
// it acknowledges; an address is taken as it is.

import { parseArgs } from 'node:util'
import { startPostgres, type Cluster } from '../support/postgres.ts'
import { drill } from './drill.ts'

const { values } = parseArgs({
  options: {
    kills: { type: 'string', default: '50' },
    runs: { type: 'string', default: '200' },
    store: { type: 'string', default: 'sqlite' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  },
})
const [kills, runs, seed] = [Number(values.kills), Number(values.runs), Number(values.seed)]

const where =
  { sqlite: 'one SQLite file', postgres: 'a Postgres of its own with fsync' }[values.store] ?? 'the store given'
console.log(`chaos: ${kills} times kill -9 over ${runs} runs of 5 steps, 3 workers on ${where}, seed ${seed}`)
const cluster = values.store === 'postgres' ? await startPostgres({ version: 'embedded' }) : null
const store = cluster === null ? addressOf(values.store) : { store: `${cluster.url}?schema=chaos` }
const report = await performed(cluster)

function addressOf(given: string): { readonly store?: string } {
  return given === 'sqlite' ? {} : { store: given }
}

async function performed(own: Cluster | null): ReturnType<typeof drill> {
  try {
    return await drill({ kills, runs, seed, ...store, onProgress: (line) => console.log(`  ${line}`) })
  } finally {
    await own?.remove()
  }
}

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
    `${report.violations.length} violations. ` +
      `Again: npm run chaos -- --kills ${kills} --runs ${runs} --seed ${seed} --store ${values.store}`,
  )
  process.exitCode = 1
} else {
  for (const [name, value] of table) console.log(`  ${name.padEnd(32)}${String(value).padStart(10)}`)
}
