// Topics as users declare them: what is wrong with a declaration is refused at once, and what is left out is what they expect.

import { describe, expect, it } from 'vitest'
import { checkSignalName, isTopic, longestName, topic } from '../../../../src/core/definition/declared-topic.ts'
import { isHoldfastError } from '../../../../src/core/errors/error.ts'
import type { Schema } from '../../../../src/core/definition/schema.ts'

const refusalOf = (make: () => unknown): readonly string[] => {
  try {
    make()
  } catch (error) {
    if (isHoldfastError(error)) return [error.code, error.message]
  }
  throw new Error('Nothing was wrong with it')
}

/** A schema of texts, which it trims. */
const text: Schema<string> = {
  '~standard': {
    version: 1,
    vendor: 'test',
    validate: (value: unknown) =>
      typeof value === 'string' ? { value: value.trim() } : { issues: [{ message: 'It is not a text' }] },
  },
}

describe('topic', () => {
  it('delivers to everyone, retains nothing and discards what nobody read, unless asked otherwise', () => {
    const { name, rules, policy } = topic('prices')
    expect([name, rules, policy]).toEqual(['prices', { name: 'prices', delivery: 'all', retainMs: 0 }, null])
  })

  it('WC-W3 passes on what a run got from a queue and did not read, unless asked otherwise', () => {
    const { rules, policy } = topic('jobs', { delivery: 'one' })
    expect(rules).toEqual({ name: 'jobs', delivery: 'one', retainMs: 0 })
    expect(policy).toEqual({ onUnread: 'broadcast', delivery: 'one', retainMs: 0 })
    expect(topic('jobs', { delivery: 'one', onUnread: 'discard' }).policy).toBeNull()
  })

  it('keeps what nobody read as a dead letter, or passes it on for as long as the topic retains it', () => {
    const letter = topic('a', { onUnread: 'dead-letter' })
    expect(letter.policy).toEqual({ onUnread: 'dead-letter' })
    const { rules, policy } = topic('a', { retain: '1h', onUnread: 'broadcast' })
    expect(rules.retainMs).toBe(3_600_000)
    expect(policy).toEqual({ onUnread: 'broadcast', delivery: 'all', retainMs: 3_600_000 })
  })

  it('checks what is sent by its schema, and lets anything through without one', async () => {
    expect(await topic('a', { schema: text }).validate(' hello ')).toBe('hello')
    const refused = async (): Promise<unknown> => topic('a', { schema: text }).validate(3)
    await expect(refused()).rejects.toThrow(/Topic "a".*It is not a text/s)
    const anything = { any: ['thing'] }
    expect(topic('a').validate(anything)).toBe(anything)
  })

  it('says what is wrong with a declaration, and what was meant', () => {
    expect(refusalOf(() => topic(''))).toEqual(['INVALID_NAME', expect.stringMatching(/A topic needs a name/)])
    expect(refusalOf(() => topic('a', { delivery: 'oen' as 'one' }))).toEqual([
      'INVALID_OPTION',
      expect.stringMatching(/Topic "a": delivery is one of all, one\. Got "oen"\..*one/),
    ])
    expect(refusalOf(() => topic('a', { onUnread: 'deadletter' as 'dead-letter' }))[1]).toMatch(/dead-letter/)
    expect(refusalOf(() => topic('a', { schema: {} as Schema<string> }))[0]).toBe('INVALID_OPTION')
    expect(refusalOf(() => topic('a', { retian: '1h' } as object))[1]).toMatch(/retian.*retain/s)
    expect(refusalOf(() => topic('a', { retain: 'soon' as '1h' }))[1]).toMatch(/Topic "a": retain/)
  })

  it('is known among names', () => {
    expect(isTopic(topic('a'))).toBe(true)
    for (const other of ['a', null, undefined, {}, { name: 'a' }, 3]) expect(isTopic(other)).toBe(false)
  })
})

describe('checkSignalName', () => {
  it('lets through what is printable, and at most as long as names are', () => {
    for (const name of ['a', 'approved by: Zoë 👩‍👧', 'x'.repeat(longestName)]) {
      expect(checkSignalName(name, 'A signal')).toBe(name)
    }
  })

  it.each(['', 'x'.repeat(longestName + 1), 'a\u0000', 'a\nb', 3, null, undefined])('refuses %j', (name) => {
    expect(refusalOf(() => checkSignalName(name, 'A signal'))[0]).toBe('INVALID_NAME')
  })
})
