// A process that has inputs decided, and a worker that performs effects: for the races of `deciders.test.ts`. It does as its
// parent asks, and goes when its parent is gone.

import { createHoldfast } from '../../src/index.ts'
import { tally, type DeciderRequest, type DeciderTask, type WriteRequest } from './tally.ts'

const task = JSON.parse(process.argv[2] ?? '') as DeciderTask
process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'))
const quiet = (): void => undefined
const logger = { debug: quiet, info: quiet, warn: quiet, error: (...parts: unknown[]) => console.error(...parts) }
const counting = tally(task)
const holdfast = await createHoldfast({ store: task.store, workflows: [counting], logger })
const write = async ({ writers, targets }: WriteRequest): Promise<void> => {
  const accepted: string[] = []
  const one = async (writer: number): Promise<void> => {
    for (const [at, id] of (targets[writer] ?? []).entries()) {
      const by = `${task.name}.${writer}.${at}`
      const input = { type: 'Add', id, by } as const
      const answer = await holdfast.execute(counting, input, { commandId: by })
      // Some callers repeat what they have sent: it counts once.
      if (at % 7 === 0) await holdfast.execute(counting, input, { commandId: by })
      if (answer.outcome === 'accepted') accepted.push(by)
    }
  }
  await Promise.all(Array.from({ length: writers }, (_, writer) => one(writer)))
  process.send?.({ accepted })
}
process.on('message', (request: DeciderRequest) => {
  const work = request.kind === 'write' ? write(request) : holdfast.work({ lease: request.lease, signals: false })
  work.then(
    () => process.send?.({ done: request.kind }),
    (error: unknown) => process.send?.({ error: String(error) }),
  )
})
process.send?.({ ready: true })
