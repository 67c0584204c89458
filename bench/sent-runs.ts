// Runs of three steps with neither the store nor the engine around them: nothing but the statements that the Postgres
// store would send. All of them, with their values, are there before the clock runs.

import { runId } from './bare-runs.ts'
import { lanes, sendInOrder, type Order } from './sending.ts'
import { withRecorder, type Place, type Recorder } from './sent.ts'
import { performThreeSteps, type Batches } from './three-steps.ts'

/** Performs runs of three steps, and answers how many ms it took. */
export function sendThreeSteps(place: Place, batches: Batches, runs: number): Promise<number> {
  return withRecorder(place, async (recorder) => {
    const session = runId(0)
    // If all that are under way go together, there is nothing left to send meanwhile.
    const count = Math.max(1, Math.min(lanes, Math.floor(batches.atOnce / Math.max(batches.start, batches.commit))))
    const share = { ...batches, atOnce: Math.ceil(batches.atOnce / count) }
    const orders: Order[][] = []
    for (let lane = 0; lane < count; lane += 1) {
      const list: Order[] = []
      orders.push(list)
      const note = async (rows: number, call: Parameters<Recorder['sentBy']>[0]): Promise<void> => {
        for (const sent of await recorder.sentBy(call)) list.push({ sent, rows })
      }
      await performThreeSteps(
        {
          start: (some) => note(some.length, (store) => store.start(some)),
          commit: (some) => note(some.length, (store) => store.commit(some)),
        },
        session,
        share,
        Math.ceil(runs / count),
      )
    }
    return sendInOrder(recorder, orders)
  })
}
