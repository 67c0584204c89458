// The engine, as far as instances of deciders need it.

import type { Host } from '../../core/definition/definition.ts'
import type { Limits } from '../../core/definition/limits.ts'
import type { RunStart } from '../../core/rules/run-start.ts'
import type { RunIds } from '../../core/model/run-id.ts'
import type { DecidedOptions } from '../../core/deciding/decided-transition.ts'
import type { Delivered, Started, Store } from '../../store.ts'
import type { OutgoingMessage } from '../batch/message-sender.ts'
import type { LocalWorker } from '../local-worker.ts'
import type { Registry } from '../registry.ts'
import type { RunEnds } from '../run-ends.ts'
import type { RunMoves } from '../run-moves.ts'
import type { UnclaimedWarning } from '../unclaimed-warning.ts'

export interface DecidingEngine extends Pick<Host, 'ports' | 'payloads' | 'transitionId' | 'commit' | 'mailbox'> {
  readonly outgoing: Pick<Host, 'prepare' | 'receiver' | 'limits'>
  readonly store: Store
  readonly registry: Registry
  readonly clock: { now(): number }
  readonly runIds: RunIds
  readonly limits: Limits
  readonly shards: number
  readonly isClosed: boolean
  readonly runMoves: RunMoves
  readonly runEnds: Pick<RunEnds, 'ended'>
  readonly localWorker: LocalWorker | null
  readonly unclaimedWarning: Pick<UnclaimedWarning, 'expect'>
  /** A run may have become claimable. */
  onReady(): void
  readonly knowsTime: boolean
  learnTime(): Promise<void>
  start(run: RunStart): Promise<Started>
  send(message: OutgoingMessage): Promise<Delivered>
}

/** What a decided batch needs to become a transition. */
export function hostOf({ outgoing, payloads, ports, transitionId }: DecidingEngine): DecidedOptions['host'] {
  return { ...outgoing, payloads, ports, transitionId }
}
