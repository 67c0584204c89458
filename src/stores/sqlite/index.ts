// Everything that an application imports from 'holdfast/sqlite'.

export { openSqliteStore, type SqliteStoreOptions, type Synchronous } from './open.ts'
export { SqliteStore } from './store.ts'
export type { DriverName } from './driver.ts'
