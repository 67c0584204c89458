// The command line as a function: arguments and streams in, an exit code out. It registers the commands, and turns every
// thrown error into a message and a code.

import { readFileSync } from 'node:fs'
import { Command, CommanderError } from 'commander'
import type { HoldfastError } from '../core/errors/error.ts'
import { addCommonOptions, Call, examples, Interrupted, type Act, type CommonOptions } from './command-call.ts'
import { registerWorker } from './commands/perform/worker.ts'
import { registerDev } from './commands/perform/dev.ts'
import { registerStart } from './commands/perform/start.ts'
import { registerAsk } from './commands/perform/ask.ts'
import { registerEnqueue, registerExecute } from './commands/perform/execute.ts'
import { registerSignal } from './commands/perform/signal.ts'
import { registerRuns } from './commands/look/runs.ts'
import { registerShow } from './commands/look/show.ts'
import { registerJournal } from './commands/look/journal.ts'
import { registerEvents, registerHistory, registerState } from './commands/look/instance.ts'
import { registerInspect } from './commands/look/inspect.ts'
import { registerDiagram } from './commands/look/diagram.ts'
import { registerExport } from './commands/look/export.ts'
import { registerProjections, registerRebuild } from './commands/look/projections.ts'
import { registerWatch } from './commands/look/watch.ts'
import { registerDeadLetters } from './commands/look/dead-letters.ts'
import { registerCancel } from './commands/control/cancel.ts'
import { registerPause } from './commands/control/pause.ts'
import { registerResume } from './commands/control/resume.ts'
import { registerRetry } from './commands/control/retry.ts'
import { registerRemove } from './commands/control/remove.ts'
import { registerMigrate } from './commands/prepare/migrate.ts'
import { registerCheck } from './commands/prepare/check.ts'
import { registerDoctor } from './commands/prepare/doctor.ts'
import { registerRekey } from './commands/prepare/rekey.ts'
import { exitCodeOf, exitCodeRows } from './exit-code.ts'
import { OutputClosed, type Io } from './io.ts'
import { quoted, usage } from './usage.ts'

/** The groups of the help, each a folder of `commands/`. */
const groups: readonly (readonly [string, readonly ((program: Command, act: Act) => void)[]])[] = [
  ['Perform runs:', [registerWorker, registerDev, registerStart, registerSignal, registerAsk]],
  ['Pass inputs to deciders:', [registerExecute, registerEnqueue]],
  ['Look at runs:', [registerRuns, registerShow, registerJournal, registerExport, registerWatch, registerDeadLetters]],
  [
    'Look at instances of deciders:',
    [registerInspect, registerState, registerEvents, registerHistory, registerDiagram],
  ],
  ['Projections:', [registerProjections, registerRebuild]],
  ['Control runs:', [registerCancel, registerPause, registerResume, registerRetry, registerRemove]],
  ['Prepare:', [registerMigrate, registerCheck, registerDoctor, registerRekey]],
]

/** Performs one command line. Returns the exit code; never throws. */
export async function runCli(io: Io): Promise<number> {
  // The output of the argument library is written afterwards, so that it can be awaited.
  const pages: string[] = []
  const program = createProgram(io, pages)
  try {
    if (io.argv.length === 0) program.outputHelp()
    else await program.parseAsync([...io.argv], { from: 'user' })
    await io.stdout.write(pages.join(''))
    return 0
  } catch (error) {
    return await endingOf(error, io, pages).catch(() => 1)
  }
}

async function endingOf(error: unknown, io: Io, pages: readonly string[]): Promise<number> {
  if (error instanceof OutputClosed) return 0
  if (error instanceof Interrupted) return error.exitCode
  if (error instanceof CommanderError && error.exitCode === 0) {
    await io.stdout.write(pages.join('')).catch(() => undefined)
    return 0
  }
  const known = error instanceof CommanderError ? usageOf(error, io.argv) : error
  // The options may be wrong, so the arguments themselves are searched.
  const given = io.argv.includes('--') ? io.argv.slice(0, io.argv.indexOf('--')) : io.argv
  const call = new Call(io, { json: given.includes('--json'), verbose: given.includes('--verbose') })
  await call.printer.error(known)
  return exitCodeOf(known)
}

function createProgram(io: Io, pages: string[]): Command {
  const program = new Command('holdfast')
    .description('Starts, performs, looks at and controls durable workflows.')
    .version(packageVersion(), '-V, --version', 'print the version')
    .enablePositionalOptions()
    .exitOverride()
    .showSuggestionAfterError()
    .configureOutput({
      writeOut: (text) => void pages.push(text),
      writeErr: (text) => void pages.push(text),
      // Errors are printed once, by us, and escaped.
      outputError: () => undefined,
      getOutHelpWidth: () => Math.min(io.stdout.columns, 100),
      getErrHelpWidth: () => Math.min(io.stdout.columns, 100),
      getOutHasColors: () => false,
      getErrHasColors: () => false,
    })
  addCommonOptions(program)
  const act: Act = (command, work) => {
    addCommonOptions(command).action(async () => {
      // They may stand before the name of the command, or after it.
      const options: CommonOptions = { ...program.opts<CommonOptions>(), ...command.opts<CommonOptions>() }
      await new Call(io, options).perform(work)
    })
  }
  for (const [heading, registers] of groups) {
    program.commandsGroup(heading)
    for (const register of registers) register(program, act)
  }
  const codes = exitCodeRows.map(([code, meaning]) => `  ${String(code).padStart(3)}  ${meaning}`).join('\n')
  return program.addHelpText(
    'after',
    `\nExit codes:\n${codes}\n${examples(
      'worker --store sqlite:app.db --workflows ./workflows.js',
      `start shop.order '{"id":"42"}' --store sqlite:app.db --workflows ./workflows.js --wait`,
      'runs --store sqlite:app.db --status failed',
    )}`,
  )
}

/** Commands under the names that they have elsewhere, too far from ours to be taken for a misspelling. */
const otherNames: ReadonlyMap<string, string> = new Map([
  ['list', 'runs'],
  ['ls', 'runs'],
  ['ps', 'runs'],
  ['status', 'show'],
  ['get', 'show'],
  ['logs', 'journal'],
  ['send', 'signal'],
])

/** An error of the argument library, in our form. */
function usageOf({ message, code }: CommanderError, argv: readonly string[]): HoldfastError {
  if (code === 'commander.help') {
    const which = argv[0] === 'help' ? `There is no command ${quoted(argv[1] ?? '')}.` : 'Which command?'
    return usage(`${which} See holdfast --help.`)
  }
  const meant =
    code === 'commander.unknownCommand' ? otherNames.get(argv.find((one) => !one.startsWith('-')) ?? '') : undefined
  if (meant !== undefined) return usage(`There is no such command. Did you mean ${meant}? See holdfast --help.`)
  const text = message.replace(/^error: /, '').replace(/\n(?=\(Did you mean [^\n]*\)$)/, '. ')
  const sentence = text.charAt(0).toUpperCase() + text.slice(1)
  return usage(`${sentence}${/[.)]$/.test(sentence) ? '' : '.'} See holdfast --help.`, {
    parser: code.replace('commander.', ''),
  })
}

function packageVersion(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
  return (JSON.parse(text) as { readonly version: string }).version
}
