// What may stand in a name: everything that can be stored, shown on one line and told apart.

/** Tells whether a text has no control characters, no line separators and no half of a surrogate pair. */
export function isPrintable(text: string): boolean {
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index)
    if (code < 0x20 || (code >= 0x7f && code < 0xa0) || code === 0x2028 || code === 0x2029) return false
    if (code >= 0xd800 && code <= 0xdfff) {
      const paired = code < 0xdc00 && (text.charCodeAt(index + 1) & 0xfc00) === 0xdc00
      if (!paired) return false
      index += 1
    }
  }
  return true
}
