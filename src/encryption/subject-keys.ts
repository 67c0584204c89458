// Keys of data subjects in a folder, one small file for each: for one machine, or a volume that several share. A key is made once,
// by whichever process is first, and destroyed once: then its file stays, empty, so that none is made again.

import { createHash, randomBytes } from 'node:crypto'
import {
  closeSync,
  fsyncSync,
  ftruncateSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  unlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { HoldfastError, messageOf } from '../core/errors/error.ts'
import { shown } from '../core/text/suggest.ts'
import type { SubjectKeys } from './subjects.ts'

export interface FolderOfSubjectKeys extends SubjectKeys {
  /** Destroys the key of a subject, for good: from then on nothing of it can be read, and nothing more is written. */
  destroy(id: string): void
}

const keyBytes = 32

/**
 * Keys of data subjects as files of a folder, which only their owner can read. Keep it apart from the database and its backups: a
 * copy of a key that was destroyed undoes that.
 *
 * @example
 * const subjectKeys = subjectKeysIn('/var/lib/shop/subjects')
 * const codec = encryptingCodec({ keys, current, subjects: { of: (value) => value?.customerId, keys: subjectKeys } })
 * subjectKeys.destroy('customer-7')
 */
export function subjectKeysIn(folder: string): FolderOfSubjectKeys {
  if (typeof folder !== 'string' || folder === '') {
    throw new HoldfastError('INVALID_OPTION', `subjectKeysIn() takes the path of a folder. Got ${shown(folder)}.`)
  }
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const pathOf = (id: string): string => join(folder, createHash('sha256').update(id).digest('hex'))
  return {
    forSubject(id) {
      const path = pathOf(id)
      const known = read(path)
      if (known !== undefined) return known
      make(folder, path)
      return read(path) ?? null
    },
    destroy(id) {
      const path = pathOf(id)
      // The subject may have no key yet: it must not get one later.
      if (read(path) === undefined) make(folder, path)
      const file = openSync(path, 'r+')
      try {
        // As far as the file system goes: some keep older contents of a file for a while.
        writeSync(file, Buffer.alloc(keyBytes), 0, keyBytes, 0)
        fsyncSync(file)
        ftruncateSync(file, 0)
        fsyncSync(file)
      } finally {
        closeSync(file)
      }
    },
  }
}

/** Null if the key was destroyed, undefined if there is none yet. */
function read(path: string): Uint8Array | null | undefined {
  let key: Uint8Array
  try {
    key = Uint8Array.from(readFileSync(path))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw new HoldfastError('STORE_UNAVAILABLE', `The key of a data subject cannot be read: ${messageOf(error)}`, {
      cause: error,
    })
  }
  // A file that is being destroyed is full of zeros for a moment.
  return key.length !== keyBytes || key.every((byte) => byte === 0) ? null : key
}

/** A key is there as a whole or not at all, and the first process that makes one has made it. */
function make(folder: string, path: string): void {
  const draft = join(folder, `.${randomBytes(12).toString('hex')}`)
  writeFileSync(draft, randomBytes(keyBytes), { mode: 0o600, flag: 'wx', flush: true })
  try {
    linkSync(draft, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    unlinkSync(draft)
  }
}
