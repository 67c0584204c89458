// Makes text from data harmless for a terminal: whatever could move the cursor, turn the direction of writing, hide or
// break a line becomes visible. Everything that a user's data or arguments have a part in goes through here.

// Control (C0, DEL, C1), format (bidi, zero-width, tags) and surrogates that stand alone, line and paragraph separators.
// The two joiners are left: scripts and emoji need them, and they harm nobody.
const hazards = /(?![\u200C\u200D])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu

const shortForms: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }

/** The same text on one line, with every hazard as `\n`, `\x1b` or `\u{202e}`. */
export function visible(text: string): string {
  return text.replaceAll(hazards, (character) => {
    const code = character.codePointAt(0) ?? 0
    const digits = code.toString(16)
    return shortForms[character] ?? (code < 0x100 ? `\\x${digits.padStart(2, '0')}` : `\\u{${digits}}`)
  })
}

/** The same, but lines stay lines: for stacks, and for texts of our own that quote data. */
export function visibleLines(text: string): string {
  return text.split('\n').map(visible).join('\n')
}

/** JSON on one line in which also the hazards that JSON allows are escaped. It is still JSON of the same value. */
export function harmlessJson(json: string): string {
  return json.replaceAll(hazards, (character) =>
    Array.from({ length: character.length }, (_, at) => `\\u${hex4(character.charCodeAt(at))}`).join(''),
  )
}

function hex4(code: number): string {
  return code.toString(16).padStart(4, '0')
}
