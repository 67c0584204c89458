// The roles of a schema, and a login of each kind who can log in.

import { Pool, escapeIdentifier } from 'pg'
import { patiently } from './patiently.ts'
import { installRoles, roleNames, type RoleKind } from '../../src/stores/postgres/schema/roles.ts'

export interface Roled {
  /** Gives the roles their rights on a schema that was migrated, and a test's clock in it if there is one. */
  grant(schema: string): Promise<void>
  /** The address of the server for a user of that kind. */
  urlOf(kind: RoleKind): string
  /** Takes everything back. */
  drop(): Promise<void>
}

const kinds: readonly RoleKind[] = ['migrator', 'worker', 'starter', 'viewer']

/** All servers of this run share their roles: `prefix` must be nobody else's. */
export async function createRoles(url: string, prefix: string): Promise<Roled> {
  const pool = new Pool({ connectionString: url, max: 1 })
  const names = roleNames(prefix)
  const login = (kind: RoleKind): string => `${names[kind]}_login`
  let hasLogins = false
  return {
    async grant(schema) {
      // One set of roles for all schemas of a test.
      await installRoles(pool, { schema, prefix, adopt: hasLogins })
      const found = await pool.query(`select 1 from pg_tables where schemaname = $1 and tablename = 'clock'`, [schema])
      for (const kind of kinds) {
        if (!hasLogins) await pool.query(`create role ${login(kind)} login password 'known' in role ${names[kind]}`)
        if (found.rows.length > 0) {
          await pool.query(`grant select on ${escapeIdentifier(schema)}.clock to ${names[kind]}`)
        }
      }
      hasLogins = true
    },
    urlOf(kind) {
      const own = new URL(url)
      own.username = login(kind)
      own.password = 'known'
      return own.href
    },
    async drop() {
      const all = kinds.flatMap((kind) => [login(kind), names[kind]])
      // What the migrator owns goes with it.
      for (const role of all) await patiently(() => pool.query(`drop owned by ${role} cascade`))
      for (const role of all) await patiently(() => pool.query(`drop role ${role}`))
      await pool.end()
    },
  }
}
