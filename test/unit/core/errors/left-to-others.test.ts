// The mark of errors because of which a run is left to other workers.

import { expect, it, vi } from 'vitest'
import { HoldfastError } from '../../../../src/core/errors/error.ts'
import { isLeftToOthers, leftToOthers } from '../../../../src/core/errors/left-to-others.ts'

it('is recognised by a second copy of the package, too', async () => {
  const error = leftToOthers('DRIFT', 'newer code', {})
  vi.resetModules()
  const copy = await import('../../../../src/core/errors/left-to-others.ts')
  expect(copy.isLeftToOthers).not.toBe(isLeftToOthers)
  expect([isLeftToOthers(error), copy.isLeftToOthers(error)]).toEqual([true, true])
})

it('is on no other error, and does not show in its JSON', () => {
  const { code, message, details } = leftToOthers('DRIFT', 'newer code', {})
  expect(isLeftToOthers(new HoldfastError(code, message, { details }))).toBe(false)
  expect(isLeftToOthers(undefined)).toBe(false)
  expect(JSON.parse(JSON.stringify(leftToOthers(code, message, {})))).toEqual({
    name: 'HoldfastError',
    code,
    message,
    details,
  })
})
