// Looks at what would be published, after a build: the files are exactly what the sources compile to and the pages that belong
// to it, every export is among them, nothing runs at install time, the declarations need no package of ours, and a program outside of this folder can be
// compiled against them (without @types/node) and can load them. publint and attw look at the rest.

import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)
const root = resolve(import.meta.dirname, '..')
const manifest = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
const pages = ['README.md', 'LICENSE', 'CHANGELOG.md', 'SECURITY.md', 'package.json']
const sources = (await readdir(join(root, 'src'), { recursive: true })).filter((path) => path.endsWith('.ts'))
const compiled = sources.flatMap((path) => {
  const name = `dist/${path.replaceAll('\\', '/').replace(/\.ts$/, '')}`
  return [`${name}.js`, `${name}.js.map`, `${name}.d.ts`]
})
const expected = new Set([...pages, ...compiled])
const flaws = []

const { stdout } = await run('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
  cwd: root,
  maxBuffer: 64 * 1024 * 1024,
})
const [{ files, size }] = JSON.parse(stdout)
const packed = new Set(files.map(({ path }) => path))

for (const path of packed) {
  if (!expected.has(path)) flaws.push(`${path} would be published, and comes of no source`)
}
for (const path of expected) {
  if (!packed.has(path)) flaws.push(`${path} would not be published: run \`npm run build\``)
}
const targets = Object.values(manifest.exports).flatMap((entry) =>
  typeof entry === 'string' ? entry : Object.values(entry),
)
for (const target of targets) {
  if (!packed.has(target.replace('./', '')))
    flaws.push(`exports names ${target}, which is not there: run \`npm run build\``)
}
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
    const target = ['--module', 'nodenext', '--target', 'es2022', '--lib', 'es2023,dom', '--types', '']
    await run(join(root, 'node_modules/.bin/tsc'), [...options, ...target, 'use.ts'], { cwd: folder })
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
console.log(`package: ${packed.size} files, ${Math.round(size / 1024)} kB, usable from outside`)
