// Who starts the runs and sends to them. On Postgres that is the process of the load, as a web server would beside its workers.
// On SQLite it is the process of the worker, which gets only reports of what arrives: two processes that write take turns at the
// one lock of the file, and who embeds SQLite mostly has one.

import { setTimeout } from 'node:timers/promises'
import type { Holdfast } from 'holdfast'
import { withHoldfast } from '../scenario.ts'
import type { Child } from './child-process.ts'
import { kinds, news, orderOf, workflows } from './mix.ts'
import { withOpenPlace, type Place } from './place.ts'
import { wallMs } from './wall.ts'

/** A run that is to arrive. */
export interface NewArrival {
  readonly id: string
  /** The name of its kind. */
  readonly kind: string
  readonly number: number
  /** When it was to arrive. */
  readonly at: number
}

/** What is to be done: a run arrives, or something is sent to those who wait for news. */
export type Request = NewArrival | { readonly news: number }

/** Does what was asked for; rejects if that could not be done. */
export type Sender = (request: Request) => Promise<void>

export function withSender<Result>(
  place: Place,
  worker: Pick<Child<unknown, unknown>, 'pass'>,
  use: (sender: Sender) => Promise<Result>,
): Promise<Result> {
  if (place.kind === 'sqlite') return use(batched((requests) => worker.pass(requests)))
  return withOpenPlace(place, (store) =>
    withHoldfast(store, workflows, (holdfast) => use((request) => perform(holdfast, request))),
  )
}

/** One message for all that is asked for in the same turn. The worker reports whether it could be done. */
function batched(send: (requests: readonly Request[]) => void): Sender {
  let waiting: Request[] = []
  const flush = (): void => {
    const requests = waiting
    waiting = []
    send(requests)
  }
  return async (request) => {
    if (waiting.push(request) === 1) setImmediate(flush)
  }
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

export async function perform(holdfast: Holdfast, request: Request): Promise<void> {
  if ('news' in request) return void (await holdfast.broadcast(news, request.news))
  const { id, number, at } = request
  const { workflow, signal } = kinds.find(({ name }) => name === request.kind)!
  await holdfast.start(workflow, orderOf(number), { id })
  if (signal === undefined) return
  const leftMs = at + signal.afterMs - wallMs()
  if (leftMs > 0) await setTimeout(leftMs)
  await holdfast.signal(id, signal.name, 'a client')
}
