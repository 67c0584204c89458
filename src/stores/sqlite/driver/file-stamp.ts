// Finds without a statement whether a file may have been written to: by the size and the time of the file and of its log. It
// opens neither: a process that closes a file of SQLite's lets go of the locks that SQLite has on it.
//
// Times have a grain, of some milliseconds on most systems. A file that was written a moment ago may be written again without
// a trace, so a mark counts only if the last write is older than that.

import { statSync } from 'node:fs'

/** Coarser than the times of any local file system, and finer than any pause between two looks. */
const grainMs = 50

export class FileMark {
  private readonly paths: readonly string[]

  /** `file` is empty if the database lives in memory. */
  constructor(file: string) {
    this.paths = file === '' ? [] : [file, `${file}-wal`]
  }

  /** The same text as long as no process has written; null if that cannot be known. */
  read(): string | null {
    const marks: string[] = []
    for (const path of this.paths) {
      const stat = statSync(path, { bigint: true, throwIfNoEntry: false })
      if (stat === undefined || Date.now() - Number(stat.mtimeMs) < grainMs) return null
      marks.push(`${stat.ino} ${stat.size} ${stat.mtimeNs}`)
    }
    return marks.length === 0 ? null : marks.join(', ')
  }
}
