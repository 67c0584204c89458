// The example of how to test a workflow passes under both runners: under vitest here and now, and under `node --test`.

import { spawnSync } from 'node:child_process'
import { expect, it } from 'vitest'
import '../../examples/testing/checkout.test.ts'

it('passes under node --test', { timeout: 60_000 }, () => {
  const { VITEST: _runner, NODE_OPTIONS: _options, ...env } = process.env
  const command = ['--import', 'tsx', '--test', '--test-reporter', 'tap', 'examples/testing/checkout.test.ts']
  const { stdout, status } = spawnSync(process.execPath, command, { env, encoding: 'utf8' })
  expect(stdout).toMatch(/^# tests 6$/m)
  expect(stdout).toMatch(/^# pass 6$/m)
  expect(status).toBe(0)
})
