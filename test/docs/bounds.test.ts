// The README names the bounds of a value and of a duration: here the sentence is compared with what the code takes.

import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { jsonCodec } from 'holdfast'
import { toMs } from '../../src/core/definition/duration.ts'

const sentence = /A value takes (\d+) MiB\s+of text and (\d+) levels at most, a duration\s+(\d+) years/
const [, mebibytes, levels, years] = sentence.exec(readFileSync('README.md', 'utf8'))?.map(Number) ?? []

const place = { namespace: '', runId: 'r', seq: 1, kind: 'started', name: null, id: '' } as const
const encode = (value: unknown): string => jsonCodec().encode(value, place)

it('a value takes as many bytes as the README says, and not one more', () => {
  const most = (mebibytes ?? 0) * 1024 * 1024 - '""'.length
  expect(encode('x'.repeat(most))).toHaveLength(most + 2)
  expect(() => encode('x'.repeat(most + 1))).toThrow(/bytes/)
})

it('a value takes as many levels as the README says, and not one more', () => {
  const nested = (depth: number): unknown => (depth === 0 ? 1 : [nested(depth - 1)])
  expect(encode(nested(levels ?? 0))).toContain('1')
  expect(() => encode(nested((levels ?? 0) + 1))).toThrow(/deep/)
})

it('a duration takes as many years as the README says, and not a day more', () => {
  const days = (years ?? 0) * 365.25
  expect(toMs(`${days} days`, 'a duration')).toBe(days * 86_400_000)
  expect(() => toMs(`${days + 1} days`, 'a duration')).toThrow(`over ${years} years`)
})
