// The errors and warnings about a body that misuses its context.

import { runLine, runName } from '../../core/rows/engine-notes.ts'
import { formatMs } from '../../core/definition/duration.ts'
import type { Host, Isolation } from '../../core/definition/definition.ts'
import type { FoundCall } from '../../core/model/entry.ts'
import { HoldfastError, isHoldfastError, messageOf } from '../../core/errors/error.ts'
import type { UnhandledFailure } from './call-promise.ts'
import type { Run } from '../../core/model/run.ts'
import type { RecordedEntry } from '../replay/history.ts'
import { shown } from '../../core/text/suggest.ts'
import { fatal } from '../../core/definition/retry-mark.ts'
import type { CallingFunction } from '../../core/runtime/attempt.ts'
import { quotedText } from '../../core/text/printable.ts'

const codesOfMistakes = ['INVALID_OPTION', 'INVALID_NAME', 'INVALID_DURATION', 'NOT_STORABLE'] as const

/** A call of the body with arguments that its code gets wrong: the next attempt would make the same call. */
export function isMistake(error: unknown): boolean {
  return codesOfMistakes.some((code) => isHoldfastError(error, code))
}

/** A replay does not call the functions of recorded steps, so it would miss their calls of the context. */
export function insideStep(what: string, { kind, step }: CallingFunction, verb: 'called' | 'awaited'): Error {
  const subject = verb === 'called' ? what : `A wait of ${what}`
  const [place, instead] = places[kind](step)
  const message = `${subject} was ${verb} inside of ${place}. ${verb === 'called' ? 'Call' : 'Await'} it in the body, ${instead}.`
  return fatal(new HoldfastError('INVALID_OPTION', message, { details: { step } }))
}

/** How a message names a function, and where in the body the call belongs instead. */
const places: Readonly<Record<CallingFunction['kind'], (step: string) => readonly [place: string, instead: string]>> = {
  step: (step) => [`step ${quotedText(step)}`, 'before or after that step, or use ctx.branch to group several steps'],
  undo: (step) => [`the undo of step ${quotedText(step)}`, 'as the undo of a step does only what a step may do'],
  acquire: () => ['the acquire function of ctx.withResource', 'before ctx.withResource or in its last function'],
  release: () => ['the release function of ctx.withResource', 'after ctx.withResource or in its last function'],
}

export function noTransactions(name: string): Error {
  const message =
    `Transaction ${quotedText(name)} needs a store whose database has your tables, too: 'sqlite:app.db' or 'postgres://…'. This one ` +
    'keeps runs only: use ctx.step here, or in a test createTest({ store }) with such a store.'
  return fatal(new HoldfastError('INVALID_OPTION', message, { details: { step: name } }))
}

/**
 * The run exists, because it is performed, so this transaction looks elsewhere. To give the run up would not help: the worker that
 * claims it next would find the same, at once and for ever.
 */
export function runNotThere(name: string): Error {
  const message =
    `Transaction ${quotedText(name)} finds no row of its run. Either it is a transaction of another database than that of the runs: check ` +
    'the transaction option of createHoldfast(). Or its function has deleted the row, or set something by which a policy hides it.'
  return fatal(new HoldfastError('INVALID_OPTION', message, { details: { step: name } }))
}

/** Only `ctx.race` bounds a wait: its tag says whether the message or the time came first. */
export function noTimeout(where: string, signal: string | null): HoldfastError {
  const call = signal === null ? 'ctx.token()' : `ctx.receive('${signal}')`
  return new HoldfastError(
    'INVALID_OPTION',
    `The wait for ${where} has no option "timeout". Race it with a sleep, and the tag says which came first: ` +
      `const { tag, value } = await ctx.race({ got: ${call}, late: ctx.sleep('1h') }).`,
  )
}

export function checkIsolation(isolation: unknown, name: string): Isolation | undefined {
  if (isolation === undefined || isolation === 'serializable') return isolation
  throw new HoldfastError(
    'INVALID_OPTION',
    `Transaction ${quotedText(name)}: isolation is 'serializable', or left out for the usual one. Got ${shown(isolation)}.`,
  )
}

/** The run could end only after it has ended. */
export function waitsForItself(runId: string): HoldfastError {
  const message = `Run ${runId} waits for its own end, which cannot come before the wait is over. ctx.waitFor needs another run.`
  return new HoldfastError('INVALID_OPTION', message, { details: { runId } })
}

/** A predicate that throws does not forbid the retry, but its author must hear of it. */
export function warnOfBrokenPredicate({ ports }: Host, run: Run, what: string, error: unknown): void {
  ports.logger.warn(
    runLine(
      run,
      `has a retry.retryable for ${what} that does not work: ${messageOf(error)}. The failure is retried as any other.`,
    ),
    { run: run.id, type: run.type, error },
  )
}

export function notAFunction(what: string): HoldfastError {
  return new HoldfastError('INVALID_OPTION', `${what} needs a function to perform.`)
}

export function notAWait(what: string, key: string, given: unknown): HoldfastError {
  const instead =
    what === 'ctx.all'
      ? 'Await steps and other promises with Promise.all.'
      : 'A step cannot be raced, because it runs to its end: await it before or after.'
  return new HoldfastError(
    'INVALID_OPTION',
    `${what} takes waits: ctx.receive, ctx.sleep, ctx.child, ctx.waitFor, ctx.token or another race. ` +
      (given instanceof Promise ? `${shown(key)} is a promise. ${instead}` : `${shown(key)} is ${shown(given)}.`),
  )
}

export function notAWorkflow(what: string, given: unknown): HoldfastError {
  const name = typeof given === 'string' ? ', not its name: import it' : ''
  const message = `${what} needs a workflow, made by workflow()${name}. Got ${shown(given)}.`
  return new HoldfastError('INVALID_OPTION', message)
}

export function warnOfLateCode({ ports }: Host, run: Run): void {
  ports.logger.warn(
    `Code of ${runName(run)} went on after the run was parked, had ended or moved elsewhere. Its calls of ctx never ` +
      'settle here: await every promise that the body makes, and do other work inside steps.',
    { run: run.id, type: run.type },
  )
}

/** A body whose code has changed cannot be distinguished from one that awaits a promise of its own. */
export function warnOfSilence({ ports }: Host, run: Run, unrequested: RecordedEntry, silentMs: number): void {
  const { seq, kind, name } = unrequested
  ports.logger.warn(
    runLine(
      run,
      `is being replayed, and its body has not asked for entry ${seq} (${kind} ${quotedText(String(name))}) for ${formatMs(silentMs)}. It awaits ` +
        'something of its own: do that inside a step, so that a replay need not wait for it. Or its code has changed: then ' +
        'deploy the version that the run began with. The run is paused as drift if its body ends without that entry, or ' +
        'makes a call that it cannot have made before it.',
    ),
    { run: run.id, type: run.type },
  )
}

/** A promise that is never awaited is most often a forgotten `await`. */
export function warnOfForgotten({ ports }: Host, run: Run, calls: readonly FoundCall[]): void {
  const list = calls.map(
    ({ kind, name, place }) => `${kind} ${quotedText(name)}${place === null ? '' : ` at ${place}`}`,
  )
  ports.logger.warn(
    `The body of ${runName(run)} ended without awaiting ${list.join(', ')}. Every step is performed before the run ` +
      'ends or begins anew, and a child is treated as its onParentEnd says; their results are lost. Await every promise ' +
      'that the body makes.',
    { run: run.id, type: run.type, forgotten: calls },
  )
}

/** How a body ends that does not throw. */
export type BodyEnd = 'returned' | 'began anew'

/** The run succeeds or begins anew as if the body had caught them, because it went on without looking. */
export function warnOfSwallowed({ ports }: Host, run: Run, failures: readonly UnhandledFailure[], how: BodyEnd): void {
  const named = failures.slice(0, mostNamed)
  const list = named.map(
    ({ what, place, error }) => `${what}${place === null ? '' : ` at ${place}`}: ${messageOf(error)}`,
  )
  const more = failures.length > mostNamed ? `; and ${failures.length - mostNamed} more` : ''
  ports.logger.warn(
    `Calls of ${runName(run)} failed, and its body ${how} without awaiting them: ${list.join('; ')}${more}. The run ` +
      `${how === 'returned' ? 'succeeds' : 'goes on'} all the same. Await every promise that the body makes, or catch its error.`,
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
