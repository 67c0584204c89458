// A worker in a process of its own. It works when its parent asks it to, and goes when its parent is gone. The step that
// is looked at writes to the log of what really happened, and never ends if the task says so.

import type { StepTools } from '../../src/core/runtime/attempt.ts'
import { createHoldfast } from '../../src/index.ts'
import { StepLog } from '../chaos/step-log.ts'
import { flowWorld } from './flow.ts'

export interface Task {
  readonly path: string
  readonly log: string
  readonly hangs: boolean
}

const { path, log: file, hangs } = JSON.parse(process.argv[2] ?? '') as Task
process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'))

const log = new StepLog(file)
const perform =
  (step: string) =>
  async ({ idempotencyKey, attempt }: StepTools): Promise<void> => {
    const { end } = log.begin(idempotencyKey, step, attempt)
    if (hangs) await new Promise(() => undefined)
    end()
  }
const { flow } = flowWorld({ charge: perform('charge') })
const quiet = (): void => undefined
const logger = { debug: quiet, info: quiet, warn: quiet, error: (...parts: unknown[]) => console.error(...parts) }
const holdfast = await createHoldfast({ store: `sqlite:${path}`, workflows: [flow], logger })
process.once('message', () => void holdfast.work({ lease: '500ms', signals: false }))
process.send?.('ready')
