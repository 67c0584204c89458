// What the statements of the Postgres store touch over a short backlog; `npm run test:full` does the same over a long one.

import { runHeldSnapshot, runPausedTooLong } from './run-held-snapshot.ts'
import { runLowWater } from './run-low-water.ts'
import { runPlans } from './run-plans.ts'

const sizes = { over: 2_000, held: 500, asleep: 500, ready: 9_000, timed: 6_000, blocked: 2_000 }

runPlans('20,000 runs', sizes, 'analysed')
runLowWater(20_000)
runHeldSnapshot(20_000)
runPausedTooLong(5_000)
