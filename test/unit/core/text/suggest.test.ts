// A suggestion must be what was meant, or nothing; an unknown option must never be passed over.

import { describe, expect, it } from 'vitest'
import { isHoldfastError } from '../../../../src/core/errors/error.ts'
import { checkOptions, closest, didYouMean, shown } from '../../../../src/core/text/suggest.ts'

const options = ['maxAttempts', 'kind', 'initial', 'factor', 'max', 'min', 'jitter', 'retryable']

function messageOf(call: () => void): string {
  try {
    call()
  } catch (error) {
    if (isHoldfastError(error, 'INVALID_OPTION')) return error.message
    throw error
  }
  throw new Error('Nothing was thrown')
}

describe('closest', () => {
  it.each([
    ['maxAttempt', 'maxAttempts'],
    ['maxattempts', 'maxAttempts'],
    ['max_attempts', 'maxAttempts'],
    ['maxAttemtps', 'maxAttempts'],
    ['jiter', 'jitter'],
    ['fator', 'factor'],
    ['knid', 'kind'],
    ['Max', 'max'],
  ])('finds for %s what was meant: %s', (name, meant) => {
    expect(closest(name, options)).toBe(meant)
  })

  it.each(['timeout', 'retries', 'x', '', 'delay', 'bcd'])(
    'suggests nothing for %j, which resembles nothing',
    (name) => {
      expect(closest(name, options)).toBeUndefined()
    },
  )

  it('does not take one short name for another', () => {
    expect(closest('x', ['s', 'm', 'h'])).toBeUndefined()
    expect(closest('ab', ['ac'])).toBeUndefined()
    expect(closest('M', ['s', 'm', 'h'])).toBe('m')
  })

  it('counts two swapped neighbours as one mistake', () => {
    expect(closest('abdc', ['abcd'])).toBe('abcd')
    expect(closest('badc', ['abcd'])).toBeUndefined()
  })

  it('prefers the closest, and of equals the first', () => {
    expect(closest('colour', ['colours', 'colour'])).toBe('colour')
    expect(closest('colour', ['colours', 'colourz'])).toBe('colours')
  })

  it('does no unbounded work for an enormous name', () => {
    const enormous = 'a'.repeat(1_000_000)
    expect(closest(enormous, [enormous, 'a'])).toBeUndefined()
    expect(closest('abc', [enormous, 'abd'])).toBe('abd')
  })
})

describe('didYouMean', () => {
  it('is a sentence to put behind another, or nothing', () => {
    expect(didYouMean('initil', options)).toBe(' Did you mean "initial"?')
    expect(didYouMean('timeout', options)).toBe('')
  })
})

describe('checkOptions', () => {
  it('names the unknown option, the place, what was meant and what is allowed', () => {
    const message = messageOf(() => checkOptions({ initial: 1, maxAttempt: 3 }, options, 'retry of step "charge"'))
    expect(message).toContain('retry of step "charge"')
    expect(message).toContain('"maxAttempt"')
    expect(message).toContain('Did you mean "maxAttempts"?')
    for (const option of options) expect(message).toContain(option)
  })

  it('accepts allowed options, an empty object, one without prototype and one of another copy of Object', () => {
    const otherRealm = Object.create(Object.create(null) as object) as object
    for (const fine of [{ max: 1, initial: undefined }, {}, Object.create(null), otherRealm]) {
      expect(() => checkOptions(fine, options, 'here')).not.toThrow()
    }
  })

  it('does not take a name that every object has for an allowed option', () => {
    expect(messageOf(() => checkOptions({ toString: 1 }, options, 'here'))).toContain('"toString"')
    expect(messageOf(() => checkOptions({ constructor: 1 }, options, 'here'))).toContain('"constructor"')
  })

  it.each([
    [undefined, 'undefined'],
    [null, 'null'],
    [[], 'an array'],
    [new Map(), 'an object'],
    [() => 1, 'a function'],
    ['patient', '"patient"'],
    [3, '3'],
    [Symbol('s'), 'a symbol'],
  ])('refuses %s in place of a plain object', (value, name) => {
    const message = messageOf(() => checkOptions(value, options, 'here'))
    expect(message).toContain(`not ${name}.`)
    expect(message).toContain('maxAttempts')
  })
})

describe('shown', () => {
  it('keeps a long or hostile text short and on one line', () => {
    const text = shown(`a\n"${'x'.repeat(10_000)}`)
    expect(text.length).toBeLessThan(80)
    expect(text).not.toContain('\n')
  })

  it.each([
    ['a C1 control character that begins a sequence of a terminal', 'a\u009b31mb', String.raw`"a\u009b31mb"`],
    ['DEL', 'a\u007fb', String.raw`"a\u007fb"`],
    ['a bidi override', 'a\u202eb', String.raw`"a\u202eb"`],
    ['a bidi isolate', 'a\u2066b', String.raw`"a\u2066b"`],
    ['a zero-width space', 'a\u200bb', String.raw`"a\u200bb"`],
    ['a line separator', 'a\u2028b', String.raw`"a\u2028b"`],
    ['a tag character', 'a\u{e0041}b', String.raw`"a\udb40\udc41b"`],
  ])('shows %s as an escape', (_, text, escaped) => {
    expect(shown(text)).toBe(escaped)
    expect(JSON.parse(escaped)).toBe(text)
    expect(messageOf(() => checkOptions({ [text]: 1 }, options, 'here'))).toContain(`no option ${escaped}.`)
  })

  it('leaves letters of any script and joined emoji as they are', () => {
    for (const text of ['注文 ٤٢', 'naïve', '👩‍🚀']) expect(shown(text)).toBe(`"${text}"`)
  })

  it('does not run code of the value', () => {
    const trap = {
      toString: () => {
        throw new Error('called')
      },
    }
    expect(shown(trap)).toBe('an object')
  })
})
