// A process of its own that delivers: it reads rounds of messages, one a line, opens as many connections as a round has,
// and delivers at the moment at which the next line comes. It answers with the outcomes. Started by park-races.ts.

import { createInterface } from 'node:readline'
import type { NewMessage } from '../../src/store.ts'
import { openPostgresStore } from '../../src/stores/postgres/index.ts'
import { deliverOne } from '../../src/testing/contract/bench.ts'

const [url = '', schema = ''] = process.argv.slice(2)
const store = await openPostgresStore({ url, schema, listen: false, connections: 10 })
let loaded: readonly NewMessage[] = []
console.log('ready')
for await (const line of createInterface({ input: process.stdin })) {
  if (line === 'go') {
    const answers = await Promise.all(loaded.map((message) => deliverOne(store, message, { mayWait: true })))
    console.log(JSON.stringify(answers.map(({ outcome }) => outcome)))
  } else {
    loaded = JSON.parse(line) as readonly NewMessage[]
    console.log('loaded')
  }
}
await store.close()
