// All scenarios, in the order in which they are run and shown.

import type { Scenario } from './scenario.ts'
import { ceiling } from './scenarios/ceiling.ts'
import { crowd } from './scenarios/crowd.ts'
import { deciders } from './scenarios/deciders.ts'
import { disk } from './scenarios/disk.ts'
import { encryption } from './scenarios/encryption.ts'
import { enqueue } from './scenarios/enqueue.ts'
import { idle } from './scenarios/idle.ts'
import { latency } from './scenarios/latency.ts'
import { neighbours } from './scenarios/neighbours.ts'
import { parallel } from './scenarios/parallel.ts'
import { parked } from './scenarios/parked.ts'
import { projections } from './scenarios/projections.ts'
import { replay } from './scenarios/replay.ts'
import { runs } from './scenarios/runs.ts'
import { steps } from './scenarios/steps.ts'
import { wake } from './scenarios/wake.ts'

export const scenarios: readonly Scenario[] = [
  disk,
  runs,
  ceiling,
  latency,
  steps,
  parallel,
  wake,
  parked,
  enqueue,
  crowd,
  neighbours,
  replay,
  deciders,
  projections,
  encryption,
  idle,
]
