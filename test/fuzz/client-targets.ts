// What callers of the client hand over: cursors and ids, on a store of each kind that needs no server, and exported runs.

import { createHoldfast, createMemoryStore, topic, workflow, type ExportedRun, type Holdfast } from '../../src/index.ts'
import { checkExported } from '../../src/client/read/export-run.ts'
import { openSqliteStore } from '../../src/stores/sqlite/index.ts'
import { hurriedClock } from '../holdfast/hurried-clock.ts'
import { fc } from '../support/properties.ts'
import { hostileText, hostileTexts, mutated, someId } from './hostile-text.ts'
import { allowingLater, holds, target, type Target } from './target.ts'

const quiet = (): void => undefined
const logger = { debug: quiet, info: quiet, warn: quiet, error: quiet }
const paid = topic<number>('paid', { onUnread: 'dead-letter' })
const order = workflow('order', async (ctx, id: string) => {
  const approval = ctx.token<string>()
  const receipt = await ctx.step('charge', () => `receipt of ${id}`)
  ctx.expose('token', approval.token)
  const answer = await ctx.race({ approval, late: ctx.sleep('1 ms') })
  return [receipt, answer.tag]
})

interface Opened {
  readonly holdfasts: readonly Holdfast[]
  readonly replaying: Holdfast
  readonly exported: ExportedRun
  readonly runId: string
  readonly next: string
}

let opened: Promise<Opened> | undefined

/** Once for all cases: they change nothing. */
function open(): Promise<Opened> {
  opened ??= (async () => {
    const stores = [createMemoryStore(), await openSqliteStore({ path: ':memory:', driver: 'libsql' })]
    const holdfasts = await Promise.all(stores.map((store) => createHoldfast({ store, workflows: [order], logger })))
    let [runId, next] = ['', '']
    for (const holdfast of holdfasts) {
      const worker = await holdfast.work({ signals: false })
      const run = await holdfast.start(order, '42')
      await run.result()
      await worker.stop()
      const late = await holdfast.start(order, '43')
      for (const id of ['one', 'two']) await holdfast.signal(late, paid, 1, { id })
      await holdfast.cancel(late)
      runId = run.id
      next = (await holdfast.deadLetters({ limit: 1 })).next ?? ''
    }
    const [memory] = holdfasts
    if (memory === undefined) throw new Error('No store was opened')
    const [first] = (await memory.find({ status: 'succeeded' })).runs
    const replaying = await createHoldfast({
      store: 'memory:',
      workflows: [order],
      logger,
      ports: { clock: hurriedClock() },
    })
    return { holdfasts, replaying, exported: await memory.export(first?.id ?? ''), runId, next }
  })()
  return opened
}

/** Lets go of what the cases share. */
export async function closeShared(): Promise<void> {
  if (opened === undefined) return
  const { holdfasts, replaying } = await opened
  opened = undefined
  await Promise.all([...holdfasts, replaying].map((holdfast) => holdfast.close()))
}

const cursor = fc.oneof(hostileText, mutated(fc.constantFrom(someId, `${someId} letter`)), fc.uuid({ version: 7 }))

const cursors = target({
  name: 'cursors and ids',
  perMillion: 12_000,
  cases: fc.tuple(cursor, fc.oneof(fc.integer(), fc.double(), fc.constantFrom(0, 1, -1, Number.NaN, Infinity))),
  corpus: hostileTexts.map((text): [string, number] => [text, 1]),
  async run([text, number]) {
    const { holdfasts, runId, next } = await open()
    const whole = Number.isSafeInteger(number) ? number : 1
    const refused = ['INVALID_OPTION', 'INVALID_NAME', 'RUN_NOT_FOUND'] as const
    for (const holdfast of holdfasts) {
      const calls: readonly (() => Promise<unknown>)[] = [
        () => holdfast.find({ after: text }),
        () => holdfast.find({ limit: number }),
        () => holdfast.deadLetters({ after: text }),
        () => holdfast.deadLetters({ after: next + text, limit: number }),
        () => holdfast.journal(text),
        () => holdfast.journal(runId, { after: whole }),
        () => holdfast.journal(runId, { limit: whole }),
        () => holdfast.get(text),
        () => holdfast.find({ key: text, type: text, tag: text, idempotencyKey: text }),
        () => holdfast.find({ typePrefix: text, parent: text }),
      ]
      for (const call of calls) await allowingLater(refused, call)
      holds((await holdfast.complete(text, 1)).outcome === 'invalid-token', 'It is taken for a token')
    }
  },
})

type Spoilt = readonly [path: readonly (string | number)[], value: unknown]

const keys = [
  'run',
  'entries',
  'format',
  'id',
  'type',
  'version',
  'seq',
  'token',
  'kind',
  'name',
  'meta',
  'data',
  'at',
  'conditions',
  'by',
]
const spoiling: fc.Arbitrary<Spoilt> = fc.tuple(
  fc.array(fc.oneof(fc.constantFrom(...keys), fc.nat(8)), { minLength: 1, maxLength: 4 }),
  fc.oneof(fc.jsonValue(), hostileText, fc.constantFrom('step-failed', 'woken', 'continued', 'amended', 'toString')),
)

/** The same export, with another value at a path, as far as it leads. */
function spoil(exported: ExportedRun, changes: readonly Spoilt[]): unknown {
  const copy: unknown = structuredClone(exported)
  for (const [path, value] of changes) {
    let at = copy
    for (const key of path.slice(0, -1)) {
      const next: unknown = (at as Record<string | number, unknown> | null)?.[key]
      if (typeof next === 'object' && next !== null) at = next
    }
    const last = path.at(-1) ?? ''
    Object.defineProperty(at, last, { value, enumerable: true, writable: true, configurable: true })
  }
  return copy
}

const exports = target({
  name: 'exported runs',
  perMillion: 4_000,
  cases: fc.array(spoiling, { minLength: 1, maxLength: 3 }),
  corpus: [[[['run', 'id'], '\u001B[2J']], [[['entries', 1, 'kind'], 'toString']], [[['entries', 2, 'meta'], null]]],
  async run(changes) {
    const { exported, replaying } = await open()
    const spoilt = spoil(exported, changes) as ExportedRun
    await allowingLater(['INVALID_OPTION', 'WORKFLOW_UNKNOWN'], async () => {
      checkExported(spoilt)
      await replaying.replay(spoilt)
    })
  },
})

export const clientTargets: readonly Target[] = [cursors, exports]
