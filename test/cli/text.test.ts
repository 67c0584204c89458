import { describe, expect, it } from 'vitest'
import {
  amount,
  cut,
  displayed,
  padEnd,
  padStart,
  painter,
  pointInTime,
  table,
  widthOf,
} from '../../src/cli/output/text.ts'
import { shownStore } from '../../src/cli/input/store-address.ts'
import type { Output } from '../../src/cli/io.ts'

const output = (isTerminal: boolean): Output => ({ isTerminal, columns: 80, write: async () => undefined })
const plain = (_: unknown, text: string): string => text

describe('the width of text', () => {
  it('counts columns of the screen, not code units', () => {
    expect(widthOf('order')).toBe(5)
    expect(widthOf('Grüße')).toBe(5)
    expect(widthOf('e\u0301')).toBe(1)
    expect(widthOf('注文')).toBe(4)
    expect(widthOf('👩‍👩‍👧')).toBe(2)
  })

  it('cuts to what fits, and never through the middle of a character', () => {
    expect(cut('shop.order', 10)).toBe('shop.order')
    expect(cut('shop.order', 6)).toBe('shop.…')
    expect(cut('注文注文', 5)).toBe('注文…')
    expect(cut('👩‍👩‍👧👩‍👩‍👧', 3)).toBe('👩‍👩‍👧…')
    expect(cut('x'.repeat(1_000_000), 4)).toBe('xxx…')
    expect(cut('x', 0)).toBe('')
    for (let columns = 1; columns < 12; columns += 1) {
      expect(widthOf(cut('注文 shop 👩‍👩‍👧', columns))).toBeLessThanOrEqual(columns)
    }
  })

  it('pads by columns', () => {
    expect(padEnd('注', 4)).toBe('注  ')
    expect(padStart('注', 4)).toBe('  注')
    expect(padEnd('long', 2)).toBe('long')
  })
})

describe('a table', () => {
  const columns = [{ title: 'RUN' }, { title: 'TYPE', least: 6 }, { title: 'KEY', least: 3 }]
  const rows = [
    ['0123456789', 'billing.subscription.renew', 'customer-1234567890'],
    ['abcdefghij', 'mail', ''],
  ]

  it('is as wide as its text where there is room', () => {
    expect(table(columns, rows, Infinity, plain)).toEqual([
      'RUN         TYPE                        KEY',
      '0123456789  billing.subscription.renew  customer-1234567890',
      'abcdefghij  mail',
    ])
  })

  it('cuts the columns that have most to spare, and never one that may not be cut', () => {
    expect(table(columns, rows, 40, plain)).toEqual([
      'RUN         TYPE            KEY',
      '0123456789  billing.subsc…  customer-12…',
      'abcdefghij  mail',
    ])
    for (const width of [5, 20, 24, 30, 50]) {
      const lines = table(columns, rows, width, plain)
      expect(lines[1]).toContain('0123456789')
      for (const line of lines) expect(widthOf(line)).toBeLessThanOrEqual(Math.max(width, 10 + 2 + 6 + 2 + 3))
    }
  })
})

describe('a table with columns that may be left out', () => {
  const columns = [
    { title: 'RUN' },
    { title: 'KEY', least: 4, dispensable: 1 },
    { title: 'TOOK', dispensable: 3 },
    { title: 'ERROR', least: 8, dispensable: 2 },
  ]
  const rows = [['0123456789', 'order-42', '2 s', 'the bank did not answer']]
  const titles = (width: number): string | undefined => table(columns, rows, width, plain)[0]?.replaceAll(/ +/g, ' ')

  it('leaves out the least needed first, but keeps what fits', () => {
    expect(titles(Infinity)).toBe('RUN KEY TOOK ERROR')
    expect(titles(32)).toBe('RUN KEY TOOK ERROR')
    expect(titles(31)).toBe('RUN KEY ERROR')
    expect(titles(25)).toBe('RUN KEY TOOK')
    expect(titles(17)).toBe('RUN KEY')
    expect(titles(10)).toBe('RUN')
  })
})

describe('colours', () => {
  const isColoured = (isTerminal: boolean, env: Record<string, string>): boolean =>
    painter(output(isTerminal), env)('red', 'x') !== 'x'

  it('are for terminals only, and NO_COLOR, FORCE_COLOR and a dumb terminal are heeded', () => {
    expect(isColoured(true, {})).toBe(true)
    expect(isColoured(false, {})).toBe(false)
    expect(isColoured(true, { NO_COLOR: '1' })).toBe(false)
    expect(isColoured(true, { NO_COLOR: '' })).toBe(true)
    expect(isColoured(true, { TERM: 'dumb' })).toBe(false)
    expect(isColoured(false, { FORCE_COLOR: '1' })).toBe(true)
    expect(isColoured(true, { FORCE_COLOR: '0' })).toBe(false)
  })

  it('end where the text ends', () => {
    expect(displayed(painter(output(true), {})('red', 'x'))).toBe('\u001B[31mx\u001B[39m')
  })

  it('are only ours: those of data are shown, and so is whatever else a terminal would obey', () => {
    const forged = '\u001B[31mFORGED\u001B[39m\n\u001B[8m\u001B]52;c;x\u0007'
    const shown = String.raw`\x1b[31mFORGED\x1b[39m\n\x1b[8m\x1b]52;c;x\x07`
    expect(displayed(forged)).toBe(shown)
    expect(displayed(`${forged}${painter(output(true), {})('red', forged)}`)).toBe(
      `${shown}\u001B[31m${shown}\u001B[39m`,
    )
  })
})

describe('words', () => {
  it('say one and many', () => {
    expect(amount(1, 'run')).toBe('1 run')
    expect(amount(4_980, 'entry', 'entries')).toBe('4,980 entries')
  })

  it('say when, to the second or exactly', () => {
    expect(pointInTime(new Date(Date.UTC(2026, 10, 16, 0, 12, 1)))).toBe('2026-11-16 00:12:01Z')
    expect(pointInTime(new Date(Date.UTC(2026, 10, 16, 0, 12, 1, 7)), { isExact: true })).toBe(
      '2026-11-16 00:12:01.007Z',
    )
    expect(pointInTime(new Date(8.64e15))).toBe('+275760-09-13 00:00:00Z')
  })
})

describe('the address of a Postgres store', () => {
  it.each([
    ['postgres://ada:secret@db.internal:5433/shop?sslmode=require', 'postgres://db.internal:5433/shop'],
    ['postgresql://localhost/shop', 'postgres://localhost/shop'],
    ['postgres://ada:sec/ret@db/shop', 'postgres:'],
    ['postgres://ada:12/ret@db/shop', 'postgres:'],
    ['postgres://ada:12?ret@db/shop', 'postgres:'],
    ['postgres://ada:se@cret@db/shop', 'postgres:'],
  ])('%s is shown without its password', (address, shown) => {
    expect(shownStore(address)).toBe(shown)
  })
})
