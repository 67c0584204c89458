// What comes with the package: nothing that runs when it is installed, nobody whom we did not choose, and no file too many.

import { execFileSync } from 'node:child_process'
import { isBuiltin } from 'node:module'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'

interface Manifest {
  readonly dependencies?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
  readonly peerDependenciesMeta?: Readonly<Record<string, { readonly optional?: boolean }>>
  readonly scripts?: Readonly<Record<string, string>>
  readonly files?: readonly string[]
  readonly publishConfig?: unknown
}

interface Locked {
  readonly dependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
  readonly integrity?: string
  readonly hasInstallScript?: boolean
}

const read = (path: string): unknown => JSON.parse(readFileSync(path, 'utf8'))
const manifest = read('package.json') as Manifest
const { packages } = read('package-lock.json') as { readonly packages: Readonly<Record<string, Locked>> }
const locked = Object.entries(packages).filter(([path]) => path !== '')
const drivers = Object.keys(manifest.peerDependencies ?? {})
/** What is installed with the package. */
const installed = withTheirs(Object.keys(manifest.dependencies ?? {}))
/** The same, and the drivers that a user may install beside it. */
const production = withTheirs([...Object.keys(manifest.dependencies ?? {}), ...drivers])

/** These packages, and all that they bring. */
function withTheirs(names: readonly string[]): readonly (readonly [path: string, Locked])[] {
  const found = new Map<string, Locked>()
  const add = (name: string, from: string): void => {
    // The nearest folder that has it, as a module is found.
    const folders = [...from.matchAll(/node_modules\//g)].map(({ index }) => from.slice(0, index)).toReversed()
    const paths = [...(from === '' ? [] : [`${from}/`]), ...folders].map((folder) => `${folder}node_modules/${name}`)
    const path = paths.concat(`node_modules/${name}`).find((one) => packages[one] !== undefined)
    const one = path === undefined ? undefined : packages[path]
    if (path === undefined || one === undefined || found.has(path)) return
    found.set(path, one)
    for (const theirs of Object.keys({ ...one.dependencies, ...one.optionalDependencies })) add(theirs, path)
  }
  for (const name of names) add(name, '')
  return [...found]
}

const atInstall = ['preinstall', 'install', 'postinstall', 'prepublish', 'prepare']

describe('what is installed with the package', () => {
  it('is what was chosen, and no more', () => {
    expect(Object.keys(manifest.dependencies ?? {}).toSorted()).toEqual(['commander'])
    expect(installed.map(([path]) => path)).toEqual(['node_modules/commander'])
    expect(production.length).toBeGreaterThan(10)
    expect(production.length).toBeLessThan(50)
  })

  it('is no driver of a database that is not used: each is chosen by who needs it, and every entry loads without', () => {
    expect(drivers.toSorted()).toEqual(['@tursodatabase/database', 'libsql', 'pg'])
    for (const name of drivers) expect(manifest.peerDependenciesMeta?.[name]).toEqual({ optional: true })
    // A process in which none of them can be found.
    const hook = `export async function resolve(name, context, next) {
      if (${JSON.stringify(drivers)}.some((one) => name === one || name.startsWith(one + '/')))
        throw Object.assign(new Error('Cannot find package ' + name), { code: 'ERR_MODULE_NOT_FOUND' })
      return next(name, context)
    }`
    const entries = ['index', 'testing/index', 'encryption/index', 'cli/program', 'stores/sqlite/index']
    const program = `
      import Module, { register } from 'node:module'
      const drivers = ${JSON.stringify(drivers)}
      const resolveFilename = Module._resolveFilename
      Module._resolveFilename = (name, ...rest) => {
        if (drivers.some((one) => name === one || name.startsWith(one + '/')))
          throw Object.assign(new Error('Cannot find module ' + name), { code: 'MODULE_NOT_FOUND' })
        return resolveFilename(name, ...rest)
      }
      register('data:text/javascript,' + encodeURIComponent(${JSON.stringify(hook)}))
      for (const entry of ${JSON.stringify(entries)}) await import('./src/' + entry + '.ts')
      const { openPostgresStore } = await import('./src/stores/postgres/index.ts')
      const { openTursoStore, openLibsqlStore } = await import('./src/stores/turso/index.ts')
      const { createHoldfast } = await import('./src/index.ts')
      const label = (error) => error.code + ' ' + error.message
      const failures = await Promise.all([
        openPostgresStore({ url: 'postgres://localhost:9/none' }).catch(label),
        openTursoStore({ path: ':memory:' }).catch(label),
        openLibsqlStore({ url: 'libsql://127.0.0.1:9?tls=0' }).catch(label),
        openLibsqlStore({ url: 'libsql::memory:' }).catch(label),
        ...(Module.isBuiltin('node:sqlite') ? [] : [createHoldfast({ store: 'sqlite:not-made.db' }).catch(label)]),
      ])
      const holdfast = await createHoldfast({ store: 'memory:' })
      await holdfast.close()
      console.log(JSON.stringify(failures))`
    const text = execFileSync(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', program], {
      encoding: 'utf8',
    })
    const needs = (what: string, name: string): string =>
      `STORE_UNKNOWN ${what} needs the package ${name}, which is not installed. Run: npm install ${name}`
    expect(JSON.parse(text)).toEqual([
      needs('A Postgres store', 'pg'),
      needs('A turso: store', '@tursodatabase/database'),
      needs('A store on a libsql server', 'libsql'),
      needs('This SQLite store', 'libsql'),
      ...(isBuiltin('node:sqlite')
        ? []
        : [needs('This Node has no node:sqlite, which begins with 22.13, so a SQLite store', 'libsql')]),
    ])
  })

  it('runs no script when it is installed: as the lock file says', () => {
    // The mark is there: things that only our own tests need have it.
    expect(locked.filter(([, { hasInstallScript }]) => hasInstallScript === true)).not.toEqual([])
    expect(production.filter(([, { hasInstallScript }]) => hasInstallScript === true)).toEqual([])
  })

  it('runs no script when it is installed: as its own manifest says', () => {
    const present = production.filter(([path]) => existsSync(path))
    expect(present.length).toBeGreaterThan(3)
    const running = present.flatMap(([path]) => {
      const { scripts = {} } = read(join(path, 'package.json')) as Manifest
      const named = atInstall.slice(0, 3).filter((name) => name in scripts)
      // npm compiles where it finds this, without being asked to.
      return existsSync(join(path, 'binding.gyp')) || named.length > 0 ? [path] : []
    })
    expect(running).toEqual([])
  })

  it('is known by its content', () => {
    expect(production.filter(([, { integrity = '' }]) => !integrity.startsWith('sha512-'))).toEqual([])
  })
})

describe('the package itself', () => {
  it('runs no script when it is installed, and is published with where it was built', () => {
    expect(Object.keys(manifest.scripts ?? {}).filter((name) => atInstall.includes(name))).toEqual([])
    expect(manifest.publishConfig).toEqual({ access: 'public', provenance: true })
  })

  it('holds what was built, its pages, and nothing else', () => {
    const text = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
      encoding: 'utf8',
      maxBuffer: 64 * 1024 * 1024,
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    const [packed] = JSON.parse(text) as readonly { readonly files: readonly { readonly path: string }[] }[]
    // What must be in dist is for `npm run package` to say, after a build.
    const pages = (packed?.files ?? []).map(({ path }) => path).filter((path) => !path.startsWith('dist/'))
    const guides = readdirSync('docs')
      .filter((name) => name.endsWith('.md') && !['coverage.md', 'performance.md', 'testing.md'].includes(name))
      .map((name) => `docs/${name}`)
    const others = ['CHANGELOG.md', 'LICENSE', 'README.md', 'SECURITY.md', 'package.json']
    expect(pages.toSorted()).toEqual([...others, ...guides].toSorted())
  })

  it('has a bill of materials that names what is installed with it, and nothing of our own work', () => {
    const text = execFileSync(process.execPath, ['tools/sbom.mjs'], { encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 })
    const bill = JSON.parse(text) as { readonly bomFormat: string; readonly components: readonly { name: string }[] }
    expect(bill.bomFormat).toBe('CycloneDX')
    const named = new Set(bill.components.map(({ name }) => name))
    const wanted = installed.map(([path]) => path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length))
    expect([...named].toSorted()).toEqual([...new Set(wanted)].toSorted())
  })
})
