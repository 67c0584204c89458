// References to offloaded payloads. They come back from the database, so anyone with write access to its rows can choose
// them: a reference that no port can have answered never reaches one.

import { isPrintable } from '../text/printable.ts'

export const longestReference = 2_048

/** Whether a port can have answered it: printable text that is not empty and not longer than an address. */
export function isReference(reference: unknown): reference is string {
  return (
    typeof reference === 'string' &&
    reference !== '' &&
    reference.length <= longestReference &&
    isPrintable(reference) &&
    reference.trim() === reference
  )
}

/** The references of a port without `accepts`: a key such as `runs/2026/019a8b6e-7c1d`. */
const keyPattern = /^(?!\/)[A-Za-z0-9._~=+@/-]+$/

/**
 * Whether it can only be a key: no address with a scheme, no path from the root or out of a folder, and nothing encoded
 * or escaped that could become one. A port with other references has `accepts`.
 */
export function isKey(reference: string): boolean {
  return keyPattern.test(reference) && !reference.split('/').some((part) => part === '.' || part === '..')
}

/**
 * Begins a text that stands for a payload that is not at hand. No codec writes it, and those that check their texts refuse
 * it.
 */
export const absent = '\u0000absent:'
