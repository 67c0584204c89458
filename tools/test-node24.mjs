// Runs the contract of the stores, and the SQLite store's own tests, on a Node that has `node:sqlite`: the one of
// test/node24, which has an install of its own because it weighs 120 MB. Where it is not installed, this says so and passes.

import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'

const root = resolve(import.meta.dirname, '..')
const platform = process.platform === 'win32' ? 'win' : process.platform
const name = `node-${platform}-${process.arch}`
const node = join(root, 'test/node24/node_modules', name, 'bin', platform === 'win' ? 'node.exe' : 'node')
if (!existsSync(node)) {
  console.log(`skipped: no Node 24 in test/node24 (${name}); \`npm run node24:install\` brings it`)
  process.exit(0)
}
const tests = ['test/contract/sqlite.test.ts', 'test/unit/stores/sqlite']
const { status } = spawnSync(
  node,
  [join(root, 'node_modules/vitest/vitest.mjs'), 'run', '--mode', 'node24', ...tests],
  {
    cwd: root,
    stdio: 'inherit',
  },
)
process.exit(status ?? 1)
