// The page that maps the feature checklist to tests is generated; here it is only compared.

import { spawnSync } from 'node:child_process'
import { expect, it } from 'vitest'

it('docs/coverage.md names the tests as they are', () => {
  const check = spawnSync(process.execPath, ['tools/coverage.mjs'], { encoding: 'utf8' })
  expect(check.stderr).toBe('')
  expect(check.status).toBe(0)
})
