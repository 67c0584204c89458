// Judges what was sent: everything that was acknowledged was taken once, or lies where it must, or its run is over; nothing
// was taken that nobody sent; and what one sender sent to one run was taken in that order.

import { grouped, type Evidence, type FinalRun, type Violation } from './evidence.ts'
import { calls } from './checker-runs.ts'
import { items } from './workload.ts'
import { takenBy } from './workload-answers.ts'

/** Signals to a run. */
export function* signalled({ operations, runs, deadLetters }: Evidence): Iterable<Violation> {
  const dead = new Set(deadLetters.map(({ runId, id }) => `${runId} ${id}`))
  const byId = new Map(runs.map((run) => [run.id, run]))
  const sent = grouped(calls(operations, 'signal'), ({ args }) => `${args.run} ${args.id}`)
  for (const [name, times] of sent) {
    const { run: id, name: to, id: signal } = times[0]!.args
    const isAcknowledged = times.some(({ type }) => type === 'ok')
    const run = byId.get(id)
    if (!isAcknowledged || run === undefined || takenBy(run).includes(signal)) continue
    // What was offered to a run that ended without it is kept. A letter to a run that was stopped is not.
    if (to === 'offers' ? dead.has(name) : run.status === 'cancelled' || run.status === 'failed') continue
    const text = `signal ${signal} to ${id} (${run.status}) was acknowledged, and is nowhere`
    yield { name: 'signal_not_lost', text, runs: [id] }
  }
  for (const run of runs) yield* takenRightly(run, sent)
  for (const name of dead) {
    const [id = '', signal = ''] = name.split(' ')
    const run = byId.get(id)
    if (run === undefined || !takenBy(run).includes(signal)) continue
    yield { name: 'signal_once', text: `signal ${signal} to ${id} was taken, and is a dead letter`, runs: [id] }
  }
}

function* takenRightly(
  run: FinalRun,
  sent: ReadonlyMap<string, readonly { readonly args: { readonly order: number } }[]>,
): Iterable<Violation> {
  if (run.kind !== 'inbox' && run.kind !== 'offer') return
  const taken = takenBy(run)
  if (new Set(taken).size < taken.length) {
    yield { name: 'signal_once', text: `${run.id} took a signal twice: ${taken.join(', ')}`, runs: [run.id] }
  }
  const orders = taken.map((id) => sent.get(`${run.id} ${id}`)?.[0]?.args.order)
  if (orders.includes(undefined)) {
    yield { name: 'signal_was_sent', text: `${run.id} took what nobody sent: ${taken.join(', ')}`, runs: [run.id] }
  } else if (orders.some((order, index) => index > 0 && order! <= orders[index - 1]!)) {
    yield { name: 'signal_in_order', text: `${run.id} took out of order: ${taken.join(', ')}`, runs: [run.id] }
  }
}

/** Items of the queue: each goes to one run. */
export function* queued({ operations, runs }: Evidence): Iterable<Violation> {
  const takers = new Map<string, string[]>()
  for (const run of runs) {
    if (run.kind !== 'consume') continue
    for (const id of takenBy(run)) takers.set(id, [...(takers.get(id) ?? []), run.id])
  }
  const sent = calls(operations, 'broadcast').filter(({ args }) => args.topic === items.name)
  const asked = new Set(sent.map(({ args }) => args.id))
  const acknowledged = new Set(sent.filter(({ type }) => type === 'ok').map(({ args }) => args.id))
  for (const id of acknowledged) {
    if (!takers.has(id)) yield { name: 'item_not_lost', text: `item ${id} was acknowledged, and is nowhere`, runs: [] }
  }
  for (const [id, by] of takers) {
    if (by.length > 1) yield { name: 'item_once', text: `item ${id} was taken by ${by.join(' and ')}`, runs: by }
    if (!asked.has(id)) yield { name: 'item_was_sent', text: `item ${id} was taken, and nobody sent it`, runs: by }
  }
}
