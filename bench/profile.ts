// Where the time of a scenario goes: runs its last case under node's sampling profiler and adds up self time, by part of
// the engine and by function. Natives, microtasks included, stand under `runtime`: the profiler sees no further. How much of
// the time node had nothing to do says whether it is the engine or the database that limits; of Postgres its own times of
// statements are shown, too.

import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { perform } from './conduct.ts'
import type { Scenario, Settings } from './scenario.ts'
import { renderStatementTimes } from './statement-times.ts'
import { storeKindOf } from './stores.ts'

interface CpuProfile {
  readonly nodes: readonly {
    readonly id: number
    readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number }
  }[]
  readonly samples: readonly number[]
  readonly timeDeltas: readonly number[]
}

const shownFunctions = 25

export async function profileScenario(scenario: Scenario, settings: Settings): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-bench-'))
  try {
    const index = scenario.cases(settings).length - 1
    const task = { scenario: scenario.name, index, settings, warmUpMs: 3_000, samples: settings.quick ? 3 : 5 }
    await perform(task, ['--cpu-prof', '--cpu-prof-interval=250', `--cpu-prof-dir=${folder}`])
    const [file] = await readdir(folder)
    if (file === undefined) throw new Error('node wrote no profile.')
    const profile = renderProfile(JSON.parse(await readFile(join(folder, file), 'utf8')) as CpuProfile)
    if (storeKindOf(settings.store) !== 'postgres') return profile
    return `${profile}\n\n${await renderStatementTimes(settings.store)}`
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

function renderProfile({ nodes, samples, timeDeltas }: CpuProfile): string {
  const frames = new Map(nodes.map(({ id, callFrame }) => [id, callFrame]))
  const byFunction = new Map<string, number>()
  const byPart = new Map<string, number>()
  let total = 0
  let idle = 0
  samples.forEach((id, index) => {
    const frame = frames.get(id)
    const spent = timeDeltas[index] ?? 0
    if (frame?.functionName === '(idle)') idle += spent
    if (frame === undefined || frame.functionName === '(idle)' || frame.functionName === '(root)') return
    const file = fileOf(frame.url)
    const part = partOf(file, frame.functionName)
    const place = file === '' ? '' : `  ${file}:${frame.lineNumber + 1}`
    const name = `${part.padEnd(10)} ${frame.functionName || '(anonymous)'}${place}`
    total += spent
    byFunction.set(name, (byFunction.get(name) ?? 0) + spent)
    byPart.set(part, (byPart.get(part) ?? 0) + spent)
  })
  const list = (sums: ReadonlyMap<string, number>, count: number): string =>
    [...sums]
      .sort(([, a], [, b]) => b - a)
      .slice(0, count)
      .map(([name, spent]) => `${((100 * spent) / total).toFixed(1).padStart(6)} %  ${name}`)
      .join('\n')
  return (
    `Busy ${((100 * total) / (total + idle)).toFixed(0)} % of the time\n\n` +
    `Self time by part\n${list(byPart, byPart.size)}\n\n` +
    `Self time by function, the first ${shownFunctions}\n${list(byFunction, shownFunctions)}`
  )
}

/** The file as seen from `dist`, or from the folder of packages; empty for natives. */
function fileOf(url: string): string {
  return url
    .replace(/^.*\/node_modules\//, '')
    .replace(/^.*\/bench\/dist\/bench\//, 'bench/')
    .replace(/^.*\/dist\//, '')
}

function partOf(file: string, name: string): string {
  if (name === '(garbage collector)') return 'gc'
  if (file === '' || file.startsWith('node:')) return 'runtime'
  if (/^core\/(json|codec|payload|bytes|error-data|built-in)/.test(file)) return 'codec'
  if (/^(libsql|@neon-rs|pg|pg-[a-z]+)\//.test(file)) return 'driver'
  if (file.startsWith('stores/')) return 'store'
  return file.includes('/') ? (file.split('/', 1)[0] ?? file) : 'other'
}
