// Writes `dist`: as JavaScript and as declarations, what can be reached from the entries of the package and from its command.
//
// The package must be small, and a stack trace must lead to code that can be read. So nothing is bundled or minified, lines
// and names are those that the compiler writes, and there are no source maps, which show nothing without the sources. Comments
// stay in the declarations, where editors show them, indented with tabs. JavaScript is not indented: tabs would weigh 0.07 MB,
// and the compiler's four spaces 0.3 MB.

import { execFile } from 'node:child_process'
import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import ts from 'typescript'

const root = resolve(import.meta.dirname, '..')
const dist = join(root, 'dist')
const tsc = join(root, 'node_modules/.bin/tsc')
const manifest = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))

async function compile(...options) {
  const shell = process.platform === 'win32'
  await promisify(execFile)(tsc, ['-p', 'tsconfig.build.json', ...options], { cwd: root, shell }).catch((error) => {
    console.error(`${error.stdout}${error.stderr}`)
    process.exit(1)
  })
}

/** What the entries of the package, and its command, lead to. */
async function reachable() {
  const entries = Object.values(manifest.exports).flatMap((entry) =>
    typeof entry === 'string' ? [] : Object.values(entry),
  )
  const open = [...entries, ...Object.values(manifest.bin)].map((path) => join(root, path))
  const seen = new Set(open)
  for (let file = open.pop(); file !== undefined; file = open.pop()) {
    const { importedFiles, ambientExternalModules } = ts.preProcessFile(await readFile(file, 'utf8'))
    const names = [...importedFiles.map(({ fileName }) => fileName), ...(ambientExternalModules ?? [])]
    const ending = file.endsWith('.d.ts') ? '.d.ts' : '.js'
    for (const name of names.filter((one) => one.startsWith('.'))) {
      const path = join(dirname(file), name.replace(/\.[jt]s$/, ending))
      if (!seen.has(path)) open.push(path)
      seen.add(path)
    }
  }
  return seen
}

/** The same text with another indentation for each level. What stands inside of a template is a text of the program's own. */
function indented(path, text, level) {
  const templates = []
  const collect = (node) => {
    const isTemplate =
      ts.isNoSubstitutionTemplateLiteral(node) || ts.isTemplateHead(node) || ts.isTemplateMiddleOrTemplateTail(node)
    if (isTemplate) templates.push([node.getStart(), node.getEnd()])
    ts.forEachChild(node, collect)
  }
  collect(ts.createSourceFile(path, text, ts.ScriptTarget.ESNext, true))
  return text.replaceAll(/^(?: {4})+/gm, (spaces, at) =>
    templates.some(([from, to]) => from < at && at < to) ? spaces : level.repeat(spaces.length / 4),
  )
}

await rm(dist, { recursive: true, force: true })
await compile('--removeComments', '--declaration', 'false', '--noCheck')
await compile('--emitDeclarationOnly')

const kept = await reachable()
for (const entry of await readdir(dist, { recursive: true, withFileTypes: true })) {
  const path = join(entry.parentPath, entry.name)
  if (!entry.isFile()) continue
  if (kept.has(path))
    await writeFile(path, indented(path, await readFile(path, 'utf8'), path.endsWith('.js') ? '' : '\t'))
  else await rm(path)
}
