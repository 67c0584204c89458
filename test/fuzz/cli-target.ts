// The command line, with any arguments: it leaves with a code that says who must act, prints nothing that a terminal would obey,
// and with --json nothing but JSON.

import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Io, Output, ProcessSignal } from '../../src/cli/io.ts'
import { runCli } from '../../src/cli/program.ts'
import { visible } from '../../src/core/text/printable.ts'
import { fc } from '../support/properties.ts'
import { hostileText, hostileTexts, someId } from './hostile-text.ts'
import { commands } from '../cli/commands.ts'
import { holds, target, type Target } from './target.ts'

// With one that there is not.
const words = [...commands, 'help', 'rnus']
export const flags = [
  '--json',
  '--verbose',
  '--all',
  '--yes',
  '--dry-run',
  '--preview',
  '--now',
  '--full',
  '--deleted',
  '--discard',
  '--payloads',
  '--adopt-roles',
  '--citus',
  '--to-topic',
  '--ended',
  '--observed',
  '--pause',
  '--resume',
  '--abandon',
  '--help',
  '-V',
  '--',
]
export const options = [
  '--type',
  '--prefix',
  '--status',
  '--key',
  '--idempotency-key',
  '--tag',
  '--version',
  '--parent',
  '--since',
  '--until',
  '--limit',
  '--after',
  '--reason',
  '--note',
  '--drop',
  '--result',
  '--id',
  '--command-id',
  '--scope',
  '--on-conflict',
  '--meta',
  '--priority',
  '--run-at',
  '--delay',
  '--timeout',
  '--expires-in',
  '--concurrency',
  '--lease',
  '--schema',
  '--shards',
  '--views',
  '--roles',
  '--owner',
  '--rate',
  '--shutdown-timeout',
  '--watch',
  '--sample',
  '--skip',
  '--topic',
  '--run',
  '--to',
  '--file',
  '--workflows',
  '--against',
  '--at',
  '--format',
]
/** What commands take for good, so that some cases come further than to the first refusal. */
const sound = [
  'fuzz.greet',
  'pending',
  'failed',
  someId,
  '1',
  '{"a":1}',
  'null',
  '10m',
  'a=b',
  '1={}',
  'operator',
  'go',
]

const place = mkdtempSync(join(tmpdir(), 'holdfast-fuzz-'))
mkdirSync(join(place, 'stores'))
process.on('exit', () => rmSync(place, { recursive: true, force: true }))

const value = fc.oneof(hostileText, fc.constantFrom(...sound))
/** Files stay in our folder, and no server is asked. */
const store = fc
  .tuple(
    fc.constantFrom('sqlite:', 'libsql:', 'sqlite:file:', 'sqlite:file://', 'libsql:file:', 'mysql:', 'memory:', ''),
    fc.boolean(),
    hostileText,
  )
  .map(([scheme, isFile, text]) =>
    isFile
      ? `${scheme}${join(place, 'stores')}/${text.replaceAll('/', '_').slice(0, 20)}`
      : `${scheme}${/^(?:sqlite|libsql)/.test(scheme) ? '' : text.replace(/^(?:sqlite|libsql|turso|postgres)/, '')}`,
  )
const piece: fc.Arbitrary<readonly string[]> = fc.oneof(
  { weight: 3, arbitrary: fc.tuple(fc.constantFrom(...options), value) },
  { weight: 2, arbitrary: fc.constantFrom(...flags).map((flag) => [flag]) },
  { weight: 3, arbitrary: value.map((text) => [text]) },
  { weight: 1, arbitrary: store.map((text) => ['--store', text]) },
)
const argv = fc
  .tuple(fc.constantFrom(...words), fc.array(piece, { maxLength: 5 }), fc.boolean(), hostileText)
  .map(([command, pieces, isPlain, text]) => [isPlain ? command : text, ...pieces.flat()])

const module = fileURLToPath(new URL('cli-module.ts', import.meta.url))
const codes = [0, 2, 3, 4, 5, 6, 7, 130]

async function perform(args: readonly string[]): Promise<void> {
  const listeners = new Set<(signal: ProcessSignal) => void>()
  const texts = { stdout: '', stderr: '' }
  const output = (name: 'stdout' | 'stderr'): Output => ({
    isTerminal: false,
    columns: Infinity,
    write: async (text) => void (texts[name] += text),
  })
  // A worker works until it is stopped: without a module it is refused before.
  const env = args.includes('worker') || args.includes('dev') ? {} : { HOLDFAST_WORKFLOWS: module }
  const io: Io = {
    argv: args,
    env,
    cwd: place,
    stdout: output('stdout'),
    stderr: output('stderr'),
    stdin: (async function* () {
      yield ''
    })(),
    isInteractive: false,
    now: () => Date.now(),
    program: { runtime: process.execPath, options: [], script: 'no-such-script.js' },
    supervisor: null,
    onSignal: (listener) => {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
  // Who waits for a run that nobody performs is asked to leave.
  const impatient = setTimeout(() => listeners.forEach((listener) => listener('SIGINT')), 20)
  const code = await runCli(io).finally(() => clearTimeout(impatient))
  holds(codes.includes(code), `It left with ${code}: ${texts.stderr}`)
  for (const line of `${texts.stdout}${texts.stderr}`.split('\n')) {
    holds(visible(line) === line, `It prints what a terminal would obey: ${JSON.stringify(line)}`)
  }
}

const arguments_ = target({
  name: 'arguments of the command line',
  perMillion: 4_000,
  cases: argv,
  corpus: hostileTexts.flatMap((text) => [
    [text],
    ['show', text],
    ['runs', '--status', text],
    ['start', 'fuzz.greet', text, '--key', text],
  ]),
  run: perform,
})

export const cliTargets: readonly Target[] = [arguments_]
