// The errors and warnings about a body that misuses its context.

import { runLine, runName } from '../../core/rows/engine-notes.ts'
import { formatMs } from '../../core/definition/duration.ts'
import type { Host, Isolation } from '../../core/definition/definition.ts'
import type { FoundCall } from '../../core/model/entry.ts'
import { HoldfastError, messageOf } from '../../core/errors/error.ts'
import type { UnhandledFailure } from './call-promise.ts'
import type { Run } from '../../core/model/run.ts'
import type { RecordedEntry } from '../replay/history.ts'
import { shown } from '../../core/text/suggest.ts'
import { fatal } from '../../core/definition/retry-mark.ts'

/** A replay does not call the functions of recorded steps, so it would miss their calls of the context. */
export function insideStep(what: string, step: string): Error {
  const message =
    `${what} was called inside of step "${step}". Call it in the body, before or after that step, ` +
    'or use ctx.branch to group several steps.'
  return fatal(new HoldfastError('INVALID_OPTION', message, { details: { step } }))
}

export function noTransactions(name: string): Error {
  const message =
    `Transaction "${name}" needs a store whose database has your tables, too: 'sqlite:app.db' or 'postgres://…'. This one ` +
    'keeps runs only: use ctx.step here, or in a test createTest({ store }) with such a store.'
  return fatal(new HoldfastError('INVALID_OPTION', message, { details: { step: name } }))
}

export function checkIsolation(isolation: unknown, name: string): Isolation | undefined {
  if (isolation === undefined || isolation === 'serializable') return isolation
  throw new HoldfastError(
    'INVALID_OPTION',
    `Transaction "${name}": isolation is 'serializable', or left out for the default of your database. Got ${shown(isolation)}.`,
  )
}

export function notAFunction(what: string): HoldfastError {
  return new HoldfastError('INVALID_OPTION', `${what} needs a function to perform.`)
}

export function notAWait(what: string, key: string, given: unknown): HoldfastError {
  return new HoldfastError(
    'INVALID_OPTION',
    `${what} takes waits: ctx.receive, ctx.sleep, ctx.child, ctx.waitFor, ctx.token or another race. ${shown(key)} is none` +
      `${given instanceof Promise ? ' but a promise: a step cannot be raced, because it runs to its end; await it before or after' : ''}.`,
  )
}

export function notAWorkflow(what: string): HoldfastError {
  return new HoldfastError('INVALID_OPTION', `${what} needs a workflow, made by workflow(), and its input.`)
}

export function warnOfStrayCode({ ports }: Host, run: Run): void {
  ports.logger.warn(
    `Code of ${runName(run)} went on after the run was parked, had ended or moved elsewhere. Its calls of ctx never ` +
      'settle here: await every promise that the body makes, and do other work inside steps.',
    { run: run.id, type: run.type },
  )
}

/** A body whose code has changed cannot be told from one that awaits a promise of its own. */
export function warnOfSilence({ ports }: Host, run: Run, unrequested: RecordedEntry, silentMs: number): void {
  const { seq, kind, name } = unrequested
  ports.logger.warn(
    runLine(
      run,
      `is being replayed, and its body has not asked for entry ${seq} (${kind} "${name}") for ${formatMs(silentMs)}. It awaits ` +
        'something of its own: do that inside a step, so that a replay need not wait for it. Or its code has changed: then ' +
        'deploy the version that the run began with. The run is paused as drift if its body ends without that entry, or ' +
        'makes a call that it cannot have made before it.',
    ),
    { run: run.id, type: run.type },
  )
}

/** A promise that is never awaited is most often a forgotten `await`. */
export function warnOfForgotten({ ports }: Host, run: Run, calls: readonly FoundCall[]): void {
  const list = calls.map(({ kind, name, place }) => `${kind} "${name}"${place === null ? '' : ` at ${place}`}`)
  ports.logger.warn(
    `The body of ${runName(run)} ended without awaiting ${list.join(', ')}. A step that is under way is awaited before the run ` +
      'ends, and a child is treated as its onParentEnd says; their results are lost. Await every promise that the ' +
      'body makes.',
    { run: run.id, type: run.type, forgotten: calls },
  )
}

/** The run succeeds as if the body had caught them, because it went on without looking. */
export function warnOfSwallowed({ ports }: Host, run: Run, failures: readonly UnhandledFailure[]): void {
  const named = failures.slice(0, mostNamed)
  const list = named.map(
    ({ what, place, error }) => `${what}${place === null ? '' : ` at ${place}`}: ${messageOf(error)}`,
  )
  const more = failures.length > mostNamed ? `; and ${failures.length - mostNamed} more` : ''
  ports.logger.warn(
    `Calls of ${runName(run)} failed, and its body returned without awaiting them: ${list.join('; ')}${more}. The run succeeds all ` +
      'the same. Await every promise that the body makes, or catch its error.',
    {
      run: run.id,
      type: run.type,
      error: failures[0]?.error,
      swallowed: named.map(({ what, place }) => ({ what, place })),
    },
  )
}

/** A warning names at most this many calls. */
const mostNamed = 20

/** An `await` of the child would reject with this error, but the body does not await it. */
export function warnOfUnbegun({ ports }: Host, run: Run, error: unknown): void {
  ports.logger.error(runLine(run, `did not await a child that could not be started: ${messageOf(error)}`), {
    run: run.id,
    type: run.type,
    error,
  })
}
