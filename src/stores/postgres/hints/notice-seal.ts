// Notices that can be read and written only with the key of the schema. Every role of a database may listen on every channel,
// and notify it of anything: so a notice reveals nothing without the key, a forged one is dropped before any work is done for
// it, and so is a replayed one.
//
// Each process seals under a key of its own, made of the schema's key and a random salt, and counts: no nonce is used twice.

import { createCipheriv, createDecipheriv, createHmac, randomBytes } from 'node:crypto'

export interface NoticeSeal {
  /** The text to send on the channel. */
  seal(text: string): string
  /** The text of a notice; null if it is no notice of ours, or was received before. */
  open(sealed: string): string | null
}

const saltBytes = 16
const countBytes = 6
const tagBytes = 16
const headBytes = saltBytes + countBytes + tagBytes
/** This many notices are remembered, twice over. Older ones that are replayed are bounded like all others, by their rate. */
const remembered = 5_000

export function noticeSeal(key: string, channel: string): NoticeSeal {
  const salt = randomBytes(saltBytes)
  let count = 0
  let [seen, before] = [new Set<string>(), new Set<string>()]

  const isRepeated = (id: string): boolean => {
    if (seen.has(id) || before.has(id)) return true
    if (seen.size >= remembered) [seen, before] = [new Set(), seen]
    seen.add(id)
    return false
  }
  const keyOf = (from: Uint8Array): Buffer => createHmac('sha256', key).update('notice').update(from).digest()
  const own = keyOf(salt)
  const bound = Buffer.from(channel)

  return {
    seal(text) {
      count += 1
      const counted = Buffer.alloc(countBytes)
      counted.writeUIntBE(count, 0, countBytes)
      const cipher = createCipheriv('aes-256-gcm', own, nonceOf(counted)).setAAD(bound)
      const body = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
      return Buffer.concat([salt, counted, cipher.getAuthTag(), body]).toString('base64url')
    },
    open(sealed) {
      const bytes = Buffer.from(sealed, 'base64url')
      if (bytes.length <= headBytes) return null
      const head = bytes.subarray(0, saltBytes + countBytes)
      const [from, counted] = [head.subarray(0, saltBytes), head.subarray(saltBytes)]
      const decipher = createDecipheriv('aes-256-gcm', keyOf(from), nonceOf(counted)).setAAD(bound)
      decipher.setAuthTag(bytes.subarray(head.length, headBytes))
      try {
        const text = decipher.update(bytes.subarray(headBytes), undefined, 'utf8') + decipher.final('utf8')
        return isRepeated(head.toString('latin1')) ? null : text
      } catch {
        return null
      }
    },
  }
}

function nonceOf(counted: Uint8Array): Buffer {
  return Buffer.concat([Buffer.alloc(12 - countBytes), counted])
}
