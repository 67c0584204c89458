// What an input does when the instance cannot take it at once, because its run does not just wait. Nothing waits without a
// bound:
//
//   status                       execute                                             enqueue         an effect that ends
//   pending, due                 the run is claimed and performed here, then the     into the        its outcome goes into
//                                input is decided                                    mailbox         the mailbox
//   pending, due after the       WRONG_STATUS, which says when it begins             the same        (none was asked for)
//   timeout
//   waiting                      decided at once; as for running if it is suspected  the same        decided with its end
//                                of ending processes
//   running                      into the mailbox; EXECUTE_TIMEOUT if its holder     the same        the mailbox
//                                does not take it in time: it is decided later
//   paused                       WRONG_STATUS with the reason, and nothing is kept.  the same        the mailbox
//                                If it waits in the mailbox already: it stays there
//   cancelling                   as for running; without a holder it is ended here   the same        the mailbox
//   succeeded, failed, cancelled already-completed                                   already-        stays in the journal
//                                                                                    completed       of its own run
//   removed                      as if there had never been an instance of this id   the same        the same
//
// `state` is the fold of all events in each of them, and undefined until the first input is accepted. A rejection that is
// known without writing anything is answered in every status.

import { HoldfastError } from '../../core/errors/error.ts'
import { formatMs } from '../../core/definition/duration.ts'
import { isTerminal, type Run } from '../../core/model/run.ts'
import { quotedText } from '../../core/text/printable.ts'
import { lastEntryRequests } from '../store/journal-pages.ts'
import type { Call, DecidingActor } from './deciding-actor.ts'
import { performHere } from './perform-here.ts'

/** How often a run that nobody holds is tried again at once: each time another process may have been first. */
const mostTries = 3

/**
 * A transition without a lease was refused because the run does not just wait. `again`: now it may be accepted. `mailbox`: the
 * holder of the run decides. Throws WRONG_STATUS if nobody will, before an operator acts or its time has come.
 */
export async function whenHeld(
  actor: DecidingActor,
  calls: readonly Call[],
  tries: number,
): Promise<'again' | 'mailbox'> {
  const { engine, cached } = actor
  if (cached === null) return 'again'
  const run = await rowOf(actor, cached.run.id)
  if (run === null) {
    actor.cached = null
    return 'again'
  }
  if (run.status === 'paused') throw await paused(actor, run, null)
  if (tries > mostTries || run.session !== null || run.readiness === 'isolated') return 'mailbox'
  if (run.status === 'waiting') return 'again'
  const { isClaimed, now } = await performHere(engine, cached.definition, run)
  if (isClaimed) {
    await cached.catchUp()
    return 'again'
  }
  const patienceMs = Math.max(...calls.map(({ timeoutMs }) => timeoutMs))
  if (run.status === 'pending' && run.due !== null && run.due > now + patienceMs) throw beginsLater(actor, run, run.due)
  return 'mailbox'
}

/** The row of an instance that lives; null if it is over or removed. */
export async function rowOf({ engine }: DecidingActor, runId: string): Promise<Run | null> {
  const [run] = await engine.store.get([runId])
  return run === undefined || run.deletedAt !== null || isTerminal(run.status) ? null : run
}

/** `command`: the id of the input in its mailbox; null if it has none there. */
export async function paused(actor: DecidingActor, run: Run, command: string | null): Promise<HoldfastError> {
  const [page] = await actor.engine.store.load(lastEntryRequests([run]))
  const last = page?.entries[0]
  const meta = last?.kind === 'paused' ? last.meta : null
  const reason = meta?.reason ?? null
  // A note that a codec has encrypted is shown by `get`.
  const note = meta !== null && 'note' in meta ? meta.note : null
  const why = [reason, note].filter((one) => one !== null).join(': ')
  const kept =
    command === null
      ? 'Resume its run and execute the input again, or enqueue it: then it is decided after that.'
      : `The input lies in its mailbox and is decided when its run is resumed: then executing it again with the commandId ` +
        `${quotedText(command)} gives its outcome.`
  return wrongStatus(actor, run, `is paused${why === '' ? '' : ` (${why})`}, so it decides nothing. ${kept}`, {
    reason,
    ...(command === null ? {} : { commandId: command }),
  })
}

function beginsLater(actor: DecidingActor, run: Run, due: number): HoldfastError {
  const dueAt = new Date(due)
  const text = `was started with an input that is decided at ${dueAt.toISOString()}. Execute this one after that, or enqueue it.`
  return wrongStatus(actor, run, text, { dueAt })
}

function wrongStatus(
  { definition, id }: DecidingActor,
  { id: runId, status }: Run,
  text: string,
  details: Readonly<Record<string, unknown>>,
): HoldfastError {
  const { type } = definition
  return new HoldfastError('WRONG_STATUS', `Instance ${quotedText(id)} of decider ${quotedText(type)} ${text}`, {
    details: { runId, type, id, status, ...details },
  })
}

/** The input lies in the mailbox, and its caller waits no longer. */
export function tookTooLong({ definition, id }: DecidingActor, run: Run, call: Call): HoldfastError {
  const { type } = definition
  const { command: commandId, timeoutMs } = call
  return new HoldfastError(
    'EXECUTE_TIMEOUT',
    `Instance ${quotedText(id)} of decider ${quotedText(type)} has not decided the input within ${formatMs(timeoutMs)}: ` +
      `${causeOf(run)} The input lies in its mailbox and will be decided: executing it again with the commandId ` +
      `${quotedText(commandId ?? '')} gives its outcome.`,
    { details: { runId: run.id, type, id, status: run.status, commandId } },
  )
}

function causeOf({ status, readiness, session }: Run): string {
  if (session !== null) {
    const doing = status === 'cancelling' ? 'it is being cancelled, and ' : ''
    return `${doing}another process holds its run. If that has died, a worker takes the run over when its lease is over.`
  }
  if (readiness === 'isolated') {
    return 'processes died while they moved its run. A worker with nothing else to do moves it alone: is one up?'
  }
  return `its run is ${status}, and many processes move it.`
}
