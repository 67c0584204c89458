// The file that a path or a `file:` address names. A driver reads `file:` addresses by itself, and would open another file
// than the one that was made for its owner alone; so they are read here, once, and a driver only ever gets a plain path.

import { resolve } from 'node:path'
import { HoldfastError } from '../../../core/errors/error.ts'

/** Where a database is that lives in memory. */
export const inMemory = ':memory:'

/**
 * The path that `app.db`, `file:app.db` or `file:///var/lib/app.db` names, or `':memory:'`. Throws INVALID_OPTION at an address
 * that names no file of this machine, or that has options.
 */
export function pathOf(address: string): string {
  const path = address.startsWith('file:') ? plain(decoded(withoutHost(address.slice('file:'.length)))) : address
  if (path === '')
    throw refused("it names no file. Write it as in 'app.db', 'file:app.db' or 'file:///var/lib/app.db'.")
  // Read as a path it would be a file in the root folder.
  if (/^\/\/[^/]/.test(address)) {
    throw refused(
      `two slashes begin the name of a machine. Write the path of a file without them, '${address.slice(2)}', or with one of ` +
        'them if it begins at the root.',
    )
  }
  if (path.includes('\0')) throw refused('a path holds no zero byte.')
  return path
}

/** The same from the root on, so that no driver finds anything in it but a path. */
export function wholePathOf(address: string): string {
  const path = pathOf(address)
  if (path === inMemory) return path
  // A path that names a folder stays one, and is refused as such.
  return /[/\\]$/.test(path) ? `${resolve(path)}/` : resolve(path)
}

function withoutHost(rest: string): string {
  const option = /[?#]/.exec(rest)?.[0]
  if (option !== undefined) {
    throw refused(
      `a file: address takes no options, and "${option}" begins some. In the name of a file, write it as ` +
        `${option === '?' ? '%3F' : '%23'}; for a connection with options of your own, open it and hand it over as \`handle\`.`,
    )
  }
  if (!rest.startsWith('//')) return rest
  const slash = rest.indexOf('/', 2)
  const host = rest.slice(2, slash === -1 ? undefined : slash)
  if (host !== '' && host !== 'localhost') {
    throw refused('it names another machine. A file of this one has three slashes before its path, or none.')
  }
  return slash === -1 ? '' : rest.slice(slash)
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path)
  } catch {
    throw refused('a % in it is not followed by the code of a character. Write a % itself as %25.')
  }
}

/** The same path, so that a second parser finds no address or server in it. */
function plain(path: string): string {
  if (path.startsWith('//')) return path.replace(/^\/+/, '/')
  return path.startsWith('file:') ? `./${path}` : path
}

function refused(why: string): HoldfastError {
  return new HoldfastError('INVALID_OPTION', `The address of the file cannot be used: ${why}`)
}
