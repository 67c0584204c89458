// What the compiler knows of operations, and what it refuses. This file is compiled, never run.

import {
  operation,
  topic,
  workflow,
  type BroadcastOutcome,
  type CancelOutcome,
  type Holdfast,
  type Operation,
  type RunHandle,
  type SendOrStartOutcome,
  type SettledOperation,
  type SignalOutcome,
} from 'holdfast'
import { expectType, type Equal } from './expect-type.ts'

const greet = workflow('greet', (_ctx, name: string) => ({ text: `Hello, ${name}` }))
const news = topic<{ readonly title: string }>('news')

export async function submitting(holdfast: Holdfast): Promise<void> {
  const started = await holdfast.submit(operation.start(greet, 'Ada'))
  expectType<Equal<typeof started, RunHandle<{ text: string }>>>(true)
  const literal = await holdfast.submit({ kind: 'signal', to: 'id', name: 'paid', payload: 3 })
  expectType<Equal<typeof literal, SignalOutcome>>(true)
  const cancelled = await holdfast.submit(operation.cancel(started))
  expectType<Equal<typeof cancelled, CancelOutcome>>(true)
  const id = await holdfast.submit('greet', 'Ada').withPriority(1).execute()
  expectType<Equal<typeof id, string>>(true)

  // @ts-expect-error -- there is no such kind
  await holdfast.submit({ kind: 'singal', to: 'id', name: 'paid' })

  // @ts-expect-error -- a signal needs to say whom it is for
  await holdfast.submit({ kind: 'signal', name: 'paid' })
}

export async function batching(holdfast: Holdfast): Promise<void> {
  const [started, sent, broadcast] = await holdfast.submitBatch([
    operation.start(greet, 'Ada'),
    operation.signal({ type: 'greet', key: 'ada' }, 'paid'),
    operation.broadcast(news, { title: 'x' }),
  ])
  expectType<Equal<typeof started, SettledOperation<RunHandle<{ text: string }>>>>(true)
  expectType<Equal<typeof sent, SettledOperation<SignalOutcome>>>(true)
  expectType<Equal<typeof broadcast, SettledOperation<BroadcastOutcome>>>(true)
  const [first] = await holdfast.startMany([{ workflow: greet, input: 'Ada' }, { workflow: 'greet' }])
  expectType<Equal<typeof first, SettledOperation<RunHandle<{ text: string }>>>>(true)
  const many = await holdfast.startMany(['Ada', 'Bob'].map((input) => ({ workflow: greet, input })))
  expectType<Equal<(typeof many)[number], SettledOperation<RunHandle<{ text: string }>>>>(true)
  // @ts-expect-error -- the input of another workflow
  await holdfast.startMany([{ workflow: greet, input: 1 }])
  // @ts-expect-error -- no input
  await holdfast.startMany([{ workflow: greet }])
  // @ts-expect-error -- a misspelt member
  await holdfast.startMany([{ workflow: greet, input: 'Ada', option: {} }])
}

export async function sending(holdfast: Holdfast): Promise<void> {
  await holdfast.signal('id', news, { title: 'x' })
  await holdfast.signal({ type: 'greet', key: 'ada' }, 'paid', { anything: true }, { id: 'x' })
  const sent = await holdfast.sendOrStart(greet, 'ada', 'paid', 3, 'Ada')
  expectType<Equal<typeof sent, SendOrStartOutcome>>(true)

  // @ts-expect-error -- not what the topic carries
  await holdfast.signal('id', news, { titel: 'x' })

  // @ts-expect-error -- not what the topic carries
  await holdfast.broadcast(news, 'x')

  // @ts-expect-error -- only a topic can be broadcast to
  await holdfast.broadcast('news', 'x')

  // @ts-expect-error -- not the input of the workflow
  await holdfast.sendOrStart(greet, 'ada', 'paid', 3, 4)
}

/** An operation is known by what it answers. */
export const cancelling: Operation<CancelOutcome> = operation.cancel('id')

// @ts-expect-error -- a pause does not answer like a cancellation
export const pausing: Operation<CancelOutcome> = operation.pause('id')
