// A backlog of runs without steps with neither the store nor the engine around it: nothing but the statements that the
// Postgres store would send. Only what a claim gave is put into them while the clock runs.

import type { Client } from 'pg'
import { endingOf, noStepRun, runId } from './bare-runs.ts'
import { lanes, send, sendInOrder, type Order } from './sending.ts'
import { withRecorder, type Place, type Recorder, type Sent } from './sent.ts'

/** Which batches go together in a backlog. */
export interface BacklogBatches {
  readonly start: number
  readonly claim: number
  readonly commit: number
}

/** Enqueues runs without steps and drains them, and answers how many ms each took. */
export function sendBacklog(
  place: Place,
  batches: BacklogBatches,
  runs: number,
): Promise<{ readonly enqueueMs: number; readonly drainMs: number }> {
  return withRecorder(place, async (recorder) => {
    const session = runId(0)
    const orders: Order[][] = Array.from({ length: lanes }, () => [])
    for (let order = 0; order < runs; order += batches.start) {
      const length = Math.min(batches.start, runs - order)
      const some = Array.from({ length }, (_, index) => noStepRun(session, order + index))
      const [sent] = await recorder.sentBy((store) => store.start(some))
      orders[(order / batches.start) % lanes]!.push({ sent: sent!, rows: length })
    }
    const enqueueMs = await sendInOrder(recorder, orders)
    return { enqueueMs, drainMs: await drain(recorder, session, batches, runs) }
  })
}

interface ClaimedRow {
  /** Null in the only row of a claim that found nothing. */
  readonly id: string | null
  readonly nth: string
  readonly rank: number
  readonly picked_due: number
}

/** One more connection than for writes alone. They claim in turn: two at once would pick the same runs. */
async function drain(recorder: Recorder, session: string, batches: BacklogBatches, runs: number): Promise<number> {
  const model = runId(0)
  const selectors = [{ type: 'bench.no-steps', version: 1 }]
  const [claim] = await recorder.sentBy((store) => store.claim({ session, selectors, limit: batches.claim }))
  const ending = endingOf(session, model)
  const commits = await recorder.sentBy((store) => store.commit([ending, { ...ending, runId: runId(1) }]))
  const commitsOf = commits.map((sent) => stencil(sent, model))
  const clients = await Promise.all(Array.from({ length: lanes + 1 }, () => recorder.connect()))

  let left = runs
  let next = claim!
  let turn: Promise<unknown> = Promise.resolve()
  const claimNext = async (client: Client): Promise<readonly string[]> => {
    if (left <= 0) return []
    const rows = await send<ClaimedRow>(client, next)
    const ids = rows.flatMap(({ id }) => id ?? [])
    left -= ids.length
    if (ids.length === 0) throw new Error('A claim gave nothing, but some are left.')
    next = goingOnFrom(claim!, lastOf(rows))
    return ids
  }
  const lane = async (client: Client): Promise<void> => {
    for (;;) {
      const claimed = turn.then(() => claimNext(client))
      turn = claimed
      const ids = await claimed
      if (ids.length === 0) return
      const moved = await Promise.all(
        partsOf(ids, batches.commit).flatMap((some) => commitsOf.map((of) => send(client, of(some)))),
      )
      const count = moved.reduce((sum, rows) => sum + rows.length, 0)
      if (count !== ids.length) throw new Error(`Of ${ids.length} runs that were claimed, ${count} could be ended.`)
    }
  }
  const began = performance.now()
  await Promise.all(clients.map(lane))
  return performance.now() - began
}

/** The last in claim order: the rows come in any. */
function lastOf(rows: readonly ClaimedRow[]): ClaimedRow {
  return rows.reduce((last, row) => (Number(row.nth) > Number(last.nth) ? row : last))
}

/** The next claim begins where the last one ended: so does the store's. Behind those two values stands the offset, which is 0. */
function goingOnFrom(claim: Sent, { rank, picked_due: due }: ClaimedRow): Sent {
  return { ...claim, values: [...claim.values.slice(0, -3), rank, due, 0] }
}

/** From a statement that was sent for two runs that differ in nothing but their ids, makes the same for any. */
function stencil(sent: Sent, model: string): (ids: readonly string[]) => Sent {
  const lists = sent.values.map((value) => {
    if (typeof value !== 'string' || !value.startsWith('{') || value === '{}') return null
    // The first of two elements of the same length, between brackets and beside a comma.
    return value.slice(1, value.length / 2).split(model)
  })
  return (ids) => ({
    ...sent,
    values: sent.values.map((value, index) => {
      const parts = lists[index]
      return parts === undefined || parts === null ? value : `{${ids.map((id) => parts.join(id)).join(',')}}`
    }),
  })
}

function partsOf(ids: readonly string[], size: number): readonly (readonly string[])[] {
  return Array.from({ length: Math.ceil(ids.length / size) }, (_, part) => ids.slice(part * size, (part + 1) * size))
}
