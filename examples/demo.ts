// `npm run demo`: an order goes through its workflow in a process of its own. In the middle of a step that process is
// killed; another one is started, goes on at that step, and `holdfast show` draws the journal of the run as a timeline.

import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { styleText } from 'node:util'
import { createHoldfast } from '../src/index.ts'
import { order } from './order.ts'

const isColourful = process.stdout.isTTY && process.env['NO_COLOR'] === undefined
const paint = (style: 'bold' | 'dim' | 'red', text: string): string => (isColourful ? styleText(style, text) : text)
const folder = mkdtempSync(join(tmpdir(), 'holdfast-demo-'))
const path = join(folder, 'orders.db')
let worker: ChildProcess | null = null

// However this ends, it leaves no process and no file behind.
process.on('exit', () => {
  worker?.kill('SIGKILL')
  rmSync(folder, { recursive: true, force: true })
})
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(130))

const [charge, reserve, label, pack, ship] = ['charge', 'reserve', 'label', 'pack', 'ship'].map((step) =>
  paint('bold', step),
)
console.log(`An order: ${charge} (the bank fails once), then ${reserve} and ${label}`)
console.log(`side by side, a sleep of a second, ${pack}, ${ship}. Its journal is one SQLite file.\n`)

const shop = await createHoldfast({ store: `sqlite:${path}`, workflows: [order] })
const run = await shop.start(order, { id: '42', total: 99 })
narrate('shop', `started run ${run.id}; nobody performs it yet`)

const packing = startWorker()
await packing.says('begins to pack')
await new Promise((resolve) => setTimeout(resolve, 700))
packing.process.kill('SIGKILL')
await once(packing.process, 'exit')
console.log(paint('red', `\n  kill -9 ${packing.process.pid}, in the middle of "pack". That process is gone.\n`))
const recorded = (await shop.journal(run)).flatMap(({ kind, name }) => (kind === 'step-succeeded' ? [name] : []))
narrate('shop', `the file still says that the run is ${await run.status()}, with ${recorded.join(', ')} done`)
narrate('shop', 'nobody may touch it until its lease of 2 s has run out')

const heir = startWorker()
const result = await run.result({ timeout: '30s' })
narrate('shop', 'the run has ended')
heir.process.kill('SIGTERM')
await once(heir.process, 'exit')

await shop.close()
console.log(`\n$ holdfast show ${run.id} --store sqlite:orders.db\n`)
const cli = fileURLToPath(new URL('../src/cli/main.ts', import.meta.url))
spawnSync(process.execPath, ['--import', 'tsx', cli, 'show', run.id, '--store', `sqlite:${path}`], { stdio: 'inherit' })
console.log('\nThe result:', result)

/** Starts a worker and retells what it says. */
function startWorker() {
  const program = fileURLToPath(new URL('worker.ts', import.meta.url))
  // The program itself, not a launcher, so that the signal hits what does the work.
  const child = spawn(process.execPath, ['--import', 'tsx', program, path], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  worker = child
  const lines = createInterface({ input: child.stdout })
  lines.on('line', (line) => narrate(`worker ${child.pid}`, line))
  return {
    process: child,
    says: (text: string) =>
      new Promise<void>((resolve) => lines.on('line', (line) => line.includes(text) && resolve())),
  }
}

function narrate(who: string, line: string): void {
  console.log(`  ${paint('dim', who.padEnd(14))} ${line}`)
}
