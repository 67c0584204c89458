// Payloads as the database gives them back, and values as user code hands them over.

import { randomBytes } from 'node:crypto'
import { blankCompletionTokens } from '../../src/core/completion/blank-completion-tokens.ts'
import { jsonCodec, type Place } from '../../src/core/payload/codec.ts'
import { Payloads } from '../../src/core/payload/payload.ts'
import { readCompletionToken, completionTokenText } from '../../src/core/completion/completion-token.ts'
import { encryptingCodec } from '../../src/encryption/index.ts'
import { poison } from '../poison.ts'
import { fc } from '../support/properties.ts'
import { hostileText, hostileTexts, mutated, someId } from './hostile-text.ts'
import { allowing, allowingLater, holds, target, type Target } from './target.ts'

const place = { runId: someId, seq: 1, name: null } as Place
const codec = jsonCodec()
const encrypted = encryptingCodec({ keys: { k1: randomBytes(32) }, current: 'k1' })

const tags = ['$date', '$bigint', '$bytes', '$map', '$set', '$error', '$undefined', '$number', '$x', '$$', '$']
const tagged = fc
  .tuple(fc.constantFrom(...tags), fc.oneof(fc.jsonValue(), hostileText))
  .map(([name, content]) => JSON.stringify([{ [name]: content }]))
const written = fc.anything({ withBigInt: true, withDate: true, withMap: true, withSet: true }).map((value) => {
  try {
    return codec.encode(value, place)
  } catch {
    return '{"$error":{"name":"E","message":"m","class":["E"],"cause":{"$map":[[1,2]]},"props":{"a":1}}}'
  }
})
const text = fc.oneof(hostileText, fc.json(), tagged, written, mutated(written), mutated(tagged))

const corpus = [
  ...hostileTexts,
  ...tags.map((name) => `{"${name}":{"__proto__":null}}`),
  '{"$date":"2026-02-30T00:00:00.000Z"}',
  '{"$bytes":"===="}',
  '{"$map":[[1]]}',
  `{"$bigint":"${'9'.repeat(3_000)}"}`,
  '{"$error":{"name":"E","message":"m","class":[1]}}',
  '{"$error":{"name":"HoldfastError","message":"m","class":["HoldfastError"],"props":{"code":"toString","details":[]}}}',
  '{"\\u0024date":1}',
  '{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}',
]

function assertUnpolluted(): void {
  holds(!('polluted' in {}), 'The prototype of all objects was changed')
}

const decoder = target({
  name: 'decoder',
  perMillion: 420_000,
  cases: text,
  corpus,
  run(drawn) {
    const value = allowing(['PAYLOAD_CORRUPT'], () => codec.decode(drawn, place))
    assertUnpolluted()
    // Whatever was read can be written, or is refused as too large.
    if (value !== undefined) allowing(['NOT_STORABLE'], () => codec.encode(value, place))
  },
})

const anything = fc.anything({
  withBigInt: true,
  withBoxedValues: true,
  withDate: true,
  withMap: true,
  withNullPrototype: true,
  withObjectString: true,
  withSet: true,
  withSparseArray: true,
  withTypedArray: true,
})

const encoder = target({
  name: 'codec',
  perMillion: 150_000,
  cases: anything,
  // What is hundreds of megabytes large, or unfolds to that, is for tests of its own.
  corpus: poison.filter(({ name }) => !/unfolds|holes|MB/.test(name)).map(({ value }) => value()),
  run(drawn) {
    const encoded = allowing(['NOT_STORABLE'], () => codec.encode(drawn, place))
    if (encoded !== undefined) codec.decode(encoded, place)
    const failure = new Payloads(codec).encodeFailure(drawn, place)
    holds(typeof failure === 'string', 'A failure was not recorded')
  },
})

const keptTexts = fc.oneof(
  text,
  fc
    .tuple(fc.constantFrom('offload:', 'inline:', '\u0001plain:', '\u0000absent:'), text)
    .map((parts) => parts.join('')),
)

const asked: string[] = []
const payloads = new Payloads(codec, {
  thresholdBytes: 100,
  put: async () => 'reference',
  get: async (reference) => {
    asked.push(reference)
    return '1'
  },
})

const kept = target({
  name: 'what a journal keeps',
  perMillion: 60_000,
  cases: keptTexts,
  corpus: hostileTexts,
  async run(drawn) {
    asked.length = 0
    const fetched = await allowingLater(['STORE_UNAVAILABLE', 'PAYLOAD_CORRUPT'], async () => payloads.fetch(drawn))
    for (const reference of asked) {
      holds(/^\P{Cc}{1,2048}$/u.test(reference), 'A port was asked for what it cannot have answered')
    }
    if (fetched !== undefined) allowing(['PAYLOAD_CORRUPT'], () => payloads.decode(fetched, place))
  },
})

const sealed = fc.oneof(fc.jsonValue(), hostileText).map((value) => encrypted.encode(value, place))

const ciphertexts = target({
  name: 'ciphertext',
  perMillion: 50_000,
  cases: fc.oneof(text, mutated(sealed)),
  corpus: [...hostileTexts, 'enc1.', 'enc1.k1.', 'enc1.k1..', 'enc1.__proto__.AAAA.AAAA', 'enc1.k1.AAAA'],
  run(drawn) {
    allowing(['PAYLOAD_CORRUPT'], () => encrypted.decode(drawn, place))
    encrypted.keyOf?.(drawn)
  },
})

const secret = 'c0ffee'.padEnd(40, '1')
const token = fc.nat(1_000_000).map((seq) => completionTokenText({ runId: someId, seq: seq + 1, secret }))

const tokens = target({
  name: 'tokens',
  perMillion: 60_000,
  cases: fc.oneof(
    hostileText,
    token,
    mutated(token),
    fc.tuple(hostileText, token, hostileText).map((parts) => parts.join('')),
  ),
  corpus: hostileTexts,
  run(drawn) {
    readCompletionToken(drawn)
    const blanked = blankCompletionTokens(drawn)
    holds(blankCompletionTokens(blanked) === blanked, 'Blanking twice is not blanking once')
    for (const word of blanked.match(/[\w-]{106,124}/g) ?? []) {
      holds(readCompletionToken(word)?.secret !== secret, 'A secret was left')
    }
  },
})

export const payloadTargets: readonly Target[] = [decoder, encoder, kept, ciphertexts, tokens]
