// The list of attacks in SECURITY.md names the tests that prove what holds: here it is only compared with them.

import { spawnSync } from 'node:child_process'
import { expect, it } from 'vitest'

it('SECURITY.md names tests that are there for every attack', () => {
  const check = spawnSync(process.execPath, ['tools/security.mjs'], { encoding: 'utf8' })
  expect(check.stderr).toBe('')
  expect(check.status).toBe(0)
})
