// Where the names in a statement are looked up. A role that may create objects in a schema of the search path can put an
// operator or a function there that fits a statement better than the one of Postgres, and so have its code run with the
// rights of the sender. Against that, our statements give exact types and qualify every function that could be taken for
// another, which holds wherever pg_catalog is searched first: also in a transaction of the user's, whose path stays theirs. A
// path that searches it later is refused, in a pool when the store is opened and in a transaction before anything else is
// sent there. Connections and transactions of our own search nothing but Postgres itself.

import { HoldfastError } from '../../../core/errors/error.ts'
import { shown } from '../../../core/text/suggest.ts'
import type { ClientLike } from './connection.ts'
import { quoteName } from '../schema/schema-name.ts'

/** The path of our own. Temporary tables would come first if they were not named. */
export const ownSearchPath = 'pg_catalog,pg_temp'

/**
 * Gives a connection a path that a server has reported, until it is reset: if the function of a user commits, which it must
 * not, it still finds its tables, and gets an error that says so. It is no query, and so written as names: a text would be
 * one odd name.
 */
export function setPath(path: string): string {
  const names = schemasIn(path)
  return `set search_path = ${names.length === 0 ? `''` : names.map(quoteName).join(', ')}`
}

/** The schemas of a path, as Postgres reads it: an unquoted name is in small letters. */
function schemasIn(path: string): readonly string[] {
  return Array.from(path.matchAll(/"((?:[^"]|"")*)"|[^,\s]+/g), ([word, quoted]) =>
    quoted === undefined ? word.toLowerCase() : quoted.replaceAll('""', '"'),
  )
}

/** Refuses a pool whose connections search another schema before Postgres itself. Where it is not named it comes first. */
export async function assertSearchPath(client: ClientLike): Promise<void> {
  const text = `select ${pathRead}`
  assertCatalogFirst(String((await client.query({ text })).rows[0]?.['path']), 'the connections of this pool have')
}

/** The path of a connection, as a column: no name and no operator in it can be taken for another. */
export const pathRead = `pg_catalog.current_setting('search_path'::text) as path`

/** Throws if a schema is searched before Postgres itself. */
export function assertCatalogFirst(path: string, whose: string): void {
  if (schemasIn(path).indexOf('pg_catalog') <= 0) return
  throw new HoldfastError(
    'INVALID_OPTION',
    `Put pg_catalog first in search_path, or leave it out: ${whose} ${shown(path)}, and a user who may create objects in a schema ` +
      'before it can replace functions and operators of Postgres with their own.',
    { details: { searchPath: path } },
  )
}
