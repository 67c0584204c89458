// Runs the tests of test/orm: `holdfast.using` and `ctx.transaction` with the real libraries of users. They have an install of
// their own, because they weigh 280 MB. Postgres is the one of DATABASE_URL, or one that is started for the tests.

import { spawnSync } from 'node:child_process'
import { join, resolve } from 'node:path'

const root = resolve(import.meta.dirname, '..')
const folder = join(root, 'test/orm')

function run(command, args, { cwd = root, env = {}, mayFail = false } = {}) {
  const shell = process.platform === 'win32'
  const { status } = spawnSync(command, args, { cwd, stdio: 'inherit', shell, env: { ...process.env, ...env } })
  if (status !== 0 && !mayFail) process.exit(status ?? 1)
  return status === 0
}

run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: folder })
// The one package here that is native and has no binary of its own in the registry: it is downloaded or compiled.
const isBuilt = run('npm', ['rebuild', 'better-sqlite3', '--ignore-scripts=false'], { cwd: folder, mayFail: true })
if (!isBuilt) console.log('better-sqlite3 could not be built here: its tests are skipped')
// Generating a client needs no engine, but looks for one, and would download it: any program that exists will do.
const env = {
  PRISMA_SCHEMA_ENGINE_BINARY: process.execPath,
  CHECKPOINT_DISABLE: '1',
  DATABASE_URL: 'postgres://unused',
}
run(process.execPath, ['node_modules/prisma/build/index.js', 'generate', '--schema', 'schema.prisma', '--no-hints'], {
  cwd: folder,
  env,
})
const vitest = join(root, 'node_modules/vitest/vitest.mjs')
run(process.execPath, [vitest, 'run', '--config', join(folder, 'vitest.config.mjs')])
