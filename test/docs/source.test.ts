// What every source file keeps to, where a machine can decide: its size, its name, and what must not be left in it.

import { readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import ts from 'typescript'
import { describe, expect, it } from 'vitest'

const maxLines = 400
const maxFiles = 15
const maxReadmeLines = 200
const emptyNames = new Set(['types', 'utils', 'helpers', 'common', 'lib', 'misc', 'interfaces', 'constants'])
const unfinished = new RegExp(`\\b(?:${['TO', 'FIX'].map((half, index) => half + ['DO', 'ME'][index]).join('|')})\\b`)

const present = readdirSync('.')
const files = ['src', 'test', 'tools', 'bench', 'examples', 'dashboard']
  .filter((folder) => present.includes(folder))
  .flatMap((folder) => readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((file) => join(folder, file)))
  .filter((file) => /\.(?:ts|tsx|mjs|sql|css)$/.test(file) && !/(?:^|\/)(?:node_modules|dist)\//.test(file))
  .map((path) => ({ path, text: readFileSync(path, 'utf8') }))

const pathsWhere = (wrong: (file: { path: string; text: string }) => boolean): string[] =>
  files.filter(wrong).map(({ path }) => path)

/** Only a file with the word in it is parsed: a quarter of all. */
function saysAny(path: string, text: string): boolean {
  if (!/\bany\b/.test(text)) return false
  const visit = (node: ts.Node): boolean =>
    node.kind === ts.SyntaxKind.AnyKeyword || (ts.forEachChild(node, (child) => visit(child) || undefined) ?? false)
  return visit(ts.createSourceFile(path, text, ts.ScriptTarget.Latest))
}

describe('every source file', () => {
  it('is seen by this test', () => {
    expect(files.map(({ path }) => path)).toContain('src/core/errors/error.ts')
  })

  it(`has at most ${maxLines} lines`, () => {
    expect(pathsWhere(({ text }) => text.trimEnd().split('\n').length > maxLines)).toEqual([])
  })

  it(`of src has at most ${maxFiles - 1} others beside it in its folder`, () => {
    const counts = new Map<string, number>()
    for (const { path } of files.filter((file) => file.path.startsWith('src'))) {
      counts.set(dirname(path), (counts.get(dirname(path)) ?? 0) + 1)
    }
    expect([...counts].filter(([, count]) => count > maxFiles)).toEqual([])
  })

  it('is named for what it holds', () => {
    expect(pathsWhere(({ path }) => emptyNames.has(basename(path).split('.')[0] ?? ''))).toEqual([])
  })

  it('is finished', () => {
    expect(pathsWhere(({ text }) => unfinished.test(text))).toEqual([])
  })

  it('never says any', () => {
    expect(pathsWhere(({ path, text }) => /\.tsx?$/.test(path) && saysAny(path, text))).toEqual([])
  }, 60_000)
})

describe('the lock file', () => {
  const text = readFileSync('package-lock.json', 'utf8')

  it('names no registry host', () => {
    expect(text).not.toContain('"resolved"')
  })

  // A binary that the registry lacked when the lock file was written is left out of it, and `npm ci` then refuses it.
  it('holds the binaries of every platform', () => {
    const { packages } = JSON.parse(text) as {
      packages: Record<string, { optionalDependencies?: Record<string, string> }>
    }
    const missing = Object.entries(packages).flatMap(([path, { optionalDependencies = {} }]) =>
      Object.keys(optionalDependencies).filter(
        (name) => !(`node_modules/${name}` in packages) && !(`${path}/node_modules/${name}` in packages),
      ),
    )
    expect(missing).toEqual([])
  })
})

it(`the README has at most ${maxReadmeLines} lines`, () => {
  expect(readFileSync('README.md', 'utf8').trimEnd().split('\n').length).toBeLessThanOrEqual(maxReadmeLines)
})

// Names of before 1.0 that others have replaced: none is left as an alias, in the code, the pages or the tables.
it('no name that was replaced is left', () => {
  const replaced =
    /\b(?:replayDeadLetter|pauseCheckInterval|onTargetTerminated|Raced|Gathered|Revived|Unended|WishView|isStrangeToNames)\b|delivery: '(?:topic|queue)'/
  const code = files.filter(({ path }) => path.startsWith('src'))
  const pages = readdirSync('docs').map((name) => join('docs', name))
  const texts = [...code, ...[...pages, 'README.md'].flatMap(pageAt)]
  expect(texts.filter(({ text }) => replaced.test(text)).map(({ path }) => path)).toEqual([])
  // The names of other engines stand where people come from them, and nowhere else.
  const own = code.filter(({ path }) => !path.startsWith(join('src', 'compat')))
  expect(own.filter(({ text }) => /hephaestus|ironflow/i.test(text)).map(({ path }) => path)).toEqual([])
  const schemas = code.filter(({ path }) => path.endsWith(join('schema', 'schema.ts')))
  expect(schemas).toHaveLength(2)
  expect(schemas.filter(({ text }) => /^\s*(?:wish|told)\s/m.test(text)).map(({ path }) => path)).toEqual([])
})

// What a colleague from another engine would have to ask about: the subject is named, and who reports, answers or notifies.
it('no private word is left, in code or in prose', () => {
  const words = /\b(?:tells?|told|telling|somebody|whoever)\b/i
  const distinguishing = /\b(?:tells?|told|telling)\b[^.;:]{0,60}?\bapart\b/gi
  const own = join('test', 'docs', 'source.test.ts')
  const pages = readdirSync('docs', { recursive: true, encoding: 'utf8' }).map((name) => join('docs', name))
  const roots = ['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'SECURITY.md']
  const texts = [...files.filter(({ path }) => path !== own), ...[...pages, ...roots].flatMap(pageAt)]
  // A comment may break the line before the word that makes the sense clear.
  const plain = (text: string): string =>
    text.replaceAll(/\n\s*(?:\/\/|\*|--)?\s*/g, ' ').replaceAll(distinguishing, '')
  expect(texts.filter(({ text }) => words.test(plain(text))).map(({ path }) => path)).toEqual([])
})

it('no private word is part of a name in src, nor of a file', () => {
  const words =
    /(?:^|[a-z0-9])(?:[Tt]ell(?:s|ing)?|[Tt]old|[Bb]ooks|[Ww]ish(?:es)?|[Vv]erdicts?|[Ee]rrands?|[Dd]esk|[Uu]ndertakings?|[Oo]bliges|[Ss]tirred|[Rr]ipen|[Ss]tray(?:s|ed)?|[Tt]roubled)(?=[A-Z]|$)/
  const names = ({ text }: { text: string }): readonly string[] =>
    text.replaceAll(/\/\/.*|\/\*[^]*?\*\/|'[^'\n]*'/g, '').match(/\b[A-Za-z_]\w*\b/g) ?? []
  const code = files.filter(({ path }) => path.startsWith('src') && path.endsWith('.ts'))
  const found = code.flatMap((file) =>
    names(file)
      .filter((name) => words.test(name))
      .map((name) => `${file.path}: ${name}`),
  )
  expect(found).toEqual([])
  const fileNames = files
    .map(({ path }) => path)
    .filter((path) =>
      basename(path)
        .split(/[-.]/)
        .some((part) => words.test(part)),
    )
  expect(fileNames).toEqual([])
})

function pageAt(path: string): readonly { path: string; text: string }[] {
  return path.endsWith('.md') ? [{ path, text: readFileSync(path, 'utf8') }] : []
}
