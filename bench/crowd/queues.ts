// All that a crowd can drain. A peer that is not installed is null.

import { graphileWorker } from './graphile-worker.ts'
import { holdfastQueue } from './holdfast.ts'
import { pgBoss } from './pg-boss.ts'
import type { Queue, QueueName } from './queue.ts'

export function queueNamed(name: QueueName): Queue | null {
  switch (name) {
    case 'holdfast':
      return holdfastQueue
    case 'graphile-worker':
      return graphileWorker({ tuned: false })
    case 'graphile-worker, tuned':
      return graphileWorker({ tuned: true })
    case 'pg-boss, tuned':
      return pgBoss()
  }
}
