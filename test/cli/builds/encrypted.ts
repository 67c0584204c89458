// A build whose payloads are encrypted, in the middle of a rotation: it reads the old key and writes the new one.

import { encryptingCodec } from '../../../src/encryption/index.ts'

const keys = { old: '11'.repeat(32), new: '22'.repeat(32) }

/** The build before: it only knows the old key. */
export const before = encryptingCodec({ keys: { old: keys.old }, current: 'old' })

export const holdfast = { codec: encryptingCodec({ keys, current: 'new' }) }

export { greet, sleepy } from '../workflows.ts'
