// What the compiler makes of a Holdfast: what `start` takes, what `result` gives, which options exist. Never run.

import { z } from 'zod'
import { createHoldfast, workflow, type BulkOutcome, type Holdfast, type RunHandle, type RunStatus } from 'holdfast'
import * as billing from '../holdfast/billing.ts'
import { expectType, type Equal } from './expect-type.ts'

const greet = workflow('greet', (_ctx, name: string) => ({ text: `Hello, ${name}` }))
const tick = workflow('tick', () => 1)
const maybe = workflow('maybe', (_ctx, name?: string) => name ?? null)
const dated = workflow('dated', { input: z.string().transform((text) => new Date(text)) }, (_ctx, at) => at)

export async function starting(holdfast: Holdfast): Promise<void> {
  const run = await holdfast.start(greet, 'Ada')
  expectType<Equal<typeof run, RunHandle<{ text: string }>>>(true)
  const result = await run.result({ timeout: '1 min' })
  expectType<Equal<typeof result, { text: string }>>(true)
  const status = await run.status()
  expectType<Equal<typeof status, RunStatus>>(true)

  await holdfast.start(tick)
  await holdfast.start(tick, undefined, { priority: 5 })
  await holdfast.start(maybe)
  await holdfast.start(maybe, 'Ada')
  const at = await (await holdfast.start(dated, '2026-01-01')).result()
  expectType<Equal<typeof at, Date>>(true)

  const byName = await holdfast.start('greet', { anything: true }, { priority: 1 })
  expectType<Equal<typeof byName, RunHandle<unknown>>>(true)

  // @ts-expect-error -- the input is missing
  await holdfast.start(greet)

  // @ts-expect-error -- the input is wrong
  await holdfast.start(greet, 42)

  // @ts-expect-error -- it takes the schema's input, a string, not its output
  await holdfast.start(dated, new Date())

  // @ts-expect-error -- it has no input
  await holdfast.start(tick, 42)

  // @ts-expect-error -- misspelt: priority
  await holdfast.start(greet, 'Ada', { priorty: 1 })

  // @ts-expect-error -- misspelt by name, too: priority
  await holdfast.start('greet', 'Ada', { priorty: 1 })

  // @ts-expect-error -- a definition is no input of another
  await holdfast.start(greet, greet)
}

export async function inTransaction(holdfast: Holdfast, tx: unknown): Promise<void> {
  const using = holdfast.using(tx)
  const run = await using.start(greet, 'Ada', { key: 'ada' })
  expectType<Equal<typeof run, RunHandle<{ text: string }>>>(true)
  const delivered = await using.signal(run, 'paid', { amount: 3 }, { id: 'payment-1' })
  expectType<Equal<typeof delivered.outcome, 'delivered' | 'queued' | 'target-terminated' | 'target-not-found'>>(true)
  await using.cancel(run.id, { reason: 'enough' })

  // @ts-expect-error -- the input is missing
  await using.start(greet)

  // @ts-expect-error -- misspelt: reason
  await using.cancel(run, { raeson: 'enough' })
}

export async function reading(holdfast: Holdfast): Promise<void> {
  const untyped = holdfast.run('id')
  expectType<Equal<typeof untyped, RunHandle<unknown>>>(true)
  const typed = holdfast.run<{ text: string }>('id')
  expectType<Equal<typeof typed, RunHandle<{ text: string }>>>(true)

  const view = await holdfast.get(typed)
  expectType<Equal<typeof view.status, RunStatus>>(true)
  expectType<Equal<typeof view.output, unknown>>(true)
  const [entry] = await holdfast.journal(view)
  expectType<Equal<NonNullable<typeof entry>['at'], Date>>(true)
  if (entry?.kind === 'attempt-failed') {
    expectType<Equal<typeof entry.meta.delayMs, number>>(true)
    expectType<Equal<typeof entry.name, string | null>>(true)
  }

  // @ts-expect-error -- misspelt: timeout
  await typed.result({ timeOut: 5 })

  // @ts-expect-error -- a misspelt unit: min
  await typed.result({ timeout: '1 mni' })
}

export async function opening(): Promise<void> {
  await createHoldfast({ store: 'memory:' })
  await createHoldfast({ store: 'memory:', workflows: [greet, tick, dated] })
  await createHoldfast({ store: 'memory:', workflows: billing })
  await createHoldfast({ store: 'memory:', logger: console })

  // @ts-expect-error -- there is no store
  await createHoldfast({ workflows: [greet] })

  // @ts-expect-error -- misspelt: workflows
  await createHoldfast({ store: 'memory:', workflow: [greet] })

  // @ts-expect-error -- a function is no workflow
  await createHoldfast({ store: 'memory:', workflows: [() => 1] })

  const holdfast = await createHoldfast({ store: 'memory:' })
  const worker = await holdfast.work({ concurrency: 10, shutdownTimeout: '5s' })
  await worker.stop()

  // @ts-expect-error -- misspelt: concurrency
  await holdfast.work({ concurency: 10 })

  // @ts-expect-error -- a misspelt unit: s
  await holdfast.work({ shutdownTimeout: '5 sceonds' })
}

export async function inBulk(holdfast: Holdfast): Promise<void> {
  const previews = await Promise.all([
    holdfast.cancelMany({ type: 'greet' }, { preview: true }),
    holdfast.retryMany({ type: 'greet' }, { preview: true }),
    holdfast.resumeMany({ type: 'greet' }, { preview: true, reason: 'drift' }),
    holdfast.pauseMany({ type: 'greet' }, { preview: true, reason: 'maintenance', note: 'lunch' }),
    holdfast.removeMany({ type: 'greet' }, { preview: true, reason: 'a test' }),
  ])
  expectType<Equal<(typeof previews)[number], BulkOutcome>>(true)
  for (const { pause } of previews[0].first ?? []) {
    if (pause?.reason === 'drift') expectType<Equal<typeof pause.note, string>>(true)
    // @ts-expect-error -- only a drift has a diff
    expectType<Equal<typeof pause.recorded, unknown>>(false)
  }

  // @ts-expect-error -- a filter is needed, even if it is {}
  await holdfast.pauseMany()

  // @ts-expect-error -- only the engine pauses for crashes
  await holdfast.pauseMany({ type: 'greet' }, { reason: 'crashes' })

  // @ts-expect-error -- removing leaves no note, but a reason
  await holdfast.removeMany({ type: 'greet' }, { note: 'a test' })
}
