// Watches the files of a project for changes. Each folder has its own watcher, because a recursive one of Node 20 would
// watch every file of node_modules, too. Watchers only hint: a file has changed if it differs from the last scan, so a
// database that is written beside the code restarts nothing. Hints may be lost (a mounted folder, too many watchers), so it
// also scans every two seconds.

import { watch, type Dirent, type FSWatcher } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { extname, join } from 'node:path'

/** A folder or a file to watch. */
export interface WatchedPath {
  readonly path: string
  /** Every file counts, and not only code. @default false */
  readonly everything?: boolean
}

const settleMs = 100
const lookEveryMs = 2_000

const code = /\.[cm]?[jt]sx?$/

export class WatchedFiles {
  private readonly roots: readonly WatchedPath[]
  private readonly changed: (file: string) => void
  private readonly watchers = new Map<string, FSWatcher>()
  private seen: ReadonlyMap<string, string> = new Map()
  private timer: NodeJS.Timeout | null = null
  private look: Promise<void> | null = null
  private isStopped = false

  constructor(roots: readonly WatchedPath[], changed: (file: string) => void) {
    this.roots = roots
    this.changed = changed
  }

  /** Takes the first scan, against which later ones are compared. */
  async start(): Promise<void> {
    this.seen = await this.scan()
    this.lookIn(lookEveryMs)
  }

  async stop(): Promise<void> {
    this.isStopped = true
    if (this.timer !== null) clearTimeout(this.timer)
    await this.look
    for (const watcher of this.watchers.values()) watcher.close()
    this.watchers.clear()
  }

  private lookIn(ms: number): void {
    if (this.isStopped) return
    if (this.timer !== null) clearTimeout(this.timer)
    this.timer = setTimeout(() => {
      this.timer = null
      // The next scan sees a change that a scan under way may have missed.
      if (this.look !== null) return this.lookIn(settleMs)
      this.look = this.compare().finally(() => {
        this.look = null
        if (this.timer === null) this.lookIn(lookEveryMs)
      })
    }, ms)
  }

  private async compare(): Promise<void> {
    const now = await this.scan()
    const before = this.seen
    this.seen = now
    if (this.isStopped) return
    const changed = [...now.keys()].find((file) => before.get(file) !== now.get(file))
    const file = changed ?? [...before.keys()].find((file) => !now.has(file))
    if (file !== undefined) this.changed(file)
  }

  /** The fingerprint of each file. Folders are watched before they are read, so that no change is missed. */
  private async scan(): Promise<ReadonlyMap<string, string>> {
    const files = new Map<string, string>()
    const folders = new Set<string>()
    for (const { path, everything = false } of this.roots) {
      if (await isFolder(path)) await this.scanFolder(path, everything, files, folders)
      else await note(path, files)
    }
    for (const [folder, watcher] of this.watchers) {
      if (folders.has(folder)) continue
      watcher.close()
      this.watchers.delete(folder)
    }
    return files
  }

  private async scanFolder(
    folder: string,
    everything: boolean,
    files: Map<string, string>,
    folders: Set<string>,
  ): Promise<void> {
    folders.add(folder)
    this.watch(folder, everything)
    for (const entry of await entriesOf(folder)) {
      // Installed packages, and folders that tools keep for themselves.
      if (entry.name === 'node_modules' || entry.name.startsWith('.')) continue
      const path = join(folder, entry.name)
      if (entry.isDirectory()) await this.scanFolder(path, everything, files, folders)
      else if (everything || code.test(entry.name)) await note(path, files)
    }
  }

  private watch(folder: string, everything: boolean): void {
    if (this.isStopped || this.watchers.has(folder)) return
    try {
      const watcher = watch(folder, (_event, name) => {
        // A name without an ending may be a folder. A database beside the code is written all the time.
        if (everything || name === null || extname(name) === '' || code.test(name)) this.lookIn(settleMs)
      })
      watcher.on('error', () => {
        watcher.close()
        this.watchers.delete(folder)
      })
      this.watchers.set(folder, watcher)
    } catch {
      // There are too many watchers, or the folder is gone: the scan every two seconds covers it.
    }
  }
}

async function isFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  )
}

async function entriesOf(folder: string): Promise<readonly Dirent[]> {
  return readdir(folder, { withFileTypes: true }).catch(() => [])
}

async function note(path: string, files: Map<string, string>): Promise<void> {
  const found = await stat(path).catch(() => null)
  if (found?.isFile() === true) files.set(path, `${found.mtimeMs} ${found.size} ${found.ino}`)
}
