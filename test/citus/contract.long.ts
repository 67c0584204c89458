// The contract on tables that Citus has spread over two workers, with LISTEN and SKIP LOCKED as there are on its coordinator,
// and without them as `distributed: true` does.

import { afterAll } from 'vitest'
import { runContract } from '../contract/run-contract.ts'
import { missingCitus } from '../support/citus.ts'
import { TestCitus } from './cluster.ts'

const citus = new TestCitus()
const missing = missingCitus()

afterAll(() => citus.remove(), 60_000)

runContract('Citus', () => citus.open({ hears: true }), missing)
runContract('Citus in distributed mode', () => citus.open({ distributed: true }), missing)
