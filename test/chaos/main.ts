// `npm run chaos`: a minute of chaos on a Postgres of its own, which writes to disk what it acknowledges. `-- --minutes 10`,
// `--store sqlite`, `--store citus`, `--only sigkill,sigstop`, `--plant no-fence` and so on; `--seed` gives the same load and blows again.
// `-- --keep` writes everything into a folder, also if nothing was wrong.
// `-- --markdown` prints nothing but the tables, as they stand in docs/testing.md, on the standard output.
// `-- --restarts` kills every worker two seconds after it came to work, for three minutes: no run may be blamed for that.
// It fails, with exit code 1, if anything was violated, or if recoveries took longer than their goal; with `--restarts` there is
// no such goal, because no worker lives long enough to perform a suspect.

import { parseArgs } from 'node:util'
import { performChaos } from './chaos.ts'
import type { Plant, StoreKind } from './testbed.ts'
import { nemeses } from './nemeses/index.ts'

const { values } = parseArgs({
  options: {
    minutes: { type: 'string' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    store: { type: 'string', default: 'postgres' },
    workers: { type: 'string', default: '4' },
    only: { type: 'string' },
    plant: { type: 'string', default: 'none' },
    restarts: { type: 'boolean', default: false },
    markdown: { type: 'boolean', default: false },
    keep: { type: 'boolean', default: false },
  },
})

const store = oneOf<StoreKind>('store', values.store, ['postgres', 'sqlite', 'citus'])
const plant = oneOf<Plant>('plant', values.plant, ['none', 'no-fence', 'blind-retry', 'lost-touch'])
const known = nemeses.filter(({ stores }) => stores.includes(store)).map(({ name }) => name)
const only = values.restarts ? ['restarts'] : values.only?.split(',').map((name) => oneOf('only', name, known))
const minutes = Number(values.minutes ?? (values.restarts ? '3' : '1'))
const [seed, workers] = [Number(values.seed), Number(values.workers)]

const places: Readonly<Record<StoreKind, string>> = {
  sqlite: 'one SQLite file',
  postgres: 'a Postgres of its own with fsync',
  citus: 'a cluster of Citus of its own with fsync',
}
const where = places[store]
const print = values.markdown ? console.error : console.log
print(`chaos: ${minutes} min, ${workers} workers on ${where}, seed ${seed}, planted: ${plant}`)
const { violations, missedGoal } = await performChaos({
  store,
  plant,
  minutes,
  seed,
  workers,
  only,
  keep: values.keep,
  format: values.markdown ? 'markdown' : 'text',
  print: (line) => console.log(line),
  onProgress: (line) => print(line),
})
const missed = values.restarts ? null : missedGoal
if (missed !== null) print(`  ✗ recovery_goal: ${missed}.`)
process.exitCode = violations.length === 0 && missed === null ? 0 : 1

function oneOf<Word extends string>(option: string, given: string, words: readonly Word[]): Word {
  const word = words.find((one) => one === given)
  if (word !== undefined) return word
  console.error(`--${option} is one of ${words.join(', ')}. Got ${given}.`)
  process.exit(64)
}
