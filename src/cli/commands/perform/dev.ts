// `holdfast dev`: a worker for development, which is restarted whenever a file of the project changes. Its lease and its
// shutdown timeout are short, so that neither a reload nor a crash keeps runs waiting for long.

import { relative, resolve } from 'node:path'
import type { Command } from 'commander'
import { formatMs, toMs, type Duration } from '../../../core/definition/duration.ts'
import { visible } from '../../../core/text/printable.ts'
import { examples, Interrupted, noModule, type Act, type Call } from '../../command-call.ts'
import type { WorkingMessage } from '../../dev/child-worker.ts'
import { DevLoop } from '../../dev/dev-loop.ts'
import { projectOf, runtimeOptionsFor } from '../../dev/project.ts'
import type { Cause, Ended, DevReport } from '../../dev/reload-state.ts'
import { WatchedFiles } from '../../dev/watched-files.ts'
import { collected, duration, whole } from '../../input/option-values.ts'
import { amount } from '../../output/text.ts'
import { locateModule } from '../../input/workflow-module.ts'

interface DevOptions {
  readonly concurrency?: number
  readonly lease: Duration
  readonly shutdownTimeout: Duration
  readonly watch?: readonly string[]
}

/** How long a worker may take beyond its shutdown timeout to print its last lines, before it is killed. */
const lastWordsMs = 3_000

export function registerDev(program: Command, act: Act): void {
  const command = program
    .command('dev')
    .summary('run a worker that reloads when the code changes')
    .description(
      'Runs a worker in a separate process, and restarts it whenever a source file changes in the project of the module: ' +
        'the nearest folder above it that has a package.json, without node_modules. A worker that cannot load the module is ' +
        'started again with the next change, one that crashed at once. The first Ctrl-C stops everything gracefully (exit code ' +
        '0), a second one at once. TypeScript is read by tsx if it is installed, or else by the runtime itself.',
    )
    .argument('[module]', 'the module, instead of --workflows')
    .option('--concurrency <n>', 'how many runs move at once (100)', whole('--concurrency', 1))
    .option('--lease <duration>', 'how long a crash keeps its runs waiting', duration('--lease'), '5s')
    .option(
      '--shutdown-timeout <duration>',
      'how long a reload waits for steps that are under way',
      duration('--shutdown-timeout'),
      '2s',
    )
    .option('--watch <path>', 'also reload when any file changes there; may be given again', collected)
    .addHelpText(
      'after',
      examples(
        'dev ./workflows.ts --store sqlite:app.db',
        'dev --watch ./prompts --watch ../shared/src',
        'dev ./workflows.js --shutdown-timeout 10s',
      ),
    )
  act(command, async (call) => {
    const options = command.opts<DevOptions>()
    const name = call.moduleName(command.args[0])
    if (name === undefined) throw noModule()
    const module = locateModule(name, call.io.cwd)
    await develop(call, { name, module }, options)
  })
}

interface Developed {
  /** As the user named it. */
  readonly name: string
  readonly module: string
}

async function develop(call: Call, { name, module }: Developed, options: DevOptions): Promise<void> {
  const { io } = call
  const project = projectOf(module)
  const shown = (file: string): string => relative(io.cwd, file) || '.'
  const loop = new DevLoop({
    command: commandOf(call, module, options),
    cwd: io.cwd,
    env: {
      ...io.env,
      HOLDFAST_WORKFLOWS: name,
      ...(call.options.store === undefined ? {} : { HOLDFAST_STORE: call.options.store }),
    },
    now: io.now,
    patienceMs: toMs(options.shutdownTimeout, '--shutdown-timeout') + lastWordsMs,
    report: reporter(call, shown(project)),
  })
  const files = new WatchedFiles(
    [
      { path: project },
      { path: module },
      ...(options.watch ?? []).map((path) => ({ path: resolve(io.cwd, path), everything: true })),
    ],
    (file) => loop.changed(shown(file)),
  )
  call.handleSignals(() => loop.interrupted())
  await files.start()
  loop.start()
  const isAtOnce = await loop.ended
  await files.stop()
  if (isAtOnce) throw new Interrupted('SIGINT')
}

/** The command line of the worker. Values that may be secret go through its environment. */
function commandOf({ io, options, printer }: Call, module: string, worker: DevOptions): readonly string[] {
  const { runtime, options: given, script } = io.program
  const { concurrency, lease, shutdownTimeout } = worker
  return [
    runtime,
    ...given,
    ...runtimeOptionsFor(module, [...given, io.env['NODE_OPTIONS'] ?? '']),
    script,
    'worker',
    '--supervised',
    `--lease=${toMs(lease, '--lease')}ms`,
    `--shutdown-timeout=${toMs(shutdownTimeout, '--shutdown-timeout')}ms`,
    ...(concurrency === undefined ? [] : [`--concurrency=${concurrency}`]),
    ...(options.json === true ? ['--json'] : []),
    ...(printer.isVerbose ? ['--verbose'] : []),
  ]
}

function reporter({ printer }: Call, project: string): (event: DevReport, serves: WorkingMessage | null) => void {
  /** The list that was printed last: an unchanged list is not repeated. */
  let listed = ''
  return (event, serves) => {
    const workflows = serves?.workflows ?? []
    const list = workflows.map(({ type, version }) => `  ${visible(type)} v${version}`)
    const isNew = event.event === 'working' && list.join('\n') !== listed
    if (isNew) listed = list.join('\n')
    const document = event.event === 'working' ? { ...event, workflows } : event
    const lines = linesOf(event, { project, ...(isNew ? { list, store: serves?.store ?? '' } : {}) })
    // A failure means that the reader is gone; the next line fails, too.
    printer.answer(document, ...lines).catch(() => undefined)
  }
}

interface Listing {
  readonly project: string
  /** The workflows, if they have changed. */
  readonly list?: readonly string[]
  readonly store?: string
}

function linesOf(event: DevReport, { project, list, store = '' }: Listing): readonly string[] {
  switch (event.event) {
    case 'working': {
      const serves = list === undefined ? [] : [`Serves ${amount(list.length, 'workflow')} from ${store}:`, ...list]
      if (event.cause.kind !== 'begin') return [causeText(event.cause), ...serves]
      return [...serves, `Reloads when a source file in ${visible(project)} changes. Ctrl-C stops it.`]
    }
    case 'ended':
      return [`${endText(event.ended)}${afterText(event.cause)}. ${againText(event.againInMs)}`]
    case 'stopping':
      return ['Stopping. Ctrl-C again stops at once.']
    case 'stopped':
      return ['Stopped.']
  }
}

function causeText(cause: Cause): string {
  return cause.kind === 'change' ? `Reloaded after a change in ${visible(cause.file)}.` : 'The worker runs again.'
}

function endText({ code, signal }: Ended): string {
  return signal === null ? `The worker exited with code ${code ?? 'unknown'}` : `The worker was ended by ${signal}`
}

/** The runtime does not name the file of a syntax error; the file that was changed last is the most likely one. */
function afterText(cause: Cause): string {
  return cause.kind === 'change' ? ` after a change in ${visible(cause.file)}` : ''
}

function againText(againInMs: number | null): string {
  if (againInMs === null) return 'It starts again when a file changes.'
  return againInMs === 0 ? 'It starts again.' : `It starts again in ${formatMs(againInMs)}.`
}
