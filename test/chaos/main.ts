// `npm run chaos`: a minute of chaos on a Postgres of its own, which writes to disk what it acknowledges. `-- --minutes 10`,
// `--store sqlite`, `--only sigkill,sigstop`, `--plant no-fence` and so on; `--seed` gives the same load and blows again.

import { parseArgs } from 'node:util'
import { performChaos } from './chaos.ts'
import type { Plant, StoreKind } from './field.ts'
import { nemeses } from './nemeses/index.ts'

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '1' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    store: { type: 'string', default: 'postgres' },
    workers: { type: 'string', default: '4' },
    only: { type: 'string' },
    plant: { type: 'string', default: 'none' },
  },
})

const store = oneOf<StoreKind>('store', values.store, ['postgres', 'sqlite'])
const plant = oneOf<Plant>('plant', values.plant, ['none', 'no-fence', 'blind-retry'])
const known = nemeses.filter(({ stores }) => stores.includes(store)).map(({ name }) => name)
const only = values.only?.split(',').map((name) => oneOf('only', name, known))
const [minutes, seed, workers] = [Number(values.minutes), Number(values.seed), Number(values.workers)]

const where = store === 'sqlite' ? 'one SQLite file' : 'a Postgres of its own with fsync'
console.log(`chaos: ${minutes} min, ${workers} workers on ${where}, seed ${seed}, planted: ${plant}`)
const { violations } = await performChaos({
  store,
  plant,
  minutes,
  seed,
  workers,
  only,
  print: (line) => console.log(line),
  onProgress: (line) => console.log(line),
})
process.exitCode = violations.length === 0 ? 0 : 1

function oneOf<Word extends string>(option: string, given: string, words: readonly Word[]): Word {
  const word = words.find((one) => one === given)
  if (word !== undefined) return word
  console.error(`--${option} is one of ${words.join(', ')}. Got ${given}.`)
  process.exit(64)
}
