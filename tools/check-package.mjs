// Looks at what would be published, after a build: the files are what sources compile to and the pages that belong to it, every
// export and every page that a page links to is among them, they weigh no more than they may, nothing runs at install time, the
// declarations need no package of ours, and a program outside of this folder can be compiled against them (without @types/node,
// and by an old resolver, too) and can load them. publint and attw look at the rest.

import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, posix, resolve } from 'node:path'
import { isDeepStrictEqual, promisify } from 'node:util'

const run = promisify(execFile)
const root = resolve(import.meta.dirname, '..')
const manifest = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
/** How much an installed package may weigh, in bytes. */
const mostBytes = 3_500_000
/** These are about work on Holdfast, not with it. */
const ourOwn = ['coverage.md', 'performance.md', 'testing.md']
const guides = (await readdir(join(root, 'docs'))).filter((name) => name.endsWith('.md') && !ourOwn.includes(name))
const pages = [
  'README.md',
  'LICENSE',
  'CHANGELOG.md',
  'SECURITY.md',
  'package.json',
  ...guides.map((name) => `docs/${name}`),
]
const sources = (await readdir(join(root, 'src'), { recursive: true })).filter((path) => path.endsWith('.ts'))
const compiled = sources.flatMap((path) => {
  const name = `dist/${path.replaceAll('\\', '/').replace(/\.ts$/, '')}`
  return [`${name}.js`, `${name}.d.ts`]
})
const possible = new Set([...pages, ...compiled])
const flaws = []

const { stdout } = await run('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
  cwd: root,
  maxBuffer: 64 * 1024 * 1024,
})
const [{ files, size, unpackedSize }] = JSON.parse(stdout)
const packed = new Set(files.map(({ path }) => path))

for (const path of packed) {
  if (!possible.has(path)) flaws.push(`${path} would be published, and comes of no source`)
}
for (const path of pages) {
  if (!packed.has(path)) flaws.push(`${path} would not be published: see "files" of package.json`)
}
if (unpackedSize > mostBytes) flaws.push(`it weighs ${unpackedSize} bytes, and ${mostBytes} is the most`)
for (const page of pages.filter((path) => path.endsWith('.md'))) {
  const text = await readFile(join(root, page), 'utf8')
  for (const [, target] of text.matchAll(/\]\((?!\w+:|#)([^)#\s]+)/g)) {
    if (!packed.has(posix.join(posix.dirname(page), target)))
      flaws.push(`${page} links to ${target}, which is not published`)
  }
}
const entries = Object.entries(manifest.exports).filter(([, entry]) => typeof entry !== 'string')
const targets = [...entries.flatMap(([, entry]) => Object.values(entry)), ...Object.values(manifest.bin)]
for (const target of targets) {
  if (!packed.has(target.replace('./', '')))
    flaws.push(`package.json names ${target}, which is not there: run \`npm run build\``)
}
// What resolvers that know no `exports` read must say the same.
const old = { '.': manifest.types }
for (const [name, [types]] of Object.entries(manifest.typesVersions['*'])) old[`./${name}`] = types
if (!isDeepStrictEqual(old, Object.fromEntries(entries.map(([name, { types }]) => [name, types])))) {
  flaws.push('"types" and "typesVersions" name other files than "exports"')
}
if (manifest.main !== manifest.exports['.'].default) flaws.push('"main" names another file than "exports"')
for (const script of ['preinstall', 'install', 'postinstall', 'prepublish', 'preprepare', 'prepare', 'postprepare']) {
  if (script in manifest.scripts) flaws.push(`package.json has the install script "${script}"`)
}
for (const path of packed) {
  if (!path.endsWith('.d.ts')) continue
  const text = await readFile(join(root, path), 'utf8')
  const found = /from ['"]node:|\/\/\/ <reference (?!lib=)|\bNodeJS\.|\bBuffer\b(?=[;,)\]<>| ])/.exec(
    text.replaceAll(/\/\*[^]*?\*\//g, ''),
  )
  if (found !== null) flaws.push(`${path} needs @types/node: ${found[0]}`)
}

/** A user's folder with nothing but our package in it. */
async function useFromOutside() {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-package-'))
  try {
    await mkdir(join(folder, 'node_modules'))
    await symlink(root, join(folder, 'node_modules', manifest.name))
    const names = Object.keys(manifest.exports).filter((name) => !name.endsWith('.json'))
    const imports = names.map((name, index) => `import * as m${index} from '${join(manifest.name, name)}'`)
    const uses = names.map((_, index) => `console.log(Object.keys(m${index}).length)`)
    await writeFile(join(folder, 'package.json'), '{ "type": "module" }')
    await writeFile(join(folder, 'use.ts'), [...imports, ...uses].join('\n'))
    const options = ['--strict', '--exactOptionalPropertyTypes', '--noEmit', '--preserveSymlinks']
    const language = ['--target', 'es2022', '--lib', 'es2023,dom']
    const current = ['--module', 'nodenext', '--types', '']
    await run(join(root, 'node_modules/.bin/tsc'), [...options, ...language, ...current, 'use.ts'], { cwd: folder })
    // Version 6 of the compiler is the last that can resolve as Node 10 did.
    const aged = ['--module', 'commonjs', '--moduleResolution', 'node10', '--ignoreDeprecations', '6.0']
    const tsc6 = join(root, 'node_modules/typescript/lib/tsc.js')
    await run('node', [tsc6, ...options, ...language, ...aged, 'use.ts'], { cwd: folder })
    await writeFile(join(folder, 'use.mjs'), [...imports, ...uses].join('\n'))
    await run('node', ['use.mjs'], { cwd: folder })
  } catch (error) {
    flaws.push(`A program that uses the package fails:\n${error.stdout}${error.stderr}`)
  } finally {
    await rm(folder, { recursive: true })
  }
}

if (flaws.length === 0) await useFromOutside()
if (flaws.length > 0) {
  console.error(`The package is not fit to publish:\n  ${flaws.join('\n  ')}`)
  process.exit(1)
}
const megabytes = (unpackedSize / 1_000_000).toFixed(2)
console.log(
  `package: ${packed.size} files, ${Math.round(size / 1000)} kB, unpacked ${megabytes} MB, usable from outside`,
)
