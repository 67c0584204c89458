// A token says which entry issued it, and nothing that was changed or made up passes for one.

import { describe, expect, it } from 'vitest'
import {
  derivedSecret,
  hashOfSecret,
  isSameSecret,
  isSecretOf,
  newSecret,
  newTokenKey,
  readCompletionToken,
  completionSignal,
  completionTokenText,
} from '../../../../src/core/completion/completion-token.ts'
import { systemDigest, systemPorts } from '../../../../src/system.ts'

const runId = '01890a5d-ac96-774b-bcce-b302099a8057'
const secret = '0123456789abcdef0123456789abcdef01234567'

describe('a token', () => {
  it('is read back as it was made, and fits into an address', () => {
    for (const seq of [1, 9, 10, 12_345, 2 ** 40]) {
      const text = completionTokenText({ runId, seq, secret })
      expect(text).toMatch(/^[\w-]+$/)
      expect(readCompletionToken(text)).toEqual({ runId, seq, secret })
    }
  })

  it('that was cut, changed or made of something else is none', () => {
    const text = completionTokenText({ runId, seq: 7, secret })
    const others: unknown[] = [
      '',
      text.slice(1),
      text.slice(0, -1),
      `${text}A`,
      `${text}=`,
      completionTokenText({ runId: runId.toUpperCase(), seq: 7, secret }),
      completionTokenText({ runId, seq: 0, secret }),
      completionTokenText({ runId, seq: 1.5, secret }),
      completionTokenText({ runId, seq: 7, secret: 'short' }),
      'é'.repeat(80),
      'A'.repeat(10_000),
      null,
      7,
      { runId },
    ]
    for (const other of others) expect(readCompletionToken(other)).toBeNull()
  })

  it('has a secret of 160 bits, and no two alike', () => {
    const { random } = systemPorts()
    const secrets = Array.from({ length: 1_000 }, () => newSecret(random))
    expect(new Set(secrets).size).toBe(1_000)
    for (const one of secrets) expect(one).toMatch(/^[0-9a-f]{40}$/)
    expect(newSecret({ uint32: () => 1 })).toBe('00000001'.repeat(5))
  })

  it('has a secret that only who has the key can make, and that no other place has', () => {
    const place = { runId, seq: 7, name: 'token' }
    const key = newTokenKey(systemPorts().random)
    expect(key).toMatch(/^[0-9a-f]{64}$/)
    const made = derivedSecret(systemDigest, key, place)
    expect(made).toMatch(/^[0-9a-f]{40}$/)
    expect(derivedSecret(systemDigest, key, { ...place })).toBe(made)
    const others = [
      derivedSecret(systemDigest, newTokenKey(systemPorts().random), place),
      derivedSecret(systemDigest, key, { ...place, runId: runId.replace('0', '1') }),
      derivedSecret(systemDigest, key, { ...place, seq: 8 }),
      derivedSecret(systemDigest, key, { ...place, name: 'token#2' }),
    ]
    expect(new Set([made, ...others]).size).toBe(5)
  })

  it('is known by the hash of its secret, which completes nothing itself', () => {
    const kept = hashOfSecret(systemDigest, secret)
    expect(kept).toMatch(/^sha256:[0-9a-f]{64}$/)
    expect(isSecretOf(systemDigest, kept, secret)).toBe(true)
    expect(isSecretOf(systemDigest, kept, secret.replace('0', '1'))).toBe(false)
    expect(isSecretOf(systemDigest, kept, kept)).toBe(false)
    expect(readCompletionToken(completionTokenText({ runId, seq: 7, secret: kept }))).toBeNull()
    expect(isSecretOf(systemDigest, secret, secret), 'where there is no key').toBe(true)
  })

  it('has a secret that is the same only if all of it is', () => {
    expect(isSameSecret(secret, secret)).toBe(true)
    expect(isSameSecret('', '')).toBe(true)
    for (const other of ['', secret.slice(1), `${secret}0`, secret.replace('7', '8'), 'g'.repeat(40)]) {
      expect(isSameSecret(secret, other)).toBe(false)
      expect(isSameSecret(other, secret)).toBe(false)
    }
  })

  it('is answered by a message that is called after its entry', () => {
    expect(completionSignal(7)).toBe('token:7')
  })
})
