// The path of every transition of this process to the store: gathered, merged per run, answered in order. A refusal is an
// error for its submitter only. Transitions that the store refuses until an operator repairs it are kept until then, as when
// the store is unavailable.

import type { Acknowledged } from '../../core/definition/definition.ts'
import { HoldfastError } from '../../core/errors/error.ts'
import type { Ports } from '../../core/runtime/ports.ts'
import { mayMerge, mergeTransitions, sizeOf, startsSizeOf, type Transition } from '../../core/model/transition.ts'
import type { Committed, Store } from '../../store.ts'
import { Batcher, type BatcherOptions } from './batcher.ts'
import { kept } from '../store/bounded-store.ts'

export type Committer = Batcher<Transition, Committed, Acknowledged>

export interface CommitterOptions extends Pick<
  BatcherOptions<Transition, Committed, Acknowledged>,
  'maxItems' | 'maxBytes' | 'highWater' | 'isAnswering' | 'limitMs' | 'isFilling'
> {
  /** Called with the store's time, once per flush that was answered. */
  readonly onTime?: (at: number) => void
}

export function createCommitter(
  store: Pick<Store, 'commit'>,
  ports: Ports,
  { onTime = () => undefined, ...limits }: CommitterOptions = {},
): Committer {
  return new Batcher(ports, {
    ...limits,
    flush: (transitions, options) => store.commit(transitions, options),
    onAnswers: (answers) => {
      const known = answers.find(isCommitted)
      if (known !== undefined) onTime(known.at)
    },
    errorOf: kept,
    isBusy: (answer) => answer.outcome === 'refused' && answer.reason === 'busy',
    keyOf: (transition) => transition.runId,
    nameOf: ({ runId, append }) => `${append.length === 1 ? '1 entry' : `${append.length} entries`} of run ${runId}`,
    sizeOf: weightOf,
    resultOf: acknowledge,
    merge: { may: mayMerge, both: mergeTransitions },
  })
}

function isCommitted(answer: Committed): answer is Extract<Committed, { outcome: 'committed' }> {
  return answer.outcome === 'committed'
}

/** The size of a transition besides its entries. */
const overheadBytes = 100

/** The approximate size of a transition in bytes. */
export function weightOf({ append, outbound = null, settles = null }: Transition): number {
  let bytes = overheadBytes + (outbound === null ? 0 : startsSizeOf(outbound.starts))
  if (settles !== null) bytes += weightOf(settles)
  for (const draft of append) bytes += sizeOf(draft)
  return bytes
}

export function acknowledge(transition: Transition, answer: Committed, last: boolean): Acknowledged {
  if (answer.outcome === 'refused') throw refusal(transition.runId, answer)
  if (last) return answer
  const { at, inbox, controlRequest } = answer
  return { seq: transition.guard.seq + transition.append.length, at, inbox, released: false, controlRequest }
}

function refusal(runId: string, refused: Extract<Committed, { outcome: 'refused' }>): HoldfastError {
  const { reason } = refused
  const details = { runId, reason }
  switch (refused.reason) {
    case 'lease-lost':
      return new HoldfastError('LEASE_LOST', `Run ${runId} is no longer held here: another worker may go on with it.`, {
        details,
      })
    case 'stale':
      return new HoldfastError('STALE_WRITE', `The journal of run ${runId} has moved on: this write came too late.`, {
        details,
      })
    case 'cancelling':
      return new HoldfastError('RUN_CANCELLING', `Run ${runId} is being cancelled: it can only be undone and ended.`, {
        details: { ...details, controlRequest: refused.controlRequest },
      })
    case 'timed-out':
      return new HoldfastError(
        'RUN_TIMEOUT',
        `Run ${runId} had not ended when the time that its start allowed was over.`,
        { details },
      )
    case 'resumed':
      return new HoldfastError('RUN_RESUMED', `Run ${runId} is not to be paused any more: it goes on.`, { details })
    case 'key-taken':
      return new HoldfastError(
        'RUN_EXISTS',
        `Run ${runId} cannot go on as another workflow: a live run there has its key.`,
        { details },
      )
    case 'held':
      return new HoldfastError('WRONG_STATUS', `Run ${runId} is held by a worker, or waits for one.`, { details })
    case 'ended':
      return new HoldfastError('WRONG_STATUS', `Run ${runId} is over.`, { details })
    case 'busy':
      return new HoldfastError('STORE_UNAVAILABLE', `Another transaction has locked run ${runId}.`, { details })
    case 'not-found':
      return new HoldfastError('RUN_NOT_FOUND', `There is no run ${runId} in this store.`, { details })
  }
}
