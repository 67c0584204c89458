// One of four processes that all work on the same runs, and that send to them at the moments they are given. It reads rounds
// of what to send, one a line, and answers each with what became of every one. Started by exchange-races.ts.

import { createInterface } from 'node:readline'
import { setTimeout } from 'node:timers/promises'
import { createHoldfast } from '../../src/holdfast.ts'
import { openPostgresStore } from '../../src/stores/postgres/index.ts'
import { racers, jobs, news, type Sending } from './exchange-racers.ts'

const [url = '', schema = ''] = process.argv.slice(2)
const quiet = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: console.error }
const store = await openPostgresStore({ url, schema, logger: quiet })
const holdfast = await createHoldfast({ store, workflows: racers, logger: quiet })
await holdfast.work({ concurrency: 50, signals: false })
console.log('ready')
for await (const line of createInterface({ input: process.stdin })) {
  const round = JSON.parse(line) as readonly Sending[]
  console.log(JSON.stringify(await Promise.all(round.map(send))))
}
await holdfast.close()
await store.close()

async function send({ afterMs, to, id }: Sending): Promise<string> {
  await setTimeout(afterMs)
  if (to === 'jobs' || to === 'news') return (await holdfast.broadcast(to === 'jobs' ? jobs : news, id, { id })).outcome
  return (await holdfast.signal(to, 'go', id, { id })).outcome
}
