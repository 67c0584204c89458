// The README and the guides are programs: every `ts` block is type-checked against the source and run in a process of
// its own, in an empty folder; a block tagged `no-run` is only type-checked. One tagged `alone` is type-checked apart from the
// others, because its declarations count for a whole program. Every `npm run` in a `sh` block must exist.
//
// Each block is written to a file whose lines are those of the page, so that a compiler's or a stack's line is the page's. It
// is run as JavaScript, and finds this package as those do who have installed it: by what `package.json` exports.

import { spawnSync } from 'node:child_process'
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { translatedPackage } from '../support/child-program.ts'

interface Block {
  readonly page: string
  readonly line: number
  readonly language: string
  readonly tags: readonly string[]
  readonly code: string
}

function blocksOf(page: string): Block[] {
  const lines = readFileSync(page, 'utf8').split('\n')
  const blocks: Block[] = []
  for (let at = 0; at < lines.length; at++) {
    const [, indent = '', fence, info = ''] = /^(\s*)(`{3,})(.*)$/.exec(lines[at] ?? '') ?? []
    if (fence === undefined) continue
    const end = lines.findIndex((line, index) => index > at && line.trim() === fence)
    if (end === -1) throw new Error(`${page}:${at + 1} opens a block that is never closed`)
    const [language = '', ...tags] = info.trim().split(/\s+/)
    const code = lines
      .slice(at + 1, end)
      .map((line) => line.slice(indent.length))
      .join('\n')
    blocks.push({ page, line: at + 1, language, tags, code })
    at = end
  }
  return blocks
}

const guides = readdirSync('docs', { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.md'))
const blocks = ['README.md', ...guides.map((file) => join('docs', file))].flatMap(blocksOf)
const programs = blocks.filter(({ language }) => language === 'ts' || language === 'typescript')
const commands = blocks
  .filter(({ language }) => language === 'sh' || language === 'bash')
  .flatMap(({ page, line, code }) =>
    [...code.matchAll(/\bnpm (?:run (?:-\S+ )*)?([\w:-]+)/g)]
      .filter(([text, name]) => text.startsWith('npm run') || name === 'test' || name === 'start')
      .map(([, script]) => ({ page, line, script: script ?? '' })),
  )

const root = resolve('.')
const fileOf = ({ page, line }: Block): string => `${page.replaceAll('/', '-')}.${line}.ts`
let folder = ''
let compilerSays: readonly string[] = []

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-docs-'))
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  const compilerOptions = {
    noEmit: true,
    skipLibCheck: true,
    types: ['node'],
    moduleDetection: 'force',
    noUnusedLocals: false,
    noUnusedParameters: false,
    paths: {
      holdfast: [`${root}/src/index.ts`],
      'holdfast/testing/store': [`${root}/src/testing/contract/index.ts`],
      'holdfast/store': [`${root}/src/store-kit.ts`],
      'holdfast/*': [`${root}/src/*/index.ts`],
    },
  }
  for (const block of programs) writeFileSync(join(folder, fileOf(block)), '\n'.repeat(block.line) + block.code)
  if (programs.length === 0) return
  const compiled = (files: readonly string[]): readonly string[] => {
    const config = { extends: `${root}/tsconfig.base.json`, compilerOptions, files }
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config))
    const command = ['-p', 'tsconfig.json', '--pretty', 'false']
    const { stdout } = spawnSync(join(root, 'node_modules/.bin/tsc'), command, { cwd: folder, encoding: 'utf8' })
    return stdout.split('\n').filter((line) => line !== '')
  }
  const isAlone = ({ tags }: Block): boolean => tags.includes('alone')
  const together = programs.filter((block) => !isAlone(block))
  compilerSays = [together, ...programs.filter(isAlone).map((block) => [block])].flatMap((all) =>
    compiled(all.map(fileOf)),
  )
  await installPackage(join(folder, 'run'))
  const runnable = programs.filter(({ tags }) => !tags.includes('no-run')).map(fileOf)
  const made = spawnSync(
    join(root, 'node_modules/.bin/tsc'),
    [...transpiling.split(' '), '--outDir', 'run', ...runnable],
    {
      cwd: folder,
      encoding: 'utf8',
    },
  )
  if (made.status !== 0) throw new Error(made.stdout)
}, 60_000)

/** Block by block: what they import is neither looked at nor translated. */
const transpiling =
  '--ignoreConfig --noCheck --noResolve --target es2023 --module nodenext --moduleDetection force --inlineSourceMap'

/** Everything else is found in the folder above. */
async function installPackage(place: string): Promise<void> {
  const installed = join(place, 'node_modules/holdfast')
  mkdirSync(installed, { recursive: true })
  copyFileSync('package.json', join(installed, 'package.json'))
  symlinkSync(join(await translatedPackage(), 'src'), join(installed, 'dist'))
}

afterAll(() => rmSync(folder, { recursive: true }))

describe('the pages', () => {
  it('have blocks', () => {
    expect(blocks.length).toBeGreaterThan(0)
  })

  it('compile, seen as a whole', () => {
    const known = programs.map(fileOf)
    expect(compilerSays.filter((line) => !known.some((file) => line.startsWith(file)))).toEqual([])
  })

  const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as { scripts: Record<string, string> }
  for (const { page, line, script } of commands) {
    it(`${page}:${line} names the script ${script}, which exists`, () => {
      expect(Object.keys(scripts)).toContain(script)
    })
  }
})

function proveBlock(block: Block): void {
  it('type-checks', () => {
    expect(compilerSays.filter((line) => line.startsWith(fileOf(block)))).toEqual([])
  })

  if (block.tags.includes('no-run')) return

  it('runs', { timeout: 30_000 }, () => {
    const cwd = join(folder, `run-${block.page.replaceAll('/', '-')}-${block.line}`)
    mkdirSync(cwd)
    const program = join(folder, 'run', fileOf(block).replace(/ts$/, 'js'))
    const { status, signal, stderr } = spawnSync(process.execPath, ['--enable-source-maps', program], {
      cwd,
      encoding: 'utf8',
      timeout: 20_000,
    })
    const ended = signal === null ? `exit code ${status}` : `still running after 20 s: ${signal}`
    expect(status === 0 ? ended : `${ended}\n${stderr}`, `${block.page}:${block.line}`).toBe('exit code 0')
  })
}

for (const block of programs) {
  describe(`${block.page}:${block.line}`, () => {
    proveBlock(block)
  })
}
