// A worker in a process of its own. It notifies its parent when it is at work, and goes when its parent is gone.

import { createHoldfast, type WorkOptions } from '../../src/index.ts'
import { createPrograms } from './programs.ts'
import { StepLog } from './step-log.ts'

const { store, log, work } = JSON.parse(process.argv[2] ?? '') as { store: string; log: string; work: WorkOptions }
process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'))
// Listening to the parent must not keep a process alive that has stopped working.
process.channel?.unref()

const workflows = Object.values(createPrograms(new StepLog(log)))
const holdfast = await createHoldfast({ store, workflows })
const { recovered } = await holdfast.work(work)
process.send?.({ recovered })
