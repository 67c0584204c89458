// The memory store is the reference: what it does is what the contract says.

import { MemoryStore } from '../../src/stores/memory/store.ts'
import { createVirtualClock } from '../../src/testing/index.ts'
import { runContract } from './run-contract.ts'

runContract('the memory store', async () => {
  const clock = createVirtualClock()
  return { store: new MemoryStore({ clock }), clock }
})
