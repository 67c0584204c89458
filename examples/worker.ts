// A worker of the demo, in a process of its own: opens the file that it is given and performs what is in it.

import { createHoldfast } from '../src/index.ts'
import { order } from './order.ts'

const [path = 'orders.db'] = process.argv.slice(2)
// The process that started it holds the other end of this pipe: when they are gone, so is this process.
process.stdin.resume().on('end', () => process.exit())

const say = (message: string): void => console.log(message)
const logger = { debug: () => undefined, info: say, warn: say, error: say }
const holdfast = await createHoldfast({ store: `sqlite:${path}`, workflows: [order], logger })
// Two seconds instead of thirty, so that you need not wait for long until the dead process is found out.
await holdfast.work({ lease: '2s' })
console.log('works')
