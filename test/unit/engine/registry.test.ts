import { describe, expect, it } from 'vitest'
import type { Definition } from '../../../src/core/definition/definition.ts'
import { isHoldfastError, type HoldfastError } from '../../../src/core/errors/error.ts'
import { Registry } from '../../../src/engine/registry.ts'

function define(type: string, version = 1): Definition {
  return {
    type,
    version,
    style: 'function',
    leaseMs: null,
    feed: false,
    unique: null,
    tags: [],
    metadata: null,
    validate: (input) => input,
    open: () => {
      throw new Error('never opened here')
    },
  }
}

function errorOf(call: () => unknown): HoldfastError {
  try {
    call()
  } catch (error) {
    if (isHoldfastError(error)) return error
    throw error
  }
  throw new Error('nothing was thrown')
}

describe('Registry', () => {
  it('HE-V1 finds exactly the version that a run began with, and lists all of them, the newest last', () => {
    const versions = [define('greet', 2), define('greet', 10), define('greet', 1), define('other')]
    const registry = new Registry(versions)
    expect(registry.find('greet', 2)).toBe(versions[0])
    expect(registry.find('greet', 3)).toBeUndefined()
    expect(registry.find('nothing', 1)).toBeUndefined()
    expect(registry.versions('greet')).toEqual([1, 2, 10])
    expect(registry.get('greet', 10)).toBe(versions[1])
    expect(registry.all()).toHaveLength(4)
  })

  it('refuses two workflows with one name and version', () => {
    const error = errorOf(() => new Registry([define('greet'), define('greet')]))
    expect(error.code).toBe('WORKFLOW_EXISTS')
    expect(error.message).toContain('"greet" version 1')
  })

  it('takes one workflow that a module exports under two names', () => {
    const greet = define('greet')
    expect(new Registry([greet, greet]).all()).toEqual([greet])
  })

  it('says what was probably meant by a name that it does not know', () => {
    const registry = new Registry([define('shop.checkout'), define('shop.refund')])
    const error = errorOf(() => registry.versions('shop.chekout'))
    expect(error.code).toBe('WORKFLOW_UNKNOWN')
    expect(error.message).toContain('Did you mean "shop.checkout"?')
    expect(error.message).toContain('Registered: shop.checkout, shop.refund.')
    expect(errorOf(() => registry.versions('zzz')).message).not.toContain('Did you mean')
    expect(errorOf(() => new Registry([]).versions('greet')).message).toContain('None is registered.')
  })

  it('names ten workflows, and says how many more there are', () => {
    const names = Array.from({ length: 13 }, (_, at) => `w${at}`)
    const { message } = errorOf(() => new Registry(names.map((name) => define(name))).versions('zzz'))
    expect(message).toContain(`Registered: ${names.slice(0, 10).join(', ')}, and 3 more.`)
  })

  it('does not suggest the very name that was given when only the version is unknown', () => {
    const registry = new Registry([define('greet', 1), define('greet', 2)])
    expect(errorOf(() => registry.get('greet', 3)).code).toBe('WORKFLOW_UNKNOWN')
    const error = errorOf(() => registry.own(define('greet', 3)))
    expect(error.code).toBe('WORKFLOW_UNKNOWN')
    expect(error.message).toContain('not its version 3. Registered: version 1, 2.')
    expect(error.message).not.toContain('Did you mean')
  })

  it('refuses the copy of a workflow from a module that was loaded twice', () => {
    const mine = define('greet')
    const registry = new Registry([mine])
    expect(registry.own(mine)).toBe(mine)
    const error = errorOf(() => registry.own(define('greet')))
    expect(error.code).toBe('WORKFLOW_UNKNOWN')
    expect(error.message).toContain('loaded twice')
  })
})
