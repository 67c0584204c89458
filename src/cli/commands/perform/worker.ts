// `holdfast worker`: performs runs until it is stopped. The first signal stops it gracefully, the second at once.

import { Option, type Command } from 'commander'
import type { Duration } from '../../../core/definition/duration.ts'
import { isHoldfastError } from '../../../core/errors/error.ts'
import { examples, Interrupted, type Act } from '../../command-call.ts'
import { visible } from '../../../core/text/printable.ts'
import type { WorkingMessage } from '../../dev/child-worker.ts'
import type { ProcessSignal } from '../../io.ts'
import { duration, whole } from '../../input/option-values.ts'
import { shownStore } from '../../input/store-address.ts'
import { amount } from '../../output/text.ts'

interface WorkerOptions {
  readonly concurrency?: number
  readonly lease?: Duration
  readonly shutdownTimeout?: Duration
  readonly supervised?: boolean
}

export function registerWorker(program: Command, act: Act): void {
  const command = program
    .command('worker')
    .summary('run a worker in this process until it is stopped')
    .description(
      'Performs the runs of the workflows that a module exports. Any number of workers may share a store. The first Ctrl-C, ' +
        'or SIGTERM, stops it gracefully (exit code 0); a second one at once, and other workers take over.',
    )
    .option('--concurrency <n>', 'how many runs move at once (100)', whole('--concurrency', 1))
    .option(
      '--lease <duration>',
      'how long its heartbeats may fail before other workers take over (30s)',
      duration('--lease'),
    )
    .option(
      '--shutdown-timeout <duration>',
      'how long stopping waits for runs that are moving (20s)',
      duration('--shutdown-timeout'),
    )
    // For `holdfast dev` alone: it reports to its supervisor, and lives as long as the channel to it.
    .addOption(new Option('--supervised').hideHelp())
    .addHelpText(
      'after',
      examples(
        'worker --store sqlite:app.db --workflows ./workflows.js',
        'worker --concurrency 20 --lease 10s',
        'worker --json 2>worker.log',
      ),
    )
  act(command, async (call) => {
    const { concurrency, lease, shutdownTimeout, supervised = false } = command.opts<WorkerOptions>()
    const { printer } = call
    const supervisor = supervised ? call.io.supervisor : null
    const { holdfast, store, module } = await call.open({ store: 'any', workflows: true, warnsOfRights: !supervised })
    const workflows = (module?.definitions ?? []).map(({ type, version }) => ({ type, version }))
    let signalled: (signal: ProcessSignal) => void = () => undefined
    const first = new Promise<ProcessSignal>((resolve) => (signalled = resolve))
    // From here on a single Ctrl-C must not drop a claimed run.
    call.handleSignals((signal) => signalled(signal))
    supervisor?.onGone(() => signalled('SIGTERM'))
    const worker = await holdfast.work({
      signals: false,
      ...(concurrency === undefined ? {} : { concurrency }),
      ...(lease === undefined ? {} : { lease }),
      ...(shutdownTimeout === undefined ? {} : { shutdownTimeout }),
    })
    const report = async (document: object, ...lines: readonly string[]): Promise<void> => {
      if (supervisor === null) await printer.answer(document, ...lines)
    }
    supervisor?.send({ holdfast: 'working', store: shownStore(store), workflows } satisfies WorkingMessage)
    await report(
      { event: 'working', workflows, recovered: worker.recovered },
      `Serves ${amount(workflows.length, 'workflow')} from ${shownStore(store)}:`,
      ...workflows.map(({ type, version }) => `  ${visible(type)} v${version}`),
      'Works until it is stopped: Ctrl-C stops it gracefully, a second one at once.',
    )
    if (module?.options.services === undefined && supervisor === null) {
      await printer.note(
        'The module exports no services, so those of bodies and effects are empty: export const holdfast = { services }',
      )
    }
    const signal = await Promise.race([first, worker.ended])
    // It has stopped by itself: its supervisor must start a newer build.
    if (isHoldfastError(signal)) throw signal
    const second = new Promise<never>((_, reject) => {
      call.handleSignals((again) => reject(new Interrupted(again, { isAtOnce: true })))
    })
    // It may reject before it is awaited.
    second.catch(() => undefined)
    await report(
      { event: 'stopping', signal },
      'Stopping: waits for the runs that are moving. Ctrl-C again stops at once.',
    )
    await Promise.race([worker.stop(), second])
    await report({ event: 'stopped' }, 'Stopped. This worker holds no run.')
  })
}
