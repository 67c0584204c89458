// What every source file keeps to, where a machine can tell: its size, its name, and what must not be left in it.

import { readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import ts from 'typescript'
import { describe, expect, it } from 'vitest'

const maxLines = 400
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

function saysAny(path: string, text: string): boolean {
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
