// `holdfast start`: starts a run of a workflow by its name, and waits for its end if asked to.

import type { Command } from 'commander'
import type { StartOptions } from '../../../client/start/start-options.ts'
import type { Duration } from '../../../core/definition/duration.ts'
import { keyScopes } from '../../../core/model/key.ts'
import { didYouMean } from '../../../core/text/suggest.ts'
import { examples, Interrupted, type Act } from '../../command-call.ts'
import { visible } from '../../../core/text/printable.ts'
import { assertSucceeded, follow } from '../../follow.ts'
import { inputOf } from '../../input/input-argument.ts'
import { collected, duration, pairs, pointInTime, whole } from '../../input/option-values.ts'
import { jsonLine } from '../../output/plain-json.ts'
import { checkRunId } from '../../input/run-filter.ts'
import { quoted, usage } from '../../usage.ts'

interface StartCommandOptions {
  readonly file?: string
  readonly id?: string
  readonly key?: string
  readonly scope?: string
  readonly onConflict?: string
  readonly idempotencyKey?: string
  readonly version?: number
  readonly tag?: readonly string[]
  readonly meta?: readonly string[]
  readonly priority?: number
  readonly runAt?: string
  readonly delay?: Duration
  readonly timeout?: Duration
  readonly expiresIn?: Duration
  readonly wait?: boolean
}

export function registerStart(program: Command, act: Act): void {
  const command = program
    .command('start')
    .summary('start a run')
    .description('Starts a run of a workflow. When this returns, the run is stored; a worker performs it.')
    .argument('<type>', 'the type of the workflow')
    .argument('[input]', 'the input as JSON, or - to read it from standard input')
    .option('--file <path>', 'read the input from a file of JSON')
    .option('--wait', 'wait for its end and print its output; a failure is exit code 5')
    .option('--id <uuid>', 'the id of the run, a UUID of version 7')
    .option('--key <key>', 'its business key: no other run with this key starts while it is live')
    .option('--scope <scope>', `among which runs the key is unique: ${keyScopes.join(', ')}`)
    .option('--on-conflict <what>', 'when a live run has the key: error, or return that run')
    .option('--idempotency-key <key>', 'makes a repeated start harmless')
    .option('--version <n>', 'the version of the workflow', whole('--version', 1))
    .option('--tag <tag>', 'a word to find it by; may be given again', collected)
    .option('--meta <name=value>', 'metadata to store with it; may be given again', collected)
    .option('--priority <n>', 'higher goes first', whole('--priority'))
    .option('--run-at <time>', 'not before this time (2026-11-16T08:00:00Z)')
    .option('--delay <duration>', 'not before this much time has passed (10m)', duration('--delay'))
    .option('--timeout <duration>', 'it fails if it has not ended by then', duration('--timeout'))
    .option('--expires-in <duration>', 'it fails if no worker has begun it by then', duration('--expires-in'))
    .addHelpText(
      'after',
      examples(
        `start shop.order '{"id":"42","total":99}' --key order-42 --wait`,
        'start shop.order --file order.json --tag vip --meta region=eu',
        'generate-order | holdfast start shop.order - --json',
        'start reports.nightly --delay 10m --idempotency-key 2026-11-16',
      ).replace('$ holdfast generate', '$ generate'),
    )
  act(command, async (call) => {
    const options = command.opts<StartCommandOptions>()
    const [type = '', input] = command.args
    const { printer } = call
    const about = startOptions(options)
    const value = await inputOf(call, 'input', input, options.file)
    const { holdfast } = await call.open({ store: 'creatable', workflows: true })
    const { id, key, created } = await holdfast.start(type, value, about)
    if (options.wait !== true) {
      const text = created ? `Started ${id}` : `${id} exists already`
      return printer.answer({ id, key, created }, text)
    }
    await printer.note(`${created ? 'Started' : 'Waits for'} ${id} (${visible(type)}); Ctrl-C leaves it alone.`)
    const stopped = new Promise<never>((_, reject) => {
      call.handleSignals((signal) => {
        const leave = (): void => reject(new Interrupted(signal))
        printer.note(`Stopped waiting; run ${id} continues. Follow it: holdfast watch ${id}`).then(leave, leave)
      })
    })
    const run = await Promise.race([follow(holdfast, id, async () => undefined), stopped])
    if (printer.isJson) await printer.json({ id, key, created, run })
    else if (run.status === 'succeeded') await printer.lines([jsonLine(run.output)])
    assertSucceeded(run)
  })
}

function startOptions(options: StartCommandOptions): StartOptions {
  const { id, key, scope, onConflict, idempotencyKey, version, tag, meta, priority, runAt, delay, timeout, expiresIn } =
    options
  return {
    ...(id === undefined ? {} : { id: checkRunId(id) }),
    ...(key === undefined ? {} : { key }),
    ...(scope === undefined ? {} : { scope: oneOf(keyScopes, scope, '--scope') }),
    ...(onConflict === undefined
      ? {}
      : { onConflict: oneOf(['error', 'return'] as const, onConflict, '--on-conflict') }),
    ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
    ...(version === undefined ? {} : { version }),
    ...(tag === undefined ? {} : { tags: tag }),
    ...(meta === undefined ? {} : { metadata: pairs(meta, '--meta') }),
    ...(priority === undefined ? {} : { priority }),
    ...(runAt === undefined ? {} : { runAt: pointInTime(runAt, '--run-at') }),
    ...(delay === undefined ? {} : { delay }),
    ...(timeout === undefined ? {} : { timeout }),
    ...(expiresIn === undefined ? {} : { expiresIn }),
  }
}

function oneOf<Choice extends string>(choices: readonly Choice[], given: string, name: string): Choice {
  const found = choices.find((choice) => choice === given)
  if (found !== undefined) return found
  throw usage(`${name} is one of ${choices.join(', ')}. Got ${quoted(given)}.${didYouMean(given, choices)}`)
}
