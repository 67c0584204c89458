// One of several processes whose callers all want one instance. It opens its store when it is given what to do, and begins when
// it is asked to go.

import { once } from 'node:events'
import { createHoldfast } from 'holdfast'
import { counter, executeAll } from './counter.ts'
import { logger } from './logger.ts'

export interface DeciderTask {
  readonly store: string
  readonly inputs: number
  readonly callers: number
}

process.once('disconnect', () => process.exit())
const [{ store, inputs, callers }] = (await once(process, 'message')) as [DeciderTask]
const holdfast = await createHoldfast({ store, workflows: [counter], logger })
await holdfast.execute(counter, { type: 'Count', id: 'hot' })
await executeAll(holdfast, { inputs: 1_000, callers, idOf: () => `warm-up ${process.pid}` })
process.send?.('ready')
await once(process, 'message')
const times: number[] = []
await executeAll(holdfast, { inputs, callers, idOf: () => 'hot', times })
process.send?.(times)
await holdfast.close()
process.disconnect()
