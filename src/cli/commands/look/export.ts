// `holdfast export`: a run with its whole journal as a file, to be replayed anywhere.

import { writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Command } from 'commander'
import { messageOf } from '../../../core/errors/error.ts'
import { examples, type Act } from '../../command-call.ts'
import { harmlessJson, visible } from '../../../core/text/printable.ts'
import { addNameOptions, openRun, type NameOptions } from '../../input/named-run.ts'
import { amount } from '../../output/text.ts'
import { quoted, usage } from '../../usage.ts'

interface ExportOptions extends NameOptions {
  readonly out?: string
}

export function registerExport(program: Command, act: Act): void {
  const command = program
    .command('export')
    .summary('write a run and its journal to a file')
    .description(
      'Prints a run with its whole journal as JSON, or writes it to a file that only you can read: for replay() in a test, or ' +
        'for check --against. Payloads are in plain text, even if the store has them encrypted: name the module that has ' +
        'their codec with --workflows. The secrets of completion tokens are blanked, wherever they appear as text.',
    )
  addNameOptions(command)
    .option('--out <file>', 'write it to this file, which must not exist')
    .addHelpText(
      'after',
      examples(
        'export 019a8b6e-7c1d-7000-8f3a-5b2c9d4e6f70 --out test/journals/order-42.json',
        'export --type shop.order --key order-42 --workflows ./workflows.js > order-42.json',
      ),
    )
  act(command, async (call) => {
    const { out, ...named } = command.opts<ExportOptions>()
    const { printer } = call
    const { holdfast, id } = await openRun(call, command.args[0], named, { migrate: false })
    const exported = await holdfast.export(id)
    const lines = JSON.stringify(exported, null, 2).split('\n').map(harmlessJson)
    if (out === undefined) return printer.answer(exported, ...lines)
    writePrivately(resolve(call.io.cwd, out), `${lines.join('\n')}\n`, out)
    const entries = exported.entries.length
    await printer.answer(
      { id, file: out, entries },
      `Wrote ${amount(entries, 'entry', 'entries')} of run ${id} to ${visible(out)}. Its payloads are in plain text.`,
    )
  })
}

function writePrivately(path: string, text: string, named: string): void {
  try {
    // An existing file is not replaced: its mode may let other users read it.
    writeFileSync(path, text, { mode: 0o600, flag: 'wx' })
  } catch (error) {
    const isThere = error instanceof Error && 'code' in error && error.code === 'EEXIST'
    const why = isThere ? 'it exists. Remove it, or choose another name' : visible(messageOf(error))
    throw usage(`The file ${quoted(named)} cannot be written: ${why}.`, { file: named }, error)
  }
}
