// The pipeline of examples/deploy-gate, step by step as a runner performs it: its very commands in a shell, in a project that
// holds a build, against a file with runs that an older build left behind. Only what comes from outside is replaced: npm does
// nothing but say what it was asked for, and npx finds the command line in this repository.

import { spawn } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'
import * as deployed from '../../examples/deploy-gate/deployed.ts'
import { createHoldfast } from '../../src/index.ts'

const pipeline = readFileSync('examples/deploy-gate/deploy.yml', 'utf8')

interface Step {
  readonly name: string
  readonly run: string
}

/** The named steps of the pipeline, and the commands of each. */
function stepsOf(yaml: string): readonly Step[] {
  return yaml
    .split(/^ {6}- /m)
    .slice(1)
    .flatMap((text) => {
      const [, name] = /^name: (.+)$/m.exec(text) ?? []
      const [, line, block] = /^ {8}run: (?:(?!\|)(.+)|\|\n((?: {10}.*\n)+))/m.exec(text) ?? []
      return name === undefined ? [] : [{ name, run: line ?? (block ?? '').replaceAll(/^ {10}/gm, '') }]
    })
}

/** A project whose build exports the workflows of that file, and the shell that a runner would give it. */
function project(build: string): { readonly cwd: string; readonly path: string } {
  const cwd = mkdtempSync(join(tmpdir(), 'holdfast-deploy-'))
  onTestFinished(() => rmSync(cwd, { recursive: true }))
  mkdirSync(join(cwd, 'dist'))
  mkdirSync(join(cwd, 'bin'))
  writeFileSync(join(cwd, 'package.json'), '{ "type": "module" }')
  const workflows = pathToFileURL(resolve('examples/deploy-gate', build)).href
  writeFileSync(join(cwd, 'dist/workflows.js'), `export * from '${workflows}'\n`)
  const node = `"${process.execPath}" --import "${import.meta.resolve('tsx')}" "${resolve('src/cli/main.ts')}"`
  command(join(cwd, 'bin/npm'), 'echo "npm $*"')
  command(join(cwd, 'bin/npx'), `test "$1" = holdfast && shift && exec ${node} "$@"`)
  return { cwd, path: `${join(cwd, 'bin')}:${process.env['PATH'] ?? ''}` }
}

function command(path: string, script: string): void {
  writeFileSync(path, `#!/bin/sh\n${script}\n`)
  chmodSync(path, 0o755)
}

/** Performs the steps one after the other, up to the first that fails. */
async function perform(build: string, store: string): Promise<{ readonly code: number; readonly said: string }> {
  const { cwd, path } = project(build)
  let said = ''
  for (const { name, run } of stepsOf(pipeline)) {
    said += `# ${name}\n`
    const shell = spawn('sh', ['-e', '-c', run], { cwd, env: { ...process.env, PATH: path, LIVE_STORE: store } })
    for (const stream of [shell.stdout, shell.stderr]) stream.on('data', (text: Buffer) => (said += text.toString()))
    const code = await new Promise<number>((done) => void shell.once('close', (status) => done(status ?? 1)))
    if (code !== 0) return { code, said }
  }
  return { code: 0, said }
}

/** A file with orders that were charged and wait to be shipped. */
async function liveOrders(count: number): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-live-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const store = `sqlite:${join(folder, 'live.db')}`
  const quiet = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }
  const holdfast = await createHoldfast({ store, workflows: deployed, logger: quiet })
  await holdfast.work()
  for (let id = 0; id < count; id += 1) await holdfast.start(deployed.order, { id: String(id), total: id })
  await expect.poll(async () => (await holdfast.count({ status: 'waiting' })).count).toBe(count)
  await holdfast.close()
  return store
}

it('deploys a build that harms no live run', async () => {
  const { code, said } = await perform('compatible.ts', await liveOrders(4))
  expect(said).toMatch(
    /^# Build\nnpm ci\nnpm run build\n# Gate\nReplayed 4 runs from .*, and this build agrees with every one\.\n/,
  )
  expect(said).toMatch(/# Deploy\nnpm run deploy\n$/)
  expect(code).toBe(0)
}, 60_000)

it('does not deploy one that would, and shows the difference', async () => {
  const { code, said } = await perform('incompatible.ts', await liveOrders(4))
  expect(code).toBe(6)
  expect(said).toContain('4 runs of shop.order v1 would drift')
  expect(said).toContain('- entry 2 of the journal: step-succeeded "charge"')
  expect(said).toMatch(/\+ the code asks for: step "reserve", at .*incompatible\.ts:\d+/)
  expect(said).not.toContain('# Deploy')
}, 60_000)

it('is what docs/deploy-gate.md shows', () => {
  expect(readFileSync('docs/deploy-gate.md', 'utf8')).toContain(`\`\`\`yaml\n${pipeline}\`\`\``)
})
