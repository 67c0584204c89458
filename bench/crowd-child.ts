// One worker process of a crowd. It connects when it is given what to do, begins when it is asked to go, says how far it is now
// and then, when it comes to rest and when it is asked, and stops when it is asked to.
//
// It reports seldom: a message took 180 µs of it and 90 µs of the parent on a busy machine. From sixteen processes a hundred times a
// second, that was a fifth of two cores.

import { once } from 'node:events'
import type { Claims, Place, QueueName } from './crowd/queue.ts'
import { queueNamed } from './crowd/queues.ts'

/** What the parent asks for, first. Any later message is a `CrowdWord`. */
export interface CrowdTask {
  readonly queue: QueueName
  readonly place: Place
  readonly slots: number
}

export type CrowdWord = 'go' | 'report' | 'stop'

/** What the child reports; before it has begun, that it is ready. */
export interface CrowdProgress {
  readonly performed: number
  readonly claims: Claims | null
  /** Processor time of this process since it was asked to go, in microseconds. */
  readonly cpuUs: number
  readonly isOver: boolean
}

const lookEveryMs = 10
/** It reports after this many looks, or when nothing was performed between so many. */
const reportEvery = 10
const restsAfter = 3

process.once('disconnect', () => process.exit())
const [task] = (await once(process, 'message')) as [CrowdTask]
const queue = queueNamed(task.queue)
if (queue === null) throw new Error(`${task.queue} is not installed.`)
let performed = 0
const hand = await queue.open(task.place, task.slots, () => {
  performed += 1
})
let began = process.cpuUsage()
let reported = 0
let looks = 0
const report = (isOver: boolean): void => {
  const { user, system } = process.cpuUsage(began)
  const message: CrowdProgress = { performed, claims: hand.claims(), cpuUs: user + system, isOver }
  process.send?.(message)
  reported = performed
  looks = 0
}
report(false)
let seen = 0
let resting = 0
const look = (): void => {
  looks += 1
  resting = performed === seen ? resting + 1 : 0
  seen = performed
  if (performed > reported && (looks >= reportEvery || resting === restsAfter)) report(false)
}

const reporting = await new Promise<NodeJS.Timeout>((resolve) => {
  process.once('message', () => {
    began = process.cpuUsage()
    resolve(setInterval(look, lookEveryMs))
  })
})
const stopped = new Promise<void>((resolve) => {
  process.on('message', (word: CrowdWord) => (word === 'stop' ? resolve() : report(false)))
})
await hand.start()
await stopped
clearInterval(reporting)
await hand.stop()
report(true)
process.disconnect?.()
