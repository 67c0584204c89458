// A build that expects its payloads to be encrypted.

import { encryptingCodec } from '../../../src/encryption/index.ts'

export { order } from '../../../examples/deploy-gate/deployed.ts'

export const holdfast = { codec: encryptingCodec({ keys: { k1: Buffer.alloc(32, 7) }, current: 'k1' }) }
