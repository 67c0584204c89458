// What people write to name something: stores, files, durations, texts that are shown.

import { checkStore, shownStore } from '../../src/cli/input/store-address.ts'
import { parseInput } from '../../src/cli/input/json-input.ts'
import { parseDuration } from '../../src/core/definition/duration.ts'
import { harmlessJson, visible } from '../../src/core/text/printable.ts'
import { pathOf } from '../../src/stores/sqlite/driver/file-address.ts'
import { parseLibsql } from '../../src/stores/turso/address.ts'
import { fc } from '../support/properties.ts'
import { hostileText, hostileTexts, mutated } from './hostile-text.ts'
import { allowing, holds, target, type Target } from './target.ts'

/** Must never be repeated in a message, or shown. */
const password = 'HUSHhush1234'

const schemes = [
  'sqlite:',
  'turso:',
  'libsql:',
  'libsql://',
  'postgres://',
  'postgresql:',
  'memory:',
  'file:',
  'sqlite:file:',
  'libsql:file://',
  '',
]
const whole = [
  'sqlite:app.db',
  'sqlite:file:///var/lib/app.db',
  `libsql://shop.turso.io?authToken=${password}`,
  `libsql://user:${password}@shop.turso.io:8080/path?tls=0`,
  `postgres://app:${password}@db.example.com:5432/app?sslmode=verify-full`,
]
const address = fc.oneof(
  fc.tuple(fc.constantFrom(...schemes), hostileText).map((parts) => parts.join('')),
  mutated(fc.constantFrom(...whole)),
  hostileText,
)

/** What was thrown, if it was an error of use. */
function refusal(work: () => unknown): string {
  let message = ''
  allowing(['INVALID_OPTION', 'STORE_UNKNOWN'], () => {
    try {
      work()
    } catch (error) {
      message = JSON.stringify([String(error), (error as { readonly details?: unknown }).details])
      throw error
    }
  })
  return message
}

const addresses = target({
  name: 'store addresses',
  perMillion: 80_000,
  cases: address,
  corpus: [
    ...hostileTexts,
    ...whole,
    ...schemes,
    'sqlite:file:%',
    `libsql://shop.turso.io?authToken${password}`,
    'libsql:file:////evil/x',
    'toString:x',
    '__proto__:x',
  ],
  run(drawn) {
    const shown = shownStore(drawn)
    const messages = [
      refusal(() => parseLibsql(`libsql:${drawn.replace(/^libsql:/, '')}`)),
      refusal(() => checkStore(drawn, 'any', '/nowhere')),
      refusal(() => checkStore(drawn, 'existing', '/nowhere')),
    ]
    holds(visible(shown) === shown, 'An address is shown with what a terminal would obey')
    // A file has no password: whatever is in its name is part of the name.
    const isServer = /^(?:libsql:\/\/|postgres)/.test(drawn)
    if (isServer) holds(![shown, ...messages].join('').includes(password), 'A password was repeated')
    const checked = allowing(['INVALID_OPTION', 'STORE_UNKNOWN'], () => checkStore(drawn, 'any', '/nowhere'))
    if (checked !== undefined) holds(checkStore(checked, 'any', '/nowhere') === checked, 'Read again, it is another')
  },
})

const files = target({
  name: 'file addresses',
  perMillion: 50_000,
  cases: fc.oneof(
    hostileText,
    fc
      .tuple(fc.constantFrom('file:', 'file://', 'file:///', 'file://localhost/'), hostileText)
      .map((parts) => parts.join('')),
  ),
  corpus: hostileTexts,
  run(drawn) {
    const path = allowing(['INVALID_OPTION'], () => pathOf(drawn))
    if (path === undefined) return
    holds(!path.startsWith('file:') && path !== '' && !path.includes('\0'), 'A driver would read it otherwise')
    holds(pathOf(path) === path, 'Read again, it is another')
  },
})

const durations = target({
  name: 'durations',
  perMillion: 40_000,
  cases: fc.oneof(hostileText, mutated(fc.constantFrom('5m', '1.5 hours', '2 days', '250ms'))),
  corpus: hostileTexts,
  run(drawn) {
    const ms = allowing(['INVALID_DURATION'], () => parseDuration(drawn, 'It'))
    if (ms !== undefined) holds(Number.isSafeInteger(ms) && ms >= 0, `It is ${ms} ms`)
  },
})

const typed = target({
  name: 'JSON that a person typed',
  perMillion: 30_000,
  cases: fc.oneof(hostileText, fc.json(), mutated(fc.json())),
  corpus: hostileTexts,
  run(drawn) {
    allowing(['INVALID_INPUT'], () => parseInput(drawn, 'The input'))
  },
})

const shown = target({
  name: 'texts that are shown',
  perMillion: 40_000,
  cases: hostileText,
  corpus: hostileTexts,
  run(drawn) {
    const line = visible(drawn)
    holds(!/[\p{Cc}\p{Zl}\p{Zp}\u202A-\u202E\u2066-\u2069\u200B\uFEFF]/u.test(line), 'A terminal would obey it')
    holds(visible(line) === line, 'Shown twice is not shown once')
    const json = harmlessJson(JSON.stringify(drawn))
    holds(JSON.parse(json) === drawn, 'It is another value')
  },
})

export const addressTargets: readonly Target[] = [addresses, files, durations, typed, shown]
