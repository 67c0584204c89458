// `npm run demo`: an order goes through its workflow while you watch, and its journal is drawn as a timeline.

import { createHoldfast, workflow, type JournalEntry } from '../src/index.ts'

interface Order {
  readonly id: string
  readonly total: number
}

const order = workflow('shop.order', { retry: { base: '400ms' } }, async (ctx, { id, total }: Order) => {
  const payment = await ctx.step('charge', async ({ attempt, idempotencyKey }) => {
    await takesAbout(250)
    if (attempt === 1) throw new Error('The bank did not answer')
    return { amount: total, receipt: idempotencyKey.slice(-8) }
  })
  const [shelf, label] = await Promise.all([
    ctx.step('reserve', () => takesAbout(500).then(() => 'shelf 12')),
    ctx.step('label', () => takesAbout(300).then(() => `parcel-${id}`)),
  ])
  await ctx.sleep('1s')
  const carrier = await ctx.step('ship', () => takesAbout(350).then(() => 'Harbour Post'))
  return { paid: payment.amount, shelf, label, carrier }
})

const paint = painter(process.stdout.isTTY && process.env['NO_COLOR'] === undefined)

console.log('An order: charge (the bank fails once), reserve and label side by side, sleep 1 s, ship.')
console.log(paint.dim("This runs on 'memory:', a store that keeps nothing after the process ends.\n"))

const holdfast = await createHoldfast({ store: 'memory:', workflows: [order] })
await holdfast.work()
const run = await holdfast.start(order, { id: '42', total: 99 })
console.log(`Started run ${paint.bold(run.id)}`)

const result = run.result({ timeout: '8s' })
const ended = result.then(() => true)
let told = 0
for (let isOver = false; !isOver;) {
  isOver = await Promise.race([ended, takesAbout(50).then(() => false)])
  const journal = await holdfast.journal(run)
  for (const entry of journal.slice(told)) console.log(`  ${paint.dim('journal')} ${story(entry)}`)
  told = journal.length
}

console.log('\nIts timeline, drawn from the journal:\n')
for (const line of timeline(await holdfast.journal(run))) console.log(line)
console.log('\nIts result:', await result)
await holdfast.close()

function story({ seq, kind, name }: JournalEntry): string {
  return `${String(seq).padStart(2)} ${kind}${name === null ? '' : ` ${paint.bold(name)}`}`
}

/** One line per entry: when it was written, what it is, a bar from its beginning to its end, attempt and duration. */
function timeline(journal: readonly JournalEntry[]): readonly string[] {
  const began = journal[0]?.at.getTime() ?? 0
  const span = Math.max(1, (journal.at(-1)?.at.getTime() ?? 0) - began)
  const width = 40
  return journal.map((entry) => {
    const end = entry.at.getTime() - began
    const { ms, attempt } = timing(entry, journal)
    const from = Math.round(((end - ms) / span) * width)
    const length = Math.max(1, Math.round((ms / span) * width))
    const { mark, colour } = looks(entry)
    const bar = (ms === 0 ? mark : mark.repeat(length)).padStart(Math.min(from, width - 1) + (ms === 0 ? 1 : length))
    const offset = `+${(end / 1000).toFixed(2)} s`.padStart(8)
    const told =
      (attempt === undefined ? '' : `attempt ${attempt}`).padEnd(9) + (ms === 0 ? '' : `${ms} ms`.padStart(9))
    return `${offset}  ${(entry.name ?? entry.kind).padEnd(10)} ${colour(bar.padEnd(width + 2))} ${told}`.trimEnd()
  })
}

/** How long an entry looks back: to the beginning of its attempt, or of its wait. */
function timing({ kind, name, meta, at }: JournalEntry, journal: readonly JournalEntry[]) {
  if (kind === 'woken') {
    const waiting = journal.find((entry) => entry.kind === 'waiting' && entry.name === name)
    return { ms: at.getTime() - (waiting?.at.getTime() ?? at.getTime()), attempt: undefined }
  }
  return meta !== null && 'attempt' in meta ? meta : { ms: 0, attempt: undefined }
}

function looks({ kind }: JournalEntry): { readonly mark: string; readonly colour: (text: string) => string } {
  switch (kind) {
    case 'step-succeeded':
      return { mark: '█', colour: paint.green }
    case 'attempt-failed':
    case 'step-failed':
      return { mark: '░', colour: paint.red }
    case 'woken':
      return { mark: '·', colour: paint.dim }
    case 'succeeded':
      return { mark: '✓', colour: paint.green }
    default:
      return { mark: '○', colour: paint.dim }
  }
}

function painter(isColoured: boolean) {
  const style = (code: number) => (text: string) => (isColoured ? `\u001B[${code}m${text}\u001B[0m` : text)
  return { bold: style(1), dim: style(2), red: style(31), green: style(32) }
}

function takesAbout(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
