// What a workflow says that its runs are about. It is checked where the workflow is defined, because it would fail every
// start otherwise.

import type { Definition } from '../core/definition.ts'
import { checkKeyName, checkScope, type KeyScope } from '../core/key.ts'
import { checkOptions } from '../core/suggest.ts'

export interface UniqueOptions {
  /** A name of small letters and digits. */
  readonly key: string
  /** @default 'workflow' */
  readonly scope?: KeyScope
}

export function checkUnique(unique: UniqueOptions | undefined, where: string): Definition['unique'] {
  if (unique === undefined) return null
  checkOptions(unique, ['key', 'scope'], `${where}: unique`)
  return { key: checkKeyName(unique.key), scope: checkScope(unique.scope ?? 'workflow', `unique.scope of ${where}`) }
}
