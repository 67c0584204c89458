// A process that works on runs which end with many unread messages, until it is killed. Started by pages.test.ts.

import { createHoldfast } from '../../src/holdfast.ts'
import { openPostgresStore } from '../../src/stores/postgres/index.ts'
import { hoarder } from './hoarder.ts'

const [url = '', schema = ''] = process.argv.slice(2)
const quiet = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: console.error }
const store = await openPostgresStore({ url, schema, logger: quiet })
const holdfast = await createHoldfast({ store, workflows: [hoarder], logger: quiet })
await holdfast.work({ concurrency: 4, signals: false, lease: '2 s', heartbeat: '500 ms' })
console.log('ready')
