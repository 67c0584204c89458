// One worker process of a crowd. It connects when it is told what to do, begins when it is told to go, says how far it is now
// and then, and stops when it is told to.

import { once } from 'node:events'
import type { Claims, Place, QueueName } from './crowd/queue.ts'
import { queueNamed } from './crowd/queues.ts'

/** What the parent asks for, first. Any later message is the word for the next thing to do. */
export interface CrowdTask {
  readonly queue: QueueName
  readonly place: Place
  readonly slots: number
}

/** What the child tells; before it has begun, that it is ready. */
export interface CrowdTold {
  readonly performed: number
  readonly claims: Claims | null
  readonly isOver: boolean
}

const tellEveryMs = 10

process.once('disconnect', () => process.exit())
const [task] = (await once(process, 'message')) as [CrowdTask]
const queue = queueNamed(task.queue)
if (queue === null) throw new Error(`${task.queue} is not installed.`)
let performed = 0
const hand = await queue.open(task.place, task.slots, () => {
  performed += 1
})
const tell = (isOver: boolean): void => {
  const told: CrowdTold = { performed, claims: hand.claims(), isOver }
  process.send?.(told)
}
tell(false)
await once(process, 'message')
await hand.start()
const telling = setInterval(() => tell(false), tellEveryMs)
await once(process, 'message')
clearInterval(telling)
await hand.stop()
tell(true)
process.disconnect?.()
