// `holdfast worker`: performs runs until it is stopped. The first signal stops it in good order, the second at once.

import type { Command } from 'commander'
import type { Duration } from '../../core/duration.ts'
import { isHoldfastError } from '../../core/error.ts'
import { examples, Interrupted, type Act } from '../call.ts'
import { visible } from '../../core/printable.ts'
import type { StopSignal } from '../io.ts'
import { duration, whole } from '../option-values.ts'
import { shownStore } from '../store-address.ts'
import { amount } from '../text.ts'

interface WorkerOptions {
  readonly concurrency?: number
  readonly lease?: Duration
  readonly shutdownTimeout?: Duration
}

export function registerWorker(program: Command, act: Act): void {
  const command = program
    .command('worker')
    .summary('perform runs until it is stopped')
    .description(
      'Performs the runs of the workflows that a module exports. Any number of workers may share a store. The first Ctrl-C, ' +
        'or SIGTERM, stops it in good order (exit code 0); a second one at once, and others take over.',
    )
    .option('--concurrency <n>', 'how many runs move at once (100)', whole('--concurrency', 1))
    .option('--lease <duration>', 'how long it may be silent before others take over (30s)', duration('--lease'))
    .option(
      '--shutdown-timeout <duration>',
      'how long stopping waits for runs that are moving (20s)',
      duration('--shutdown-timeout'),
    )
    .addHelpText(
      'after',
      examples(
        'worker --store sqlite:app.db --workflows ./workflows.js',
        'worker --concurrency 20 --lease 10s',
        'worker --json 2>worker.log',
      ),
    )
  act(command, async (call) => {
    const { concurrency, lease, shutdownTimeout } = command.opts<WorkerOptions>()
    const { printer } = call
    const { holdfast, store, module } = await call.open({ store: 'any', workflows: true })
    const workflows = (module?.definitions ?? []).map(({ type, version }) => ({ type, version }))
    let signalled: (signal: StopSignal) => void = () => undefined
    const first = new Promise<StopSignal>((resolve) => (signalled = resolve))
    // From here on nothing that was claimed may be dropped by a single Ctrl-C.
    call.handleSignals((signal) => signalled(signal))
    const worker = await holdfast.work({
      signals: false,
      ...(concurrency === undefined ? {} : { concurrency }),
      ...(lease === undefined ? {} : { lease }),
      ...(shutdownTimeout === undefined ? {} : { shutdownTimeout }),
    })
    const { runs, sessions } = worker.tookOver
    await printer.answer(
      { event: 'working', workflows, tookOver: worker.tookOver },
      `Serves ${amount(workflows.length, 'workflow')} from ${shownStore(store)}:`,
      ...workflows.map(({ type, version }) => `  ${visible(type)} v${version}`),
      ...(runs === 0 ? [] : [`Took over ${amount(runs, 'run')} of ${amount(sessions, 'worker')} that had died.`]),
      'Works until it is stopped: Ctrl-C stops it in good order, a second one at once.',
    )
    const signal = await Promise.race([first, worker.ended])
    // It has stopped by itself: whoever starts it again must start a newer one.
    if (isHoldfastError(signal)) throw signal
    const second = new Promise<never>((_, reject) => {
      call.handleSignals((again) => reject(new Interrupted(again, { isAtOnce: true })))
    })
    // It may come before anybody waits for it.
    second.catch(() => undefined)
    await printer.answer(
      { event: 'stopping', signal },
      'Stopping: waits for the runs that are moving. Ctrl-C again leaves at once.',
    )
    await Promise.race([worker.stop(), second])
    await printer.answer({ event: 'stopped' }, 'Stopped. Nothing is held any more.')
  })
}
