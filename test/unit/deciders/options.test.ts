// What a decider is refused for when it is defined, and how instances get their names.

import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { decider, decision, reject, type Rejected } from '../../../src/deciders/index.ts'
import { create, order } from './order.ts'

type Input = { readonly type: 'Add'; readonly id: string } | { readonly type: 'Late' }

const base = {
  initial: () => 0,
  evolve: (count: number, _event: { type: 'Added' }) => count + 1,
  decide: (_count: number, _input: Input) => decision({ type: 'Added' }),
  id: { Add: 'id', Late: null },
} as const

/** A definition with options that the compiler would refuse. */
function define(options: Readonly<Record<string, unknown>>, type = 'list') {
  return () => decider(type, { ...base, ...options })
}

describe('the id of an instance', () => {
  it('IF-A2 is read from a field of the input, by a function, or as each type of input says', () => {
    expect(order.model.idOf(create)).toBe('1')
    expect(decider('a', { ...base, id: (input) => `${input.type}!` }).model.idOf({ type: 'Late' })).toBe('Late!')
    const each = decider('b', { ...base, id: { Add: ({ id }) => id.toUpperCase(), Late: null } }).model
    expect(each.idOf({ type: 'Add', id: 'x' })).toBe('X')
  })

  const refused: readonly (readonly [unknown, string])[] = [
    [{ type: 'Late' }, 'comes from its timers and effects only'],
    [{ type: 'Add' }, 'must be printable text of 1 to 400 characters. Got undefined. It was read from an input "Add"'],
    [{ type: 'Add', id: 7 }, 'Got 7'],
    [{ type: 'Ad', id: '1' }, 'has no id for an input "Ad". Did you mean "Add"?'],
    [{ type: 'toString', id: '1' }, 'has no id for an input "toString"'],
    ['Add', 'must be an object with a type. Got "Add"'],
    [null, 'Got null'],
    [{ id: '1' }, 'Got an object without a type'],
    [{ type: 7 }, 'Got an object whose type is 7'],
  ]
  it.each(refused)('IF-A3 is missing in %j: the input is refused', (input, why) => {
    const { model } = decider('list', base)
    expect(() => model.idOf(input)).toThrow(expect.objectContaining({ code: 'INVALID_INPUT' }) as Error)
    expect(() => model.idOf(input)).toThrow(why)
  })

  it('that a function fails to read is refused, too', () => {
    const { model } = decider('a', {
      ...base,
      id: () => {
        throw new Error('No id here')
      },
    })
    expect(() => model.idOf({ type: 'Late' })).toThrow('failed for an input "Late": No id here')
  })
})

describe('the unique key', () => {
  it('IF-U3 is read from the first input, and may be null', () => {
    expect(order.model.uniqueKeyOf(create)).toBe('ada')
    expect(order.model.uniqueKeyOf({ type: 'Late' })).toBeNull()
    expect(decider('list', base).model.uniqueKeyOf({ type: 'Late' })).toBeNull()
  })

  it('that is no text, or whose function throws, refuses the input', () => {
    const odd = define({ uniqueKey: () => 7 })().model
    expect(() => odd.uniqueKeyOf({ type: 'Late' })).toThrow(
      'has no unique key for an input "Late": The result of uniqueKey',
    )
  })
})

describe('a decider', () => {
  it('IF-A6 is a definition without a frame, whose runs are in the feed', () => {
    expect(order).toMatchObject({ type: 'order', version: 1, style: 'decider', feed: true, tags: [] })
  })

  it('checks inputs of callers with its schema, and otherwise only that they have a type', async () => {
    const checked = decider('checked', {
      ...base,
      input: z.object({ type: z.literal('Add'), id: z.string().trim() }),
      decide: () => decision({ type: 'Added' }),
      id: 'id',
    })
    expect(await checked.validate({ type: 'Add', id: ' 1 ' })).toEqual({ type: 'Add', id: '1' })
    expect(() => checked.validate({ type: 'Add' })).toThrow('does not fit its schema')
    expect(() => order.validate(7)).toThrow('must be an object with a type')
  })

  it('IF-A12 may have no effects at all', () => {
    const { model } = decider('list', base)
    expect(model.effectTypes).toEqual([])
    expect(model.effect('mail')).toBeUndefined()
  })

  const wrong: readonly (readonly [string, Readonly<Record<string, unknown>>, string])[] = [
    ['a misspelt option', { isTerminall: () => true }, 'Did you mean "isTerminal"?'],
    ['orderBy in the wrong place', { orderBy: () => '' }, 'It belongs to a type of effect'],
    ['no decide', { decide: undefined }, 'decide of decider "list" must be a function'],
    ['no id', { id: undefined }, 'The id of decider "list" must be the name of a field'],
    ['an empty id', { id: {} }, 'The id of decider "list"'],
    ['an id that is neither', { id: { Add: 7 } }, 'The id of decider "list"'],
    ['isTerminal that is no function', { isTerminal: true }, 'isTerminal of decider "list" must be a function'],
    ['effects that are no object', { effects: [] }, 'effects of decider "list" must have a handler'],
    ['an effect that is no handler', { effects: { a: 7 } }, 'effect "a" of decider "list" must be a plain object'],
    ['an effect without perform', { effects: { a: {} } }, 'perform of effect "a"'],
    ['an effect with a # in its type', { effects: { 'a#1': () => undefined } }, '# separates'],
    [
      'a wrong policy of an effect',
      { effects: { a: { perform: () => undefined, retry: { maxAttempts: 0 } } } },
      'maxAttempts',
    ],
    ['a wrong version', { version: 0 }, 'The version of decider "list"'],
    ['a wrong snapshotEvery', { snapshotEvery: 0 }, 'The snapshotEvery of decider "list"'],
    ['dedup without a time', { dedup: { last: 5 } }, 'needs both last and within'],
    ['dedup of too many', { dedup: { last: 10_001, within: '1h' } }, 'at most 10,000'],
    ['a schema that is none', { event: {} }, 'Standard Schema'],
  ]
  it.each(wrong)('with %s is refused where it is defined', (_what, options, why) => {
    expect(define(options)).toThrow(why)
  })

  it('has effects whose names and its own have 200 characters at most together', () => {
    const effects = (length: number) => ({ effects: { ['x'.repeat(length)]: () => undefined } })
    expect(define(effects(195), 'list')).not.toThrow()
    expect(define(effects(196), 'list')).toThrow('may have 200 characters. They have 201')
    expect(define(effects(196), 'list')).toThrow(expect.objectContaining({ code: 'INVALID_NAME' }) as Error)
  })

  it.each(['', 'a b', '#a', 'x'.repeat(201)])('cannot be called %j', (type) => {
    expect(define({}, type)).toThrow(expect.objectContaining({ code: 'INVALID_NAME' }) as Error)
  })
})

describe('a decision', () => {
  it('IF-A5 IF-A6 keeps what it asks for in order, and is not changed by asking for more', () => {
    const first = decision({ type: 'A' }, { type: 'A' })
    const more = first
      .effect({ type: 'mail' })
      .timer({ after: '1s' }, { type: 'Late' })
      .timer('key', { at: new Date(5) }, { type: 'Late' })
      .cancelTimer('key')
      .start('ship', { id: 1 }, { key: 'k' })
      .signal('run', 'go', 1)
    expect(first.requests).toEqual([])
    expect(more.events).toEqual([{ type: 'A' }, { type: 'A' }])
    expect(more.requests).toEqual([
      { kind: 'effect', effect: { type: 'mail' } },
      { kind: 'timer', key: null, when: { after: '1s' }, input: { type: 'Late' } },
      { kind: 'timer', key: 'key', when: { at: new Date(5) }, input: { type: 'Late' } },
      { kind: 'cancel-timer', key: 'key' },
      { kind: 'start', workflow: 'ship', input: { id: 1 }, options: { key: 'k' } },
      { kind: 'signal', to: 'run', name: 'go', payload: 1 },
    ])
  })

  it('IF-A15 that rejects passes over what is asked for after it', () => {
    const rejected: Rejected<'no'> = reject('no')
    expect(rejected.effect({ type: 'mail' }).timer('a').cancelTimer('a').start('b').signal('c')).toBe(rejected)
    expect(rejected.value).toBe('no')
  })
})
