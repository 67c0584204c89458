// Walks the path of a new user: a fresh folder, the package as it would be published, the first program of the README, the
// compiler, the bundlers, Next, Jest. With npm and with pnpm, on the oldest Node that we support, on the first that has
// `node:sqlite`, and on Node 24. It needs the registry and minutes. Ends with a table, and with 1 if something failed.
//
//   npm run test:install -- --manager pnpm --node 24

import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join, resolve } from 'node:path'
import { parseArgs, promisify } from 'node:util'

const root = resolve(import.meta.dirname, '..')
const fixtures = join(root, 'test/install')
const { values: asked } = parseArgs({
  options: { node: { type: 'string', multiple: true }, manager: { type: 'string', multiple: true } },
})
const versions = asked.node ?? ['20.19', '22.13', '24']
const managers = asked.manager ?? ['npm', 'pnpm']

/** What is installed besides: the newest that these allow. */
const language = ['typescript@5', '@types/node@22', 'zod@4', 'esbuild@0']
const bundling = ['pg@8', 'esbuild@0', 'webpack@5', 'webpack-cli@7', 'next@16', 'react@19', 'react-dom@19']
const testing = ['jest@30', '@babel/core@7', '@babel/preset-env@7']
/** The package and all that comes with it, in bytes. */
const mostBytes = 3_500_000

const place = await mkdtemp(join(tmpdir(), 'holdfast-install-'))
const execute = promisify(execFile)

/** Runs a command to its end. Gives back what it printed; throws that if it failed. */
async function run(file, args, { cwd, node = '', env = {}, mayFail = false }) {
  const path = [node, process.env.PATH].filter((one) => one !== '').join(delimiter)
  const options = {
    cwd,
    env: { ...process.env, CI: '1', NEXT_TELEMETRY_DISABLED: '1', ...env, PATH: path },
    maxBuffer: 64 * 1024 * 1024,
    timeout: 15 * 60_000,
  }
  try {
    const { stdout, stderr } = await execute(file, args, options)
    return stdout + stderr
  } catch (error) {
    const said = `${error.stdout ?? ''}${error.stderr ?? ''}`
    if (mayFail) return said
    const why = error.killed === true ? 'took too long' : error.code
    throw new Error(`${[file, ...args].join(' ')}: ${why}\n${said}`, { cause: error })
  }
}

function expectText(said, wanted) {
  if (!said.includes(wanted)) throw new Error(`expected "${wanted}", and got:\n${said}`)
}

async function pack() {
  const said = await run('npm', ['pack', '--silent', '--ignore-scripts', '--pack-destination', place], { cwd: root })
  return join(
    place,
    said
      .trim()
      .split('\n')
      .findLast((line) => line.endsWith('.tgz')),
  )
}

/** A runtime of this version, as the registry has it. Gives back the folder of its program. */
async function installNode(version) {
  const cwd = join(place, `node-${version}`)
  const name = `node-${process.platform === 'win32' ? 'win' : process.platform}-${process.arch}`
  await mkdir(cwd)
  await writeFile(join(cwd, 'package.json'), '{ "private": true }')
  await run('npm', ['install', '--no-audit', '--no-fund', '--ignore-scripts', `${name}@${version}`], { cwd })
  return join(cwd, 'node_modules', name, 'bin')
}

async function installPnpm() {
  const cwd = join(place, 'pnpm')
  await mkdir(cwd)
  await writeFile(join(cwd, 'package.json'), '{ "private": true }')
  await run('npm', ['install', '--no-audit', '--no-fund', '--ignore-scripts', 'pnpm'], { cwd })
  return join(cwd, 'node_modules/.bin/pnpm')
}

/** How many bytes a folder holds. Links are not followed, so that nothing is counted twice. */
async function weightOf(folder) {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile())
  const sizes = await Promise.all(files.map(async ({ parentPath, name }) => (await stat(join(parentPath, name))).size))
  return sizes.reduce((sum, size) => sum + size, 0)
}

const page = await readFile(join(root, 'README.md'), 'utf8')
const [, program = ''] = /^## A program\n[^]*?^```ts\n([^]*?)^```$/m.exec(page) ?? []

async function newFolder(name, manifest) {
  const folder = join(place, name)
  await mkdir(folder)
  await writeFile(join(folder, 'package.json'), JSON.stringify({ name: 'shop', private: true, ...manifest }))
  return folder
}

/** The steps of the path, in order, for one way to install and one runtime. Each throws what went wrong. */
async function path(manager, node, tarball, pnpm) {
  const first = await newFolder(`${manager}-${node.version}-first`, { type: 'module' })
  const service = await newFolder(`${manager}-${node.version}-service`, {})
  const tests = await newFolder(`${manager}-${node.version}-tests`, {})
  const add = (cwd, ...names) =>
    manager === 'npm'
      ? run('npm', ['install', '--no-audit', '--no-fund', '--ignore-scripts', ...names], { cwd, node: node.bin })
      : run(pnpm, ['add', '--ignore-scripts', '--store-dir', join(place, 'store'), ...names], { cwd, node: node.bin })
  const start = (cwd, args, options = {}) => run(join(node.bin, 'node'), args, { cwd, node: node.bin, ...options })
  const bin = (cwd, name, args) => run(join(cwd, 'node_modules/.bin', name), args, { cwd, node: node.bin })
  const compile = (...options) =>
    bin(first, 'tsc', ['--strict', '--target', 'es2023', '--skipLibCheck', 'false', ...options, 'first.ts'])

  return {
    async install() {
      await add(first, tarball)
      const weight = await weightOf(join(first, 'node_modules'))
      if (weight > mostBytes) throw new Error(`${weight} bytes were installed, and ${mostBytes} is the most`)
      await add(first, ...language)
      await writeFile(join(first, 'first.ts'), program)
    },
    nodenext: () => compile('--module', 'nodenext'),
    bundler: () => compile('--noEmit', '--module', 'esnext', '--moduleResolution', 'bundler'),
    async 'first run'() {
      if (!node.hasSqlite) {
        expectText(await start(first, ['first.js'], { mayFail: true }), 'Run: npm install libsql')
        await add(first, 'libsql')
      }
      expectText(await start(first, ['first.js']), 'parcel for 42')
    },
    async require() {
      await cp(join(fixtures, 'required.cjs'), join(first, 'required.cjs'))
      expectText(await start(first, ['required.cjs']), 'Hello, Ada')
    },
    async esbuild() {
      await bin(first, 'esbuild', ['first.ts', ...bundle, '--format=esm', '--outfile=out/first.mjs'])
      expectText(await start(first, ['out/first.mjs']), 'parcel for 42')
      await add(service, tarball, ...bundling)
      await cp(join(fixtures, 'service.mjs'), join(service, 'service.mjs'))
      await bin(service, 'esbuild', ['service.mjs', ...bundle, '--format=esm', '--outfile=out/esbuild.mjs'])
      await bin(service, 'esbuild', ['service.mjs', ...bundle, '--format=cjs', '--outfile=out/esbuild.cjs'])
      await performs('out/esbuild.mjs')
      await performs('out/esbuild.cjs')
    },
    async webpack() {
      const options = ['--target', 'node', '--mode', 'production', '--entry', './service.mjs', '--output-path', 'out']
      await bin(service, 'webpack', options)
      await performs('out/main.js')
    },
    async next() {
      await cp(join(fixtures, 'next'), service, { recursive: true })
      await bin(service, 'next', ['build'])
    },
    async jest() {
      await add(tests, tarball, ...testing)
      await cp(join(fixtures, 'jest'), tests, { recursive: true })
      await passes('greet.test.mjs', asModules)
      // A test whose run ends otherwise is reported: a stage that never fails would prove nothing.
      expectText(await jest('greet.test.mjs', asModules, { env: { GREETED: 'Bob' }, mayFail: true }), '1 failed')
      await passes('greet.test.cjs', byBabel)
      if (node.requiresModulesInVm) await passes('greet.test.cjs', asModules)
    },
  }

  function jest(file, { flags, config }, options) {
    const program = ['node_modules/jest/bin/jest.js', '--cacheDirectory', join(tests, 'cache')]
    return start(tests, [...flags, ...program, '--config', JSON.stringify(config), file], options)
  }

  async function passes(file, way) {
    expectText(await jest(file, way, { env: { GREETED: 'Ada' } }), '1 passed')
  }

  /** A bundle runs, and has its driver: nobody listens at that port. */
  async function performs(file) {
    expectText(await start(service, [file], { env: { STORE: 'memory:' } }), 'Hello, Ada')
    expectText(await start(service, [file], { env: { STORE: 'postgres://127.0.0.1:1/none' } }), 'ECONNREFUSED')
  }
}

/** The ways in which docs/installing.md says that Jest works. */
const asModules = { flags: ['--experimental-vm-modules'], config: { transform: {} } }
const byBabel = { flags: [], config: { transformIgnorePatterns: ['node_modules/(?!\\.pnpm/|holdfast/)'] } }

const bundle = ['--bundle', '--platform=node', '--log-level=error']

/** Walks until something fails: what comes after rests on it. */
async function walk(steps) {
  const outcome = {}
  for (const [name, step] of Object.entries(steps)) {
    try {
      await step()
      outcome[name] = 'passed'
    } catch (error) {
      outcome[name] = 'FAILED'
      console.error(`\n${name}: ${error.message}\n`)
      if (name === 'install') break
    }
  }
  return outcome
}

try {
  const tarball = await pack()
  const pnpm = managers.includes('pnpm') ? await installPnpm() : ''
  const table = {}
  for (const version of versions) {
    const bin = await installNode(version)
    const says = "console.log(process.version, require('node:module').isBuiltin('node:sqlite'))"
    const [exact, hasSqlite] = (await run(join(bin, 'node'), ['-e', says], { cwd: place })).trim().split(' ')
    const [major = 0, minor = 0] = exact.slice(1).split('.').map(Number)
    const requiresModulesInVm = major > 24 || (major === 24 && minor >= 9)
    const node = { version, bin, hasSqlite: hasSqlite === 'true', requiresModulesInVm }
    for (const manager of managers) {
      const name = `${manager} on Node ${exact.slice(1)}`
      console.log(name)
      table[name] = await walk(await path(manager, node, tarball, pnpm))
    }
  }
  console.table(table)
  const failed = Object.values(table)
    .flatMap((row) => Object.values(row))
    .includes('FAILED')
  process.exitCode = failed ? 1 : 0
} finally {
  await rm(place, { recursive: true, force: true })
}
