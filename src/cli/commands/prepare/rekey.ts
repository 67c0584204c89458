// `holdfast rekey`: encrypts payloads again that were written with other keys than the current one.

import type { Command } from 'commander'
import { examples, Interrupted, type Act } from '../../command-call.ts'
import { HoldfastError } from '../../../core/errors/error.ts'
import { quotedText, visible } from '../../../core/text/printable.ts'
import { whole } from '../../input/option-values.ts'
import { Progress } from '../../output/progress.ts'
import { amount } from '../../output/text.ts'

/** Runs are counted only up to this: a larger total is of no use to a progress bar. */
const countedAtMost = 1_000_000

interface RekeyCommandOptions {
  readonly rate?: number
  readonly after?: string
}

export function registerRekey(program: Command, act: Act): void {
  const command = program
    .command('rekey')
    .summary('encrypt payloads again with the current key')
    .description(
      'Encrypts all payloads again that were written with another key than the current one of the codec, which the module of ' +
        '--workflows configures. Workers may continue meanwhile: a run that is being performed is skipped, and counted at the ' +
        'end. It may be stopped at any time and called again. Retire a key only when nothing is left that needs it, and ' +
        'keep it as long as there are backups. Exits with code 5 if a run cannot be read.',
    )
    .option('--rate <n>', 'at most this many runs or dead letters a second', whole('--rate', 1), 500)
    .option('--after <next>', 'continue where an earlier call was stopped')
    .addHelpText(
      'after',
      examples(
        'rekey --store sqlite:app.db --workflows ./workflows.js',
        'rekey --store sqlite:app.db --workflows ./workflows.js --rate 50 --json',
      ),
    )
  act(command, async (call) => {
    const { rate, after } = command.opts<RekeyCommandOptions>()
    const { holdfast } = await call.open({ store: 'existing' })
    const { printer, io } = call
    const stop = new AbortController()
    call.handleSignals((signal) => stop.abort(new Interrupted(signal)))
    const { count: kept } = await holdfast.count({}, { atMost: countedAtMost })
    const { count: removed } = await holdfast.count({ deleted: true }, { atMost: countedAtMost })
    const progress = new Progress(io, printer, kept + removed, 'Looked at')
    const done = await holdfast.rekey({
      abortSignal: stop.signal,
      ...(rate === undefined ? {} : { rate }),
      ...(after === undefined ? {} : { after }),
      onProgress: ({ runs, payloads }) => void progress.at(runs, `${amount(payloads, 'payload')} encrypted anew`),
    })
    await progress.end()
    const { runs, rewritten, payloads, held, unreadable, unreadableRuns, missingKeys, next } = done
    const keys = missingKeys.map((key) => quotedText(key)).join(', ')
    await printer.answer(
      done,
      `Looked at ${amount(runs, 'run')}, and encrypted ${amount(payloads, 'payload')} of ${amount(rewritten, 'run')} anew.`,
      ...(held === 0 ? [] : [`${amount(held, 'run')} had a holder: call this again later.`]),
      ...(unreadable === 0
        ? []
        : [
            `${amount(unreadable, 'run')} cannot be read${keys === '' ? '' : `: ${keys} is missing`}.`,
            ...unreadableRuns.map(({ runId, why }) => `  ${visible(runId)}  ${visible(why)}`),
          ]),
      ...(next === null ? [] : [`It was stopped. Continue with: holdfast rekey --after ${next}`]),
    )
    if (next !== null) throw stop.signal.reason
    if (unreadable === 0) return
    throw new HoldfastError('PAYLOAD_CORRUPT', `${amount(unreadable, 'run')} could not be encrypted anew.`)
  })
}
