// The stores that have transactions for a read model.

import { everyStore } from '../stores.ts'

export const sqlStores = everyStore.filter(({ name }) => name !== 'memory')
