// The parts that a store may have or not: null where it has none.

import type { Store, StoreEndHints, StoreLimits, StoreProjections, StoreSecrets } from '../../store.ts'

export function limitsOf(store: Store): StoreLimits | null {
  return 'limit' in store ? (store as Store & StoreLimits) : null
}

export function endHintsOf(store: Store): StoreEndHints | null {
  return 'expectEnds' in store ? (store as Store & StoreEndHints) : null
}

export function secretsOf(store: Store): StoreSecrets | null {
  return 'tokenKey' in store ? (store as Store & StoreSecrets) : null
}

export function projectionsOf(store: Store): StoreProjections | null {
  return 'commandProjection' in store ? (store as Store & StoreProjections) : null
}
