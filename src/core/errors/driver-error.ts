// Classifies the errors of a database library: an error of the database, an error of the connection, or a defect of ours or
// of the library. A request with a defect is never sent again, because it would fail forever, together with its whole batch:
// a text that is too long to be built, a value that the library cannot send.

/** The classes that the language and the runtime themselves throw. */
const languageErrors = new Set(['TypeError', 'RangeError', 'SyntaxError', 'ReferenceError', 'EvalError', 'URIError'])

/** Codes of Node that concern its arguments, not a socket or a certificate. */
const argumentCodes = /^ERR_(?:INVALID_|OUT_OF_RANGE|STRING_TOO_LONG|BUFFER_|MISSING_ARGS|UNKNOWN_ENCODING)/

/** Node's codes for errors of sockets, names and certificates: `ECONNRESET`, `ERR_SSL_…`, `CERT_HAS_EXPIRED`. */
const wayCodes =
  /^(?:E[A-Z0-9]{2,}$|EAI_|ERR_(?:SSL|TLS|SOCKET|STREAM|HTTP2|NETWORK)|CERT_|SELF_SIGNED|DEPTH_ZERO|UNABLE_TO_)/

/** How many nested causes are searched. */
const deepest = 5

/** Whether an error that the database did not send can only be a defect: of the text, of a value, of the library. */
export function isDefect(error: unknown): boolean {
  if (!(error instanceof Error) || isConnectionFault(error)) return false
  const code = codeOf(error)
  return languageErrors.has(error.name) || languageErrors.has(error.constructor.name) || argumentCodes.test(code)
}

/**
 * Whether Node's code says that this is an error of the connection. A library may wrap it in its own error: a
 * `TypeError: fetch failed` is an error of the connection, too.
 */
export function isConnectionFault(error: unknown, depth = 0): boolean {
  if (typeof error !== 'object' || error === null || depth > deepest) return false
  if (wayCodes.test(codeOf(error))) return true
  const { cause, errors } = error as { readonly cause?: unknown; readonly errors?: unknown }
  if (Array.isArray(errors) && errors.some((one) => isConnectionFault(one, depth + 1))) return true
  return isConnectionFault(cause, depth + 1)
}

function codeOf(error: object): string {
  const { code } = error as { readonly code?: unknown }
  return typeof code === 'string' ? code : ''
}
