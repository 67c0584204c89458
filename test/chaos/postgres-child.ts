// A process of its own that migrates a schema as soon as the word is given. Started by unit/stores/postgres/schema/migrate.test.ts.

import { setTimeout } from 'node:timers/promises'
import { Pool } from 'pg'
import { migrate } from '../../src/stores/postgres/schema/migrate.ts'

const [url = '', schema = '', startAt = '0'] = process.argv.slice(2)
const pool = new Pool({ connectionString: url, max: 1 })
await setTimeout(Math.max(0, Number(startAt) - Date.now()))
const migrated = await migrate(pool, { schema })
await pool.end()
console.log(JSON.stringify(migrated))
