// Whether the database keeps commits that it has acknowledged. All promises of Holdfast rest on that, and three settings take
// it away silently. A server that hides a setting, as some managed ones do, or that does not know it, is believed; so are
// Neon and Aurora about files, which they do not write: their storage keeps the log by itself.

import { HoldfastError } from '../../../core/errors/error.ts'
import type { Logger } from '../../../core/runtime/ports.ts'
import { shown } from '../../../core/text/suggest.ts'
import { connected } from '../schema/schema-change.ts'
import type { ClientLike, PoolLike } from './connection.ts'
import type { Row } from '../execution.ts'
import { sqlStateOf } from './sql-state.ts'

/** The reaction to a database that may lose acknowledged commits. */
export type UnsafeDurability = 'refuse' | 'warn' | 'allow'

const choices: readonly UnsafeDurability[] = ['refuse', 'warn', 'allow']

interface Hazard {
  readonly setting: string
  /** The values that lose commits. */
  readonly unsafe: readonly string[]
  /** It is about the server's own files. */
  readonly isOfFiles: boolean
  readonly loses: string
  readonly remedy: string
}

const hazards: readonly Hazard[] = [
  {
    setting: 'fsync',
    unsafe: ['off'],
    isOfFiles: true,
    loses: 'a crash of the machine can damage the whole database',
    remedy: 'Set fsync = on in postgresql.conf.',
  },
  {
    setting: 'full_page_writes',
    unsafe: ['off'],
    isOfFiles: true,
    loses: 'a loss of power in the middle of a write can damage the whole database',
    remedy: 'Set full_page_writes = on in postgresql.conf, unless its file system never writes half a page.',
  },
  {
    setting: 'synchronous_commit',
    unsafe: ['off'],
    isOfFiles: false,
    loses: 'a crash loses the commits of the last fraction of a second, and steps are performed again',
    remedy: 'Set synchronous_commit = on, or at least local, in postgresql.conf or for this user with ALTER ROLE.',
  },
]

/** Reads the settings of the connections that the pool gives, and warns of those that lose commits, or refuses. */
export async function checkDurability(
  pool: PoolLike,
  options: { readonly unsafe?: UnsafeDurability | undefined; readonly logger: Pick<Logger, 'warn'> },
): Promise<void> {
  const { unsafe = 'warn', logger } = options
  if (!choices.includes(unsafe)) {
    throw new HoldfastError(
      'INVALID_OPTION',
      `openPostgresStore({ unsafe }) is one of ${choices.join(', ')}. Got ${shown(unsafe)}.`,
    )
  }
  if (unsafe === 'allow') return
  const found = await findHazards(pool)
  if (found.length === 0) return
  const text = found.map(({ setting, value, loses, remedy }) => `With ${setting} = ${value}, ${loses}. ${remedy}`)
  const message = `The database does not keep all that it has answered as committed. ${text.join(' ')}`
  const settings = Object.fromEntries(found.map(({ setting, value }) => [setting, value]))
  if (unsafe === 'warn') return logger.warn(message, { settings })
  throw new HoldfastError('INVALID_OPTION', message, { details: { settings } })
}

async function findHazards(pool: PoolLike): Promise<readonly (Hazard & { readonly value: string })[]> {
  const row = await connected(pool, settingsOn)
  const writesFiles = typeof row['neon'] !== 'string' && row['aurora'] !== true
  return hazards.flatMap((hazard) => {
    if (hazard.isOfFiles && !writesFiles) return []
    const value = row[hazard.setting]
    return typeof value === 'string' && hazard.unsafe.includes(value) ? [{ ...hazard, value }] : []
  })
}

async function settingsOn(client: ClientLike): Promise<Row> {
  // A setting that is not there is null.
  const columns = hazards.map(({ setting }) => `pg_catalog.current_setting('${setting}'::text, true) as ${setting}`)
  const storage = `pg_catalog.current_setting('neon.tenant_id'::text, true) as neon,
    exists (select 1 from pg_catalog.pg_proc where proname = 'aurora_version') as aurora`
  try {
    return (await client.query({ text: `select ${columns.join(', ')}, ${storage}` })).rows[0] ?? {}
  } catch (error) {
    // One that is hidden, or a server that cannot be asked like this.
    if (sqlStateOf(error)?.startsWith('42') === true) return {}
    throw error
  }
}
