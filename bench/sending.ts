// Sends statements on bare connections.

import type { Client } from 'pg'
import type { Recorder, Sent } from './sent.ts'

/** As many connections as the engine has flushes of one kind on their way. */
export const lanes = 2

/** A statement, and how many rows it answers if all went well. */
export interface Order {
  readonly sent: Sent
  readonly rows: number
}

/** Sends each list on a connection of its own, one statement after another, and answers how many ms all of it took. */
export async function sendInOrder(recorder: Recorder, lists: readonly (readonly Order[])[]): Promise<number> {
  const clients = await Promise.all(lists.map(() => recorder.connect()))
  const began = performance.now()
  await Promise.all(
    lists.map(async (orders, lane) => {
      for (const { sent, rows } of orders) {
        const found = await send(clients[lane]!, sent)
        if (found.length !== rows) throw new Error(`A statement for ${rows} runs changed ${found.length}.`)
      }
    }),
  )
  return performance.now() - began
}

export async function send<Row extends object>(client: Client, sent: Sent): Promise<readonly Row[]> {
  const { rows } = await client.query<Row>({ ...sent, values: [...sent.values] })
  return rows
}
