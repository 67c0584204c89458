// The contract as databases are served that spread rows over many machines: 16 shards, no SKIP LOCKED, no LISTEN.

import { openTestStore } from '../support/postgres-store.ts'
import { runContract } from '../contract/run-contract.ts'

runContract('Postgres in distributed mode', () => openTestStore({ shards: 16, distributed: true }))
