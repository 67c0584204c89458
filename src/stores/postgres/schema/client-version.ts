// Which clients a schema admits. A client is as old as the schema that it knows: one of version 3 works on a schema of
// version 4 and later, until the setting `min-client` is raised above 3. It looks at that when it opens and with every
// heartbeat, and stops in good order when it is no longer admitted.

import { HoldfastError } from '../../../core/errors/error.ts'
import { migrations } from './schema.ts'

/** The version of the schema that this code knows. */
export const schemaVersion = migrations.length

/** An expression for the version that a client must know at least. `schema` is its name, quoted. */
export function minClientOf(schema: string): string {
  return `(select value from ${schema}.settings where shard = 0 and name = 'min-client')`
}

/** Refuses to go on if the schema admits only clients that know a later version. */
export function assertClient(minClient: unknown, known: number = schemaVersion): void {
  const needed = Number(minClient)
  if (needed <= known) return
  throw new HoldfastError(
    'SCHEMA_TOO_NEW',
    `The schema admits only a Holdfast that knows version ${needed} of it, and this one knows ${known}. ` +
      'A newer Holdfast has migrated it: update this process, too.',
    { details: { needed, known } },
  )
}
