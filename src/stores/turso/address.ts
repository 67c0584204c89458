// The parts of a `libsql:` address: a file on this machine, or a server, with the token for it. The token goes no further
// than into the header of a request: nothing here puts it into a message.

import { HoldfastError } from '../../core/errors/error.ts'
import { didYouMean } from '../../core/text/suggest.ts'
import { pathOf } from '../sqlite/driver/file-address.ts'

export type LibsqlAddress =
  | { readonly kind: 'file'; readonly path: string }
  | { readonly kind: 'server'; readonly url: string; readonly authToken: string | null }

const parameters = ['authToken', 'tls']

const example = "'libsql:app.db' for a file, or 'libsql://name.example.com?authToken=…' for a server"

export function parseLibsql(address: string): LibsqlAddress {
  if (!address.startsWith('libsql:')) throw refused(`A libsql address begins with libsql:, as in ${example}.`)
  const rest = address.slice('libsql:'.length)
  if (rest === '') throw refused(`A libsql address needs a path or a server, as in ${example}.`)
  if (!rest.startsWith('//')) return { kind: 'file', path: pathOf(rest) }
  const url = urlOf(address)
  if (url.hostname === '') {
    throw refused(`The libsql address names no server. A file has no slashes before its path, as in ${example}.`)
  }
  if (url.username !== '' || url.password !== '') {
    throw refused('A libsql address has no user or password. Give the token as ?authToken=…')
  }
  for (const name of url.searchParams.keys()) {
    if (parameters.includes(name)) continue
    // Its name is not repeated: if a sign was left out before it, it is the token.
    throw refused(
      `A libsql address takes authToken and tls, each with a value, and nothing else.${didYouMean(name, parameters)}`,
    )
  }
  const tls = url.searchParams.get('tls') ?? '1'
  if (tls !== '0' && tls !== '1') throw refused('The tls of a libsql address is 0 or 1.')
  const path = url.pathname.replace(/\/+$/, '')
  const authToken = url.searchParams.get('authToken')
  return { kind: 'server', url: `${tls === '1' ? 'https' : 'http'}://${url.host}${path}`, authToken }
}

function urlOf(address: string): URL {
  try {
    return new URL(address)
  } catch {
    // Without its cause, which shows the whole address.
    throw refused(`The libsql address cannot be read. Write it as in ${example}.`)
  }
}

function refused(message: string): HoldfastError {
  return new HoldfastError('INVALID_OPTION', message)
}
