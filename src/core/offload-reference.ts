// References to where a large payload was put. They come back from the database, so whoever can write rows chooses them: what no
// port can have answered never reaches one.

import { isPrintable } from './printable.ts'

export const longestReference = 2_048

/** Tells whether a port can have answered it: printable text that is not empty and not longer than an address. */
export function isReference(reference: unknown): reference is string {
  return (
    typeof reference === 'string' &&
    reference !== '' &&
    reference.length <= longestReference &&
    isPrintable(reference) &&
    reference.trim() === reference
  )
}

/** Begins a text that stands for a payload that is not at hand. No codec writes it, and those that check their texts refuse it. */
export const absent = '\u0000absent:'
