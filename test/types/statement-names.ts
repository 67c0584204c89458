// Postgres names the statements of the plan, and no others.

import type { StatementName as Planned } from '../read-committed/statement-plan.ts'
import type { StatementName } from '../../src/stores/postgres/statement-name.ts'
import { expectType, type Equal } from './expect-type.ts'

expectType<Equal<StatementName, Planned>>(true)
