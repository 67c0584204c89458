// `holdfast dead-letters`: lists messages that runs had not read when they ended, sends one of them again, or discards it.

import type { Command } from 'commander'
import type {
  DeadLetterReference,
  DeadLetterView,
  RetryDeadLetterOptions,
  RetryDeadLetterOutcome,
} from '../../../client/send/dead-letters.ts'
import { formatMs } from '../../../core/definition/duration.ts'
import { HoldfastError } from '../../../core/errors/error.ts'
import type { Holdfast } from '../../../holdfast.ts'
import { examples, type Act, type Call, type Opened } from '../../command-call.ts'
import { visible } from '../../../core/text/printable.ts'
import { whole } from '../../input/option-values.ts'
import { jsonLine } from '../../output/plain-json.ts'
import { checkRunId } from '../../input/run-filter.ts'
import { colourOfStatus } from '../../output/run-lines.ts'
import { table } from '../../output/text.ts'
import { quoted, usage } from '../../usage.ts'

interface DeadLettersOptions {
  readonly topic?: string
  readonly run?: string
  readonly limit: number
  readonly after?: string
  readonly to?: string
  readonly toTopic?: boolean
  readonly discard?: boolean
}

export function registerDeadLetters(program: Command, act: Act): void {
  const command = program
    .command('dead-letters')
    .summary('list messages that ended runs had not read; retry or discard one')
    .description(
      'Lists the dead letters, newest first: messages to runs that ended without reading them, and whose topic keeps them. ' +
        'With the run and the id of one letter, sends it again or discards it.',
    )
    .argument('[run]', 'the run that the letter was for')
    .argument('[id]', 'the id of the letter')
    .option('--to <run>', 'send it to this run')
    .option('--to-topic', 'send it to its topic, which the module must export')
    .option('--discard', 'discard it')
    .option('--topic <name>', 'list those of this topic')
    .option('--run <run>', 'list those that were for this run')
    .option('--limit <n>', 'how many on one page, at most 200', whole('--limit', 1), 50)
    .option('--after <place>', 'the page after this one')
    .addHelpText(
      'after',
      examples(
        'dead-letters --topic paid',
        'dead-letters 019a8b6e-7c1d-7000-8f3a-5b2c9d4e6f70 payment-7 --to 019a8b6e-7c1d-7000-8f3a-5b2c9d4e6f71',
        'dead-letters 019a8b6e-7c1d-7000-8f3a-5b2c9d4e6f70 payment-7 --to-topic --workflows ./workflows.js',
        'dead-letters 019a8b6e-7c1d-7000-8f3a-5b2c9d4e6f70 payment-7 --discard',
      ),
    )
  act(command, async (call) => {
    const options = command.opts<DeadLettersOptions>()
    const [runId, id] = command.args
    const choices = [options.to !== undefined, options.toTopic === true, options.discard === true].filter(
      Boolean,
    ).length
    if (runId === undefined) {
      if (choices > 0) throw usage('Which letter? Name the run that it was for, and its id.')
      return list(call, options)
    }
    if (id === undefined) throw usage(`Which letter? Name its id, too; or list them with --run ${runId}.`)
    if (choices !== 1) throw usage('Say what to do with the letter: one of --to <run>, --to-topic and --discard.')
    const letter = { runId: checkRunId(runId), id }
    const to = options.to === undefined ? null : checkRunId(options.to)
    const opened = await call.open({ store: 'existing' })
    if (options.discard === true) return discard(call, opened.holdfast, letter)
    return retry(call, opened, letter, to)
  })
}

async function list(call: Call, options: DeadLettersOptions): Promise<void> {
  const { printer, io } = call
  const { topic, run, limit, after } = options
  const wanted = {
    limit,
    ...(topic === undefined ? {} : { name: topic }),
    ...(run === undefined ? {} : { run: checkRunId(run) }),
    ...(after === undefined ? {} : { after }),
  }
  const { holdfast } = await call.open({ store: 'existing', onlyLooks: true })
  const { letters, next } = await holdfast.deadLetters(wanted)
  if (printer.isJson) return printer.json({ letters, next })
  if (letters.length === 0) {
    return printer.note(
      'There are no dead letters. What gave up, an effect too, is a failed run: holdfast runs --status failed',
    )
  }
  await printer.lines(letterLines(letters, printer.columns, printer.paint, io.now()))
  if (next !== null) await printer.note(`There are more. The next page: the same with --after "${visible(next)}"`)
}

function letterLines(
  letters: readonly DeadLetterView[],
  width: number,
  paint: Parameters<typeof table>[3],
  now: number,
): readonly string[] {
  const columns = [
    { title: 'RUN' },
    { title: 'ID' },
    { title: 'TOPIC', least: 12 },
    { title: 'STATUS', colour: colourOfStatus, dispensable: 2 },
    { title: 'AGE', dispensable: 1 },
    { title: 'PAYLOAD', least: 16, dispensable: 3 },
  ]
  const rows = letters.map(({ runId, id, name, status, at, payload }) => [
    visible(runId),
    visible(id),
    visible(name),
    status,
    formatMs(Math.max(0, now - at.getTime())),
    jsonLine(payload),
  ])
  return table(columns, rows, width, paint)
}

async function retry(
  { printer }: Call,
  { holdfast, module }: Opened,
  letter: DeadLetterReference,
  to: string | null,
): Promise<void> {
  const where = to === null ? { to: await topicOf(holdfast, module, letter) } : { to }
  const sent: RetryDeadLetterOutcome = await holdfast.retryDeadLetter(letter, where)
  switch (sent.outcome) {
    case 'not-dead':
      throw notDead(letter)
    case 'target-not-found':
      throw new HoldfastError('RUN_NOT_FOUND', `There is no run ${to ?? ''} in this store. The letter stays.`)
    case 'target-terminated':
      throw new HoldfastError('WRONG_STATUS', `Run ${sent.runId} is over: it is ${sent.status}. The letter stays.`)
    default:
      await printer.answer(
        { ...letter, ...sent },
        `Sent ${visible(letter.id)} ${to === null ? 'to its topic' : `to ${to}`}.`,
      )
  }
}

/** Only the module that declares a topic knows how it delivers. */
async function topicOf(
  holdfast: Holdfast,
  module: Opened['module'],
  { runId, id }: DeadLetterReference,
): Promise<RetryDeadLetterOptions['to']> {
  for (let after: string | null = null; ;) {
    const page: Awaited<ReturnType<Holdfast['deadLetters']>> = await holdfast.deadLetters({
      run: runId,
      limit: 200,
      ...(after === null ? {} : { after }),
    })
    const letter = page.letters.find((one) => one.id === id)
    if (letter !== undefined) {
      const topic = module?.topics.find(({ name }) => name === letter.name)
      if (topic !== undefined) return topic
      throw usage(
        `The topic ${quoted(letter.name)} is not known here. Name the module that exports it with --workflows.`,
      )
    }
    if (page.next === null) throw notDead({ runId, id })
    after = page.next
  }
}

async function discard({ printer }: Call, holdfast: Holdfast, letter: DeadLetterReference): Promise<void> {
  const { outcome } = await holdfast.discardDeadLetter(letter)
  if (outcome === 'not-dead') throw notDead(letter)
  await printer.answer({ ...letter, outcome }, `Discarded ${visible(letter.id)}.`)
}

function notDead({ runId, id }: DeadLetterReference): HoldfastError {
  const message = `Run ${runId} has no dead letter ${quoted(id)}: list them with holdfast dead-letters --run ${runId}.`
  return new HoldfastError('RUN_NOT_FOUND', message, { details: { runId, id } })
}
