// The poison corpus: values that have broken engines like this one, as data for any test that moves values around.
// A storable one must come back equal to `expected()` (or to the value itself); every other must be refused where it
// is written, at `path`, with a clear error, and must never reach a store.

export interface Poison {
  readonly name: string
  /** Made anew for each use: some of them change when they are read. */
  readonly value: () => unknown
  readonly storable: boolean
  /** Where the refusal points. */
  readonly path?: string
  /** What comes back, when that is not an equal value. */
  readonly expected?: () => unknown
}

export class Money {
  readonly amount = 5
}

export class Decimal {
  private readonly digits: string
  constructor(digits: string) {
    this.digits = digits
  }
  toJSON(): string {
    return this.digits
  }
}

function nested(depth: number): unknown {
  let value: unknown = 'bottom'
  for (let level = 0; level < depth; level++) value = { inner: value }
  return value
}

function nestedArrays(depth: number): unknown {
  let value: unknown = []
  for (let level = 1; level < depth; level++) value = [value]
  return value
}

function cyclic(): unknown {
  const order: Record<string, unknown> = { id: 1 }
  order['lines'] = [{ order }]
  return order
}

/** 2 ** 60 strings in 60 small arrays. */
function bomb(): unknown {
  let value: unknown = 'ha'
  for (let level = 0; level < 60; level++) value = [value, value]
  return value
}

function errorBomb(): unknown {
  let error = new Error('innermost')
  for (let level = 0; level < 60; level++) {
    error = Object.assign(new Error('outer'), { left: [error, () => 1], right: [error, () => 1] })
  }
  return { error }
}

function readOnce(): unknown {
  let reads = 0
  return {
    get count() {
      reads++
      return reads === 1 ? 'first' : () => 'second'
    },
  }
}

export function throwing(): never {
  throw new Error('boom')
}

const texts: readonly Poison[] = [
  ['an empty string', ''],
  ['a megabyte of id', 'x'.repeat(1_000_000)],
  ['a path that climbs', '../../etc/passwd'],
  ['an encoded slash', '..%2f..%2f'],
  ['quotes and a comment', `'; DROP TABLE run; --"`],
  ['right-to-left and zero-width characters', '\u202Eabc\u200B\uFEFF'],
  ['NUL', 'a\u0000b'],
  ['control characters', '\u0001\u001B[2J\u007F\u2028\u2029'],
  ['an escape sequence of a terminal', '\u001B[2J'],
  ['a lone high surrogate', 'a\uD800b'],
  ['a lone low surrogate', '\uDC00'],
  ['an emoji', '👩‍👩‍👧'],
  ['text that looks like a tag', '{"$date":"2020-01-01T00:00:00.000Z"}'],
  ['text that looks like a kept reference', 'offload:somewhere'],
].map(([name, text]) => ({ name: name!, value: () => text, storable: true }))

const keys: readonly Poison[] = [
  '',
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
  'length',
  '0',
  'a.b',
  '$',
  '$$',
  '$date',
  '$$date',
  '$error',
  '$undefined',
  '$unknown',
  '\uD800',
  'then',
  'toJSON',
].flatMap((key) => [
  { name: `an object with the one key ${JSON.stringify(key)}`, value: () => ({ [key]: { deep: 1 } }), storable: true },
  { name: `an object with ${JSON.stringify(key)} among others`, value: () => ({ a: 1, [key]: 'x' }), storable: true },
])

const scalars: readonly Poison[] = [
  ['undefined', undefined],
  ['null', null],
  ['NaN', Number.NaN],
  ['Infinity', Number.POSITIVE_INFINITY],
  ['-Infinity', Number.NEGATIVE_INFINITY],
  ['-0', -0],
  ['the largest number', Number.MAX_VALUE],
  ['the smallest number', Number.MIN_VALUE],
  ['an unsafe integer', 2 ** 53 + 2],
  ['a bigint', 2n ** 200n],
  ['a negative bigint', -1n],
].flatMap(([name, value]) => [
  { name: String(name), value: () => value, storable: true },
  { name: `${String(name)} inside`, value: () => ({ list: [value], value }), storable: true },
])

const shapes: readonly Poison[] = [
  { name: 'a date', value: () => new Date(0), storable: true },
  { name: 'the last date', value: () => ({ at: new Date(8.64e15) }), storable: true },
  { name: 'a date before Christ', value: () => new Date(-8.64e15), storable: true },
  { name: 'bytes', value: () => Uint8Array.from([0, 255, 128, 10]), storable: true },
  { name: 'a Buffer', value: () => Buffer.from('€'), storable: true, expected: () => Uint8Array.of(0xe2, 0x82, 0xac) },
  {
    name: 'a Map with odd keys',
    value: () =>
      new Map<unknown, unknown>([
        [{ a: 1 }, 1],
        [null, -0],
        ['k', new Map()],
      ]),
    storable: true,
  },
  {
    name: 'a Set with odd members',
    value: () => new Set<unknown>([Number.NaN, undefined, new Set([1n])]),
    storable: true,
  },
  // oxlint-disable-next-line no-sparse-arrays
  { name: 'an array with holes', value: () => ({ list: [1, , 3] }), storable: false, path: '$.list[1]' },
  {
    name: 'what a regular expression matched',
    value: () => [/(?<y>\d+)/.exec('a1')],
    storable: false,
    path: '$[0].index',
  },
  {
    name: 'an array with a property in place of an element',
    // oxlint-disable-next-line no-sparse-arrays
    value: () => Object.assign([1, , 3], { total: 4 }),
    storable: false,
    path: '$[1]',
  },
  {
    name: 'an empty array with a property',
    value: () => Object.assign([], { total: 0 }),
    storable: false,
    path: '$.total',
  },
  { name: 'an array of undefined', value: () => [undefined, undefined], storable: true },
  { name: 'a property that is undefined', value: () => ({ a: undefined }), storable: true },
  {
    name: 'the same object twice',
    value: () => {
      const one = { a: 1 }
      return [one, one, { one }]
    },
    storable: true,
  },
  {
    name: 'an object without prototype',
    value: () => Object.assign(Object.create(null) as object, { a: 1 }),
    storable: true,
    expected: () => ({ a: 1 }),
  },
  {
    name: 'a URL',
    value: () => ({ at: new URL('https://example.com/a') }),
    storable: true,
    expected: () => ({ at: 'https://example.com/a' }),
  },
  { name: 'a class with toJSON', value: () => [new Decimal('0.1')], storable: true, expected: () => ['0.1'] },
  {
    name: 'a toJSON that is not enumerable',
    value: () => Object.defineProperty({ a: 1 }, 'toJSON', { value: () => 'converted' }),
    storable: true,
    expected: () => 'converted',
  },
  {
    name: 'a toJSON that returns a date',
    value: () => ({ toJSON: () => new Date(0) }),
    storable: true,
    expected: () => new Date(0),
  },
  { name: 'a getter that shows two faces', value: readOnce, storable: true, expected: () => ({ count: 'first' }) },
  { name: 'a frozen object', value: () => Object.freeze({ a: Object.freeze([-0]) }), storable: true },
  { name: 'a proxy of a plain object', value: () => new Proxy({ a: 1 }, {}), storable: true },
  { name: 'an error', value: () => new RangeError('no', { cause: new Error('why') }), storable: true },
  { name: 'as deep as allowed', value: () => nestedArrays(200), storable: true },
]

const refused: readonly Poison[] = [
  { name: 'a function', value: () => () => 1, storable: false, path: '$' },
  {
    name: 'a function deep inside',
    value: () => ({ items: [0, 1, 2, { price: () => 1 }] }),
    storable: false,
    path: '$.items[3].price',
  },
  {
    name: 'a function under an odd key',
    value: () => ({ 'a b': { '': () => 1 } }),
    storable: false,
    path: '$["a b"][""]',
  },
  {
    name: 'a function in a Map',
    value: () => ({ map: new Map([['k', { f: () => 1 }]]) }),
    storable: false,
    path: '$.map.get("k").f',
  },
  { name: 'a function as key of a Map', value: () => new Map([[() => 1, 1]]), storable: false, path: '$.keys()[0]' },
  { name: 'a function in a Set', value: () => [new Set([1, () => 1])], storable: false, path: '$[0].values()[1]' },
  { name: 'a class', value: () => ({ Money }), storable: false, path: '$.Money' },
  { name: 'a symbol', value: () => ({ id: Symbol('id') }), storable: false, path: '$.id' },
  { name: 'a promise', value: () => ({ later: Promise.resolve(1) }), storable: false, path: '$.later' },
  { name: 'a thenable', value: () => [{ then: () => 1 }], storable: false, path: '$[0]' }, // oxlint-disable-line no-thenable
  { name: 'a class instance', value: () => ({ price: new Money() }), storable: false, path: '$.price' },
  { name: 'a regular expression', value: () => /a/, storable: false, path: '$' },
  { name: 'a WeakMap', value: () => new WeakMap(), storable: false, path: '$' },
  { name: 'a generator', value: () => [(function* () {})()], storable: false, path: '$[0]' },
  { name: 'another typed array', value: () => ({ samples: new Float64Array(2) }), storable: false, path: '$.samples' },
  { name: 'a boxed string', value: () => ({ text: Object('x') as unknown }), storable: false, path: '$.text' },
  {
    name: 'a liar about its tag',
    value: () =>
      new (class Liar {
        get [Symbol.toStringTag]() {
          return 'Map'
        }
      })(),
    storable: false,
    path: '$',
  },
  { name: 'an invalid date', value: () => ({ at: [new Date(Number.NaN)] }), storable: false, path: '$.at[0]' },
  { name: 'a cycle', value: cyclic, storable: false, path: '$.lines[0].order' },
  {
    name: 'a Map that contains itself',
    value: () => {
      const map = new Map()
      map.set('me', map)
      return map
    },
    storable: false,
    path: '$.get("me")',
  },
  { name: 'a toJSON that throws', value: () => ({ price: { toJSON: throwing } }), storable: false, path: '$.price' },
  {
    name: 'a toJSON that returns itself',
    value: () => ({
      toJSON() {
        return this
      },
    }),
    storable: false,
    path: '$',
  },
  {
    name: 'a toJSON without end',
    value: () => {
      const next = (): object => ({ toJSON: next })
      return next()
    },
    storable: false,
    path: '$',
  },
  {
    name: 'a getter that throws',
    value: () => ({
      a: {
        get b() {
          return throwing()
        },
      },
    }),
    storable: false,
    path: '$.a.b',
  },
  {
    name: 'an error whose message throws',
    value: () => ({ error: Object.defineProperty(new Error(), 'message', { get: throwing }) }),
    storable: false,
    path: '$.error.message',
  },
  {
    name: 'a revoked proxy',
    value: () => {
      const { proxy, revoke } = Proxy.revocable({}, {})
      revoke()
      return { proxy }
    },
    storable: false,
    path: '$.proxy',
  },
  { name: 'one level too deep', value: () => nestedArrays(201), storable: false, path: `$${'[0]'.repeat(200)}` },
  { name: 'depth 5,000', value: () => nested(5000), storable: false, path: `$${'.inner'.repeat(200)}` },
  { name: 'depth 100,000', value: () => nested(100_000), storable: false, path: `$${'.inner'.repeat(200)}` },
  { name: '300 MB of text', value: () => ({ body: 'x'.repeat(300_000_000) }), storable: false, path: '$.body' },
  { name: 'text too large only in UTF-8', value: () => ['é'.repeat(600_000)], storable: false, path: '$' },
  {
    name: 'bytes too large only in base64',
    value: () => ({ file: new Uint8Array(900_000) }),
    storable: false,
    path: '$.file',
  },
  {
    name: 'an array of nothing but holes',
    value: () => Object.assign([], { length: 4_000_000_000 }),
    storable: false,
    path: '$[0]',
  },
  { name: 'a graph that unfolds without end', value: bomb, storable: false, path: '$' },
  { name: 'an error that unfolds without end', value: errorBomb, storable: false, path: '$' },
]

export const poison: readonly Poison[] = [...texts, ...keys, ...scalars, ...shapes, ...refused]
