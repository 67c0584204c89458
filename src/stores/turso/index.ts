// Everything that an application imports from 'holdfast/turso'.

export { openTursoStore, type TursoStoreOptions } from './open.ts'
export { openLibsqlStore, type LibsqlStoreOptions } from './open-libsql.ts'
