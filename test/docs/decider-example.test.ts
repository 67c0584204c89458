// The example of a decider is a program: it runs as its first lines say.

import { spawnSync } from 'node:child_process'
import { expect, it } from 'vitest'

it('examples/decider.ts pays for one order, and lets another expire', { timeout: 60_000 }, () => {
  const command = ['--import', 'tsx', 'examples/decider.ts']
  const { stdout, stderr, status } = spawnSync(process.execPath, command, { encoding: 'utf8' })
  expect({ stderr, status }).toEqual({ stderr: '', status: 0 })
  expect(stdout).toContain('paid: accepted')
  expect(stdout).toMatch(/^order 1: Created, .*Shipped/m)
  expect(stdout).toMatch(/^order 2: Created, .*Expired$/m)
})
