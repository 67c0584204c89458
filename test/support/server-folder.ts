// Where a server that a test starts keeps its files, and as whom it runs. A folder carries its owner's process id in its
// name: what a killed process left is tidied up by the next one who makes a folder. A server is
// ended only if its command line names that very folder, because process ids come round again.

import { execFileSync } from 'node:child_process'
import { chownSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

/** The file in its folder in which a server must note its process id. */
export const pidFile = 'server.pid'

/** For `spawn`. Empty unless we are root: what we start has no business being root, and Postgres refuses to be. */
export type Account = Readonly<{ uid: number; gid: number } | Record<string, never>>

/** The account `nobody`, if we are root. */
export function accountOf(isRoot = process.getuid?.() === 0): Account {
  if (!isRoot) return {}
  // Not any free number: initdb wants an account that has a name.
  const [, uid, gid] = /^nobody:[^:]*:(\d+):(\d+):/m.exec(readFileSync('/etc/passwd', 'utf8')) ?? []
  if (uid === undefined) {
    throw new Error(
      'Postgres does not run as root, and this system has no account `nobody` to run it as. ' +
        'Run the tests as another user, or set DATABASE_URL to a database that they may use.',
    )
  }
  return { uid: Number(uid), gid: Number(gid) }
}

/** Whether an account with no rights of its own gets to what is in this folder. */
export function isReachable(folder: string): boolean {
  for (let at = folder; ; at = dirname(at)) {
    if ((statSync(at).mode & 0o001) === 0) return false
    if (at === dirname(at)) return true
  }
}

/** Makes a folder of our own that belongs to the account, and tidies up after others who are gone. */
export function makeServerFolder(kind: string, account: Account): string {
  const places = 'uid' in account ? [tmpdir(), '/tmp', '/var/tmp'].filter(isReachable) : [tmpdir()]
  const place = places[0] ?? tmpdir()
  removeLeftovers(place, kind)
  // The machine's name too: containers may share a temporary folder, and know nothing of each other's processes.
  const folder = mkdtempSync(join(place, `${prefixOf(kind)}${process.pid}-`))
  if ('uid' in account) chownSync(folder, account.uid, account.gid)
  return folder
}

/** What runs in the folder is ended at once; then it is removed. */
export function removeServerFolder(folder: string): void {
  const pid = serverIn(folder)
  if (pid !== null) kill(pid)
  // What was killed may still be writing its last.
  rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 })
}

function removeLeftovers(place: string, kind: string): void {
  const prefix = prefixOf(kind)
  for (const name of readdirSync(place)) {
    if (!name.startsWith(prefix)) continue
    const owner = Number.parseInt(name.slice(prefix.length), 10)
    if (!(owner > 0) || isAlive(owner)) continue
    try {
      removeServerFolder(join(place, name))
    } catch {
      // Another user's, or another process removes it right now.
    }
  }
}

function prefixOf(kind: string): string {
  return `holdfast-${kind}-${hostname().replaceAll(/\W/g, '')}-`
}

/** The process that the folder's server noted for its own, if its command line names the folder. */
function serverIn(folder: string): number | null {
  const pid = Number.parseInt(readOrNothing(join(folder, pidFile)), 10)
  return pid > 0 && commandOf(pid).includes(folder) ? pid : null
}

function commandOf(pid: number): string {
  if (process.platform === 'linux') return readOrNothing(`/proc/${pid}/cmdline`)
  try {
    return execFileSync('ps', ['-o', 'command=', '-p', `${pid}`], { encoding: 'utf8' })
  } catch {
    return ''
  }
}

export function readOrNothing(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has gone, or is not ours.
  }
}
