// The address of a database. While the driver makes a client it parses the address, and reads the files for TLS that it names, and
// lets bare errors through. None of them says that an address is meant, and an older driver keeps the whole address, with its
// password, in such an error. So all of it is tried first, and the error names the option.

import { readFile } from 'node:fs/promises'
import { HoldfastError, messageOf } from '../../../core/errors/error.ts'
import { visible } from '../../../core/text/printable.ts'
import { loadPg } from './load-pg.ts'

/** Throws INVALID_OPTION if the driver cannot parse the address, or read a file that it names. The error shows no other part of it. */
export async function checkAddress(url: string, option: 'url' | 'listen'): Promise<void> {
  await checkCertificateFiles(url)
  const pg = await loadPg()
  try {
    void new pg.Client({ connectionString: url })
  } catch {
    throw new HoldfastError(
      'INVALID_OPTION',
      `The address of the database${option === 'listen' ? ' to listen at' : ''} cannot be parsed: its host, its port or a % in it is ` +
        'wrong. Write postgres://user:password@host:5432/database, with a port of at most 65535, %25 for a %, and %40 for an @ ' +
        'in a password.',
      { details: { option } },
    )
  }
}

/** The parameters of an address that name a file. */
const fileOptions = ['sslrootcert', 'sslcert', 'sslkey'] as const

const reasons: Readonly<Record<string, string>> = {
  ENOENT: 'which does not exist',
  EACCES: 'which this process may not read',
  EISDIR: 'which is a folder',
}

/** Throws INVALID_OPTION if the address names a file that cannot be read. */
export async function checkCertificateFiles(url: string): Promise<void> {
  const at = url.indexOf('?')
  if (at === -1) return
  const parameters = new URLSearchParams(url.slice(at + 1))
  for (const option of fileOptions) {
    // Of several, the driver takes the last.
    const file = parameters.getAll(option).at(-1)
    if (file === undefined || file === '') continue
    try {
      await readFile(file)
    } catch (error) {
      throw unreadable(option, file, error)
    }
  }
}

function unreadable(option: string, file: string, error: unknown): HoldfastError {
  const { code = '' } = error as { readonly code?: string }
  const why = reasons[code] ?? `which cannot be read: ${messageOf(error)}`
  return new HoldfastError(
    'INVALID_OPTION',
    `${option} in the address of the store names the file "${visible(file)}", ${why}. Give the path of a PEM file, absolute or ` +
      'relative to the folder in which the process was started.',
    { cause: error, details: { option, file } },
  )
}
