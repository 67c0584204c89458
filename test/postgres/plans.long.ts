// What the statements of the Postgres store touch after a long standstill: a bounded number of pages.

import { runHeldSnapshot, runPausedTooLong } from './run-held-snapshot.ts'
import { runLowWater } from './run-low-water.ts'
import { runPlans } from './run-plans.ts'

const sizes = { over: 50_000, held: 5_000, asleep: 20_000, ready: 300_000, timed: 300_000, blocked: 100_000 }

runPlans('300,000 pending, 300,000 scheduled and 100,000 blocked runs', sizes, 'analysed')
runPlans('300,000 pending, 300,000 scheduled and 100,000 blocked runs', sizes, 'never analysed')
runLowWater(200_000)
runHeldSnapshot(200_000)
runPausedTooLong(50_000)
