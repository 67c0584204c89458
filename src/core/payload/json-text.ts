// The JSON text of single values. The text is ASCII where JSON wants escapes: control characters and lone surrogates never
// reach a database as such.

export const undefinedText = '{"$undefined":true}'

export function numberText(value: number): string {
  if (value === 0 ? 1 / value > 0 : Number.isFinite(value)) return `${value}`
  return `{"$number":"${value === 0 ? '-0' : value}"}`
}

export function quote(value: string): string {
  return isBare(value) ? `"${value}"` : JSON.stringify(value)
}

/** The text of a key between its quotes. */
export function bare(key: string): string {
  return isBare(key) ? key : JSON.stringify(key).slice(1, -1)
}

// Up to about this length the loop costs less than the native call.
const shortLength = 48

function isBare(value: string): boolean {
  if (value.length > shortLength) return false
  for (let at = 0; at < value.length; at++) {
    const code = value.charCodeAt(at)
    if (code < 0x20 || code === 0x22 || code === 0x5c || (code >= 0xd800 && code <= 0xdfff)) return false
  }
  return true
}
