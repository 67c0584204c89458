// A recorded run as a test: whether the code of a workflow still agrees with it.

import type { ErrorClass } from '../core/payload/codec.ts'
import type { Definition } from '../core/definition/definition.ts'
import { HoldfastError } from '../core/errors/error.ts'
import { checkOptions } from '../core/text/suggest.ts'
import { checkExported, type ExportedRun } from '../client/read/export-run.ts'
import { replayExported } from '../client/read/replay-runs.ts'
import { disagreementOf } from '../engine/replay/replay-mismatch.ts'
import { systemPorts } from '../system.ts'
import { silentLogger } from './logger.ts'

export interface ReplayOptions {
  /** The value of `ctx.services`. No step is performed, so it needs only the services that the body itself uses. */
  readonly services?: unknown
  /** Classes of errors that the body distinguishes by `instanceof`, as given to `jsonCodec`. */
  readonly errors?: readonly ErrorClass[]
}

/**
 * Replays an exported run against the code of its workflow. Resolves if the code makes every recorded call, in its order
 * and, if the body had ended, ends in the same way; rejects with DRIFT and the difference otherwise. No step is performed
 * and nothing is written.
 *
 * @example
 * const recorded = JSON.parse(readFileSync('test/journals/order-42.json', 'utf8'))
 * await replay(order, recorded, { services: { shop } })
 */
export async function replay(workflow: Definition, exported: ExportedRun, options: ReplayOptions = {}): Promise<void> {
  checkOptions(options, ['services', 'errors'], 'replay()')
  const { services, errors = [] } = options
  const checked = checkExported(exported)
  checkSame(workflow, checked.run)
  const replayed = await replayExported(workflow, checked, { ports: systemPorts(silentLogger), services, errors })
  const disagreement = disagreementOf(checked.run, replayed)
  if (disagreement !== null) throw disagreement
}

function checkSame({ type, version }: Definition, run: ExportedRun['run']): void {
  if (type === run.type && version === run.version) return
  throw new HoldfastError(
    'INVALID_OPTION',
    `The exported run is of "${run.type}" version ${run.version}, the workflow is "${type}" version ${version}. Runs keep the ` +
      'workflow and the version that they began with: pass that one to replay().',
    { details: { run: { type: run.type, version: run.version }, workflow: { type, version } } },
  )
}
