// No secret of a completion token leaves with a text that holds one.

import { describe, expect, it } from 'vitest'
import { blankCompletionTokens, noSecret } from '../../../../src/core/completion/blank-completion-tokens.ts'
import { readCompletionToken, completionTokenText } from '../../../../src/core/completion/completion-token.ts'

const runId = '019a8b6e-7c1d-7000-8f3a-5b2c9d4e6f70'
const secret = '0123456789abcdef0123456789abcdef01234567'
const seqs = [1, 12, 123, 999_999_999_999_999]
const tokens = seqs.map((seq) => completionTokenText({ runId, seq, secret }))
const blanked = seqs.map((seq) => completionTokenText({ runId, seq, secret: noSecret }))

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
      expect(blankCompletionTokens(within(token))).toBe(within(blanked[at] ?? ''))
    })
  })

  it('loses all of several, also of those that touch', () => {
    expect(blankCompletionTokens(tokens.join(' '))).toBe(blanked.join(' '))
    expect(blankCompletionTokens(tokens.join(''))).toBe(blanked.join(''))
  })

  it('keeps the form: what is left is read as a token without a secret', () => {
    expect(readCompletionToken(blankCompletionTokens(tokens[0] ?? ''))).toEqual({ runId, seq: 1, secret: noSecret })
    expect(blankCompletionTokens(blanked.join())).toBe(blanked.join())
  })
})

describe('any other text', () => {
  it.each([
    ['nothing', ''],
    ['the id of a run', runId],
    ['a part of a token', (tokens[0] ?? '').slice(0, 100)],
    ['a megabyte of letters', 'MDE5YThi'.repeat(131_072)],
  ])('stays as it is: %s', (_, text) => {
    expect(blankCompletionTokens(text)).toBe(text)
  })
})
