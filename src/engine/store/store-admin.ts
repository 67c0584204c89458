// The administrative queries of a store, where it has them.

import { HoldfastError } from '../../core/errors/error.ts'
import type { Store, StoreAdmin } from '../../store.ts'

/** Throws INVALID_OPTION if the store cannot look for runs. */
export function adminOf({ store }: { readonly store: Store }): StoreAdmin {
  const admin = store as Partial<StoreAdmin>
  if (typeof admin.find === 'function' && typeof admin.count === 'function') return admin as StoreAdmin
  throw new HoldfastError('INVALID_OPTION', 'This store cannot look for runs: it has no find() and count().')
}
