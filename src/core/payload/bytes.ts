// Bytes without Buffer: base64 both ways and the UTF-8 length of a text, for a core that runs on any runtime.
// Base64 is read strictly (standard alphabet, padded, no stray bits), so that one byte string has one text.

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
const codeOf = Uint8Array.from(alphabet, (character) => character.charCodeAt(0))
const invalid = 255
const sextetOf = new Uint8Array(128).fill(invalid)
for (let sextet = 0; sextet < 64; sextet++) sextetOf[codeOf[sextet] as number] = sextet
const pad = 61

// `String.fromCharCode.apply` puts its arguments on the stack, so the text is made in pieces.
const pieceLength = 8192

export function toBase64(bytes: Uint8Array): string {
  const codes = new Uint8Array(Math.ceil(bytes.length / 3) * 4)
  let to = 0
  for (let from = 0; from < bytes.length; from += 3) {
    const left = bytes.length - from
    const group = ((bytes[from] as number) << 16) | ((bytes[from + 1] ?? 0) << 8) | (bytes[from + 2] ?? 0)
    codes[to++] = codeOf[group >> 18] as number
    codes[to++] = codeOf[(group >> 12) & 63] as number
    codes[to++] = left > 1 ? (codeOf[(group >> 6) & 63] as number) : pad
    codes[to++] = left > 2 ? (codeOf[group & 63] as number) : pad
  }
  let text = ''
  for (let from = 0; from < codes.length; from += pieceLength) {
    text += String.fromCharCode.apply(null, codes.subarray(from, from + pieceLength) as unknown as number[])
  }
  return text
}

/** The bytes, or undefined when the text is not what `toBase64` writes. */
export function fromBase64(text: string): Uint8Array | undefined {
  if (text.length % 4 !== 0) return undefined
  const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0
  const bytes = new Uint8Array((text.length / 4) * 3 - padding)
  const last = text.length - padding
  let to = 0
  for (let from = 0; from < text.length; from += 4) {
    let group = 0
    for (let at = from; at < from + 4; at++) {
      const sextet = at < last ? (sextetOf[text.charCodeAt(at)] ?? invalid) : 0
      if (sextet === invalid) return undefined
      group = (group << 6) | sextet
    }
    bytes[to++] = group >> 16
    if (to < bytes.length) bytes[to++] = (group >> 8) & 255
    else if ((group & 0xffff) !== 0) return undefined
    if (to < bytes.length) bytes[to++] = group & 255
    else if (from + 4 === text.length && padding === 1 && (group & 0xff) !== 0) return undefined
  }
  return bytes
}

/** Tells whether a text takes more than `limit` bytes of UTF-8; counts only when its length does not say so already. */
export function exceedsUtf8(text: string, limit: number): boolean {
  if (text.length * 3 <= limit) return false
  return text.length > limit || utf8Length(text) > limit
}

// oxlint-disable-next-line no-control-regex -- the whole range is meant
const ascii = /^[\x00-\x7f]*$/u

export function utf8Length(text: string): number {
  // Natively: most long texts are ASCII, and the loop takes milliseconds for a megabyte.
  if (ascii.test(text)) return text.length
  let length = text.length
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code < 0x80) continue
    // A lone surrogate is written as U+FFFD, three bytes; the two halves of a pair take four together.
    if (code < 0x800) length += 1
    else if (code >= 0xd800 && code <= 0xdbff && (text.charCodeAt(at + 1) & 0xfc00) === 0xdc00) {
      length += 2
      at++
    } else length += 2
  }
  return length
}
