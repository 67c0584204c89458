// `holdfast/postgres`: the Postgres store, for applications that need more options than its address.

export { openPostgresStore, type PostgresStoreOptions } from './open.ts'
export type { PostgresStore } from './store.ts'
export type { UnsafeDurability } from './connection/durability.ts'
