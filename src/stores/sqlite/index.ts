// Everything that an application imports from 'holdfast/sqlite'.

export { openSqliteStore, type SqliteStoreOptions } from './open.ts'
export type { Synchronous } from './driver/settings.ts'
export { SqliteStore } from './store.ts'
export type { SqliteDriver } from './driver/driver.ts'
