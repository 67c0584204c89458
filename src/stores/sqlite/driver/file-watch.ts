// Notices that the file of a store was deleted or replaced while it is open. SQLite goes on writing to the file that it has
// opened, which no path leads to any more: everything that is accepted from then on is lost when the process ends. So calls are
// refused, until the file is back.
//
// The path is looked at once a second at most, by a call that is made anyway: a look costs 3 µs (measured) and opens nothing. SQLite itself
// recognises a moved file by the same sign, the number of its inode, but only where it keeps a rollback journal.

import { statSync } from 'node:fs'
import { HoldfastError } from '../../../core/errors/error.ts'

const pauseMs = 1_000

export class FileWatch {
  private readonly file: string
  /** Which file was opened; null if that cannot be known: it lives in memory. */
  private readonly inode: bigint | null
  private lookAt = 0
  private readonly now: () => number

  constructor(file: string, now: () => number = () => performance.now()) {
    this.file = file
    this.now = now
    this.inode = file === '' ? null : (inodeOf(file) ?? null)
  }

  /** Throws STORE_REFUSED if the path leads to no file, or to another one. */
  check(): void {
    const { file, inode } = this
    if (inode === null) return
    const now = this.now()
    if (now < this.lookAt) return
    const found = inodeOf(file)
    if (found === undefined || found === inode) {
      this.lookAt = now + pauseMs
      return
    }
    // Every call looks from here on, so that calls are accepted as soon as the file is back.
    throw new HoldfastError(
      'STORE_REFUSED',
      `The file ${file} was ${found === null ? 'deleted' : 'replaced by another'} while this process had it open. Nothing more is ` +
        'accepted, because it would be lost when the process ends. Stop the processes that have it open, restore the file, ' +
        'and start them again.',
      { details: { file } },
    )
  }
}

/** Null if there is no file at that path, undefined if the system does not say. */
function inodeOf(path: string): bigint | null | undefined {
  try {
    return statSync(path, { bigint: true, throwIfNoEntry: false })?.ino ?? null
  } catch {
    return undefined
  }
}
