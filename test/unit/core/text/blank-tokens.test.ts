// No secret of a token leaves with a text that holds one.

import { describe, expect, it } from 'vitest'
import { blankTokens, noSecret } from '../../../../src/core/text/blank-tokens.ts'
import { readToken, tokenText } from '../../../../src/core/model/token.ts'

const runId = '019a8b6e-7c1d-7000-8f3a-5b2c9d4e6f70'
const secret = '0123456789abcdef0123456789abcdef01234567'
const seqs = [1, 12, 123, 999_999_999_999_999]
const tokens = seqs.map((seq) => tokenText({ runId, seq, secret }))
const blanked = seqs.map((seq) => tokenText({ runId, seq, secret: noSecret }))

describe('a text that holds a token', () => {
  it.each([
    ['alone', (token: string) => token],
    ['in an address', (token: string) => `https://shop.example/approve?token=${token}&by=Ada`],
    ['in a path', (token: string) => `https://shop.example/approve/${token}/yes`],
    ['between letters', (token: string) => `tok_${token}_end`],
    ['after a line break that JSON has escaped', (token: string) => JSON.stringify(`Click:\n${token}\tor not`)],
    ['after much that looks like one', (token: string) => `${'MDE5YThiNmUt'.repeat(20)}${token}${'Z'.repeat(300)}`],
  ])('loses its secret and nothing else: %s', (_, within) => {
    tokens.forEach((token, at) => {
      expect(blankTokens(within(token))).toBe(within(blanked[at] ?? ''))
    })
  })

  it('loses all of several, also of those that touch', () => {
    expect(blankTokens(tokens.join(' '))).toBe(blanked.join(' '))
    expect(blankTokens(tokens.join(''))).toBe(blanked.join(''))
  })

  it('keeps the form: what is left is read as a token without a secret', () => {
    expect(readToken(blankTokens(tokens[0] ?? ''))).toEqual({ runId, seq: 1, secret: noSecret })
    expect(blankTokens(blanked.join())).toBe(blanked.join())
  })
})

describe('any other text', () => {
  it.each([
    ['nothing', ''],
    ['the id of a run', runId],
    ['a part of a token', (tokens[0] ?? '').slice(0, 100)],
    ['a megabyte of letters', 'MDE5YThi'.repeat(131_072)],
  ])('stays as it is: %s', (_, text) => {
    expect(blankTokens(text)).toBe(text)
  })
})
