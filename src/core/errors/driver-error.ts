// What a database library throws is one of three: what the database said, what happened on the way to it, or a defect of ours
// or of the library. The last is never sent again, because it would come again for ever, and so would everything that goes
// with it: a text that is too long to be built, a value that the library cannot send.

/** The classes that the language and the runtime themselves throw. */
const languageErrors = new Set(['TypeError', 'RangeError', 'SyntaxError', 'ReferenceError', 'EvalError', 'URIError'])

/** Codes of Node that are about what it was given, not about a socket or a certificate. */
const argumentCodes = /^ERR_(?:INVALID_|OUT_OF_RANGE|STRING_TOO_LONG|BUFFER_|MISSING_ARGS|UNKNOWN_ENCODING)/

/** Node's codes for what happens to sockets, names and certificates: `ECONNRESET`, `ERR_SSL_…`, `CERT_HAS_EXPIRED`. */
const wayCodes =
  /^(?:E[A-Z0-9]{2,}$|EAI_|ERR_(?:SSL|TLS|SOCKET|STREAM|HTTP2|NETWORK)|CERT_|SELF_SIGNED|DEPTH_ZERO|UNABLE_TO_)/

/** How deep a cause is looked for. */
const deepest = 5

/** Tells whether an error that the database did not send can only be a defect: of the text, of a value, of the library. */
export function isDefect(error: unknown): boolean {
  if (!(error instanceof Error) || isOfTheWay(error)) return false
  const code = codeOf(error)
  return languageErrors.has(error.name) || languageErrors.has(error.constructor.name) || argumentCodes.test(code)
}

/**
 * Tells whether Node says that this is about the way to the database. A library may wrap that in an error of its own: a
 * `TypeError: fetch failed` is about the way, too.
 */
export function isOfTheWay(error: unknown, depth = 0): boolean {
  if (typeof error !== 'object' || error === null || depth > deepest) return false
  if (wayCodes.test(codeOf(error))) return true
  const { cause, errors } = error as { readonly cause?: unknown; readonly errors?: unknown }
  if (Array.isArray(errors) && errors.some((one) => isOfTheWay(one, depth + 1))) return true
  return isOfTheWay(cause, depth + 1)
}

function codeOf(error: object): string {
  const { code } = error as { readonly code?: unknown }
  return typeof code === 'string' ? code : ''
}
