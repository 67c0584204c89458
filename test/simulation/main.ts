// `npm run simulate -- --seeds 2000 --from 0`: simulates seeds, each twice, on all processors. `--canary no-fence` plants a
// bug, `--verbose` prints the story of each seed. A seed that fails is printed with the command that repeats it, and shrunk.

import { fork } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { add, emptyTally, simulateBatch, type Failure, type Tally } from './batch.ts'
import { canaryNamed } from './canaries.ts'
import { drawScenario } from './nemesis.ts'
import { shrink } from './shrink.ts'
import { simulate } from './simulate.ts'
import { replayCommand, outcomeLines, scenarioLines } from './story.ts'

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '2000' },
    from: { type: 'string', default: '0' },
    canary: { type: 'string' },
    verbose: { type: 'boolean', default: false },
    once: { type: 'boolean', default: false },
    processes: { type: 'string', default: String(availableParallelism()) },
    /** For the processes that this one starts: which share of the seeds is theirs. */
    share: { type: 'string' },
  },
})
const { canary } = values
const [from, seeds, processes] = [Number(values.from), Number(values.seeds), Number(values.processes)]
const options = { seeds, canary, twice: !values.once && canary === undefined, stopsAtFirst: canary !== undefined }
const reportEvery = 50

if (values.share !== undefined) await work(Number(values.share))
else if (values.verbose) await print()
else await conduct()

/** Simulates a share of the seeds and sends what came of it. */
async function work(share: number): Promise<void> {
  const onSeed = (tally: Tally): void => {
    if (tally.seeds % reportEvery === 0) process.send?.({ done: tally.seeds })
  }
  const tally = await simulateBatch({ ...options, from: from + share, seeds: seeds - share, stride: processes, onSeed })
  process.send?.({ tally }, () => process.disconnect())
}

async function print(): Promise<void> {
  for (let seed = from; seed < from + seeds; seed += 1) {
    const scenario = drawScenario(seed)
    const mutation = canary === undefined ? undefined : canaryNamed(canary).mutation
    const outcome = await simulate(scenario, { mutation, keepsStory: true })
    for (const line of scenarioLines({ ...scenario, isolation: outcome.isolation })) console.log(line)
    for (const line of outcome.story) console.log(`  ${line}`)
    for (const { name, runId, message } of outcome.violations) console.log(`✗ ${name} ${runId ?? ''}: ${message}`)
    console.log(`seed ${seed}: ${outcome.violations.length} violations, ${outcome.events} events, hash ${outcome.hash}`)
    if (outcome.violations.length > 0) {
      process.exitCode = 1
      await printShrunk({ seed, violations: outcome.violations })
    }
  }
}

async function conduct(): Promise<void> {
  const beganAt = performance.now()
  const done = Array.from({ length: processes }, () => 0)
  const sum = emptyTally()
  await Promise.all(
    done.map(async (_, share) => {
      const tally = await child(share, (count) => {
        done[share] = count
        bar(done.reduce((all, one) => all + one, 0))
      })
      done[share] = tally.seeds
      add(sum, tally)
    }),
  )
  if (process.stderr.isTTY) process.stderr.write('\r\u001B[K')
  summarise(sum, (performance.now() - beganAt) / 1_000)
  const [first] = sum.failures.sort((a, b) => a.seed - b.seed)
  if (first !== undefined) await printShrunk(first)
  if (sum.failures.length > 0 !== (canary !== undefined)) process.exitCode = 1
}

function child(share: number, onProgress: (done: number) => void): Promise<Tally> {
  const given = [...process.argv.slice(2), '--share', String(share), '--processes', String(processes)]
  const started = fork(fileURLToPath(import.meta.url), given)
  return new Promise((resolve, reject) => {
    let tally: Tally | null = null
    started.on('message', (message: { readonly done?: number; readonly tally?: Tally }) => {
      if (message.done !== undefined) onProgress(message.done)
      tally = message.tally ?? tally
    })
    started.on('error', reject)
    started.on('exit', (code) => {
      if (tally === null) reject(new Error(`Share ${share} ended with code ${code} and no answer.`))
      else resolve(tally)
    })
  })
}

function bar(done: number): void {
  if (!process.stderr.isTTY) return
  const width = 40
  const full = Math.round((width * done) / seeds)
  process.stderr.write(`\r${'█'.repeat(full)}${'░'.repeat(width - full)} ${done} of ${seeds}`)
}

function summarise(tally: Tally, seconds: number): void {
  const { faults, matrix, failures } = tally
  const rows: readonly (readonly [string, string | number])[] = [
    ['seeds', `${tally.seeds}${options.twice ? ', each twice' : ''}`],
    ['virtual hours', (tally.virtualMs / 3_600_000).toFixed(1)],
    ['runs', tally.runs],
    ['effects of steps', tally.effects],
    ['store calls', tally.storeCalls],
    ['events', tally.events],
    ['crashes, restarts', `${tally.crashes}, ${tally.restarts}`],
    ['standstills', tally.standstills],
    [
      'faults',
      Object.entries(faults)
        .map(([kind, count]) => `${kind} ${count}`)
        .join(', '),
    ],
    [
      'seeds with',
      Object.entries(matrix)
        .map(([kind, count]) => `${kind} ${count}`)
        .join(', '),
    ],
    ['violations', failures.length],
    ['took', `${seconds.toFixed(0)} s, ${(tally.seeds / seconds).toFixed(0)} seeds/s`],
  ]
  for (const [name, value] of rows) console.log(`  ${name.padEnd(20)}${value}`)
  const names = new Map<string, number[]>()
  for (const { seed, violations } of failures) {
    const name = violations[0]?.name ?? ''
    names.set(name, [...(names.get(name) ?? []), seed])
  }
  for (const [name, seedsOf] of names) console.log(`  ✗ ${name}: seeds ${seedsOf.slice(0, 8).join(', ')}`)
}

async function printShrunk({ seed, violations }: Failure): Promise<void> {
  console.log(`\nseed ${seed} fails. Again: ${replayCommand(seed, canary)}`)
  for (const { name, runId, message } of violations) console.log(`✗ ${name} ${runId ?? ''}: ${message}`)
  const scenario = drawScenario(seed)
  const mutation = canary === undefined ? undefined : canaryNamed(canary).mutation
  const outcome = await simulate(scenario, { mutation })
  if (outcome.violations.length === 0) return
  const shrunk = await shrink(scenario, outcome, mutation)
  console.log(`\nShrunk in ${shrunk.tries} tries:`)
  for (const line of scenarioLines({ ...shrunk.scenario, isolation: shrunk.outcome.isolation }))
    console.log(`  ${line}`)
  const story = await simulate(shrunk.scenario, { mutation, keepsStory: true })
  for (const line of outcomeLines(story)) console.log(`  ${line}`)
}
