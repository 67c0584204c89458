// What the store answers must fit to what it did: one answer per request, in order, and each of them true.

import { holds, isTerminal, type Run } from '../../src/core/model/run.ts'
import type { Transition } from '../../src/core/model/transition.ts'
import type {
  Claimed,
  ClaimRequest,
  Committed,
  NewRun,
  StartBusy,
  Started,
  ControlResult,
  ControlCommand,
  Store,
} from '../../src/store.ts'
import type { RunState } from '../../src/testing/invariants/index.ts'
import { isUnseen } from './seen-run.ts'

type Before = ReadonlyMap<string, { readonly run: Run; readonly ids: ReadonlySet<string | null> }>
type Fail = (name: string, run: Pick<Run, 'id' | 'status'>, message: string) => void

export class Answers {
  private readonly runs: ReadonlyMap<string, RunState>
  private readonly fail: Fail
  private readonly isSerial: boolean
  /** By run and token: every lease that a claim was answered with. */
  private readonly leased = new Set<string>()
  /** By type and key: which run every acknowledged start was answered. */
  private readonly byIdempotencyKey = new Map<string, string>()
  private was: Before = new Map()

  /** `isSerial`: nothing happened between a call and its answer. */
  constructor(runs: ReadonlyMap<string, RunState>, fail: Fail, isSerial: boolean) {
    this.isSerial = isSerial
    this.runs = runs
    this.fail = fail
  }

  /** The store has done something, and nobody has looked at what became of the runs yet. */
  before(method: keyof Store, [request]: readonly unknown[]): void {
    if (method === 'commit' && this.isSerial) this.was = this.snapshot(request as readonly Transition[])
  }

  /** The runs are known as they are now. */
  after(method: keyof Store, [request]: readonly unknown[], answer: unknown): void {
    if (method === 'commit' && !this.isSerial)
      this.checkDurable(request as readonly Transition[], answer as readonly Committed[])
    else if (method === 'commit')
      this.checkCommitted(request as readonly Transition[], answer as readonly Committed[], this.was)
    if (method === 'claim') this.checkClaimed(request as ClaimRequest, answer as Claimed)
    if (method === 'control')
      this.checkSteered(request as readonly ControlCommand[], answer as readonly ControlResult[])
    if (method === 'start') this.checkStarted(request as readonly NewRun[], answer as readonly (Started | StartBusy)[])
  }

  private checkCommitted(transitions: readonly Transition[], answers: readonly Committed[], before: Before): void {
    transitions.forEach((transition, index) => {
      const { id, runId, guard, append, parkIf } = transition
      const answer = answers[index]
      const was = before.get(runId)
      const kept = this.runs.get(runId)
      if (answer === undefined || was === undefined || kept === undefined) return
      const { run } = kept
      const isRepeated = was.ids.has(id)
      const hasMoved = run.seq !== was.run.seq || run.status !== was.run.status || run.session !== was.run.session
      if (isRepeated && hasMoved) this.fail('repetition_is_harmless', run, `${id} took effect twice`)
      if (answer.outcome === 'refused') {
        // Its parent may have ended in the same batch, and have cancelled it.
        const isCancelled = answer.reason === 'cancelling' && run.seq === was.run.seq && run.session === was.run.session
        if (hasMoved && !isCancelled) this.fail('refused_changes_nothing', run, answer.reason)
        return
      }
      if (answer.seq !== guard.seq + append.length)
        this.fail('answers_in_order', run, `seq ${answer.seq} for ${guard.seq}`)
      if (isRepeated || !hasMoved) return
      const mayWrite =
        guard.lease === null ? was.run.status === 'waiting' && was.run.session === null : holds(was.run, guard.lease)
      if (!mayWrite) this.fail('fence', run, `token ${guard.lease?.token} of ${guard.lease?.session}`)
      if (was.run.seq !== guard.seq) this.fail('fence', run, `seq ${guard.seq}, but it was ${was.run.seq}`)
      // In the same batch its parent may have ended and cancelled it, or a run that it waits for may have ended and woken it.
      const others = kept.entries.slice(answer.seq)
      if (run.seq < answer.seq || others.some(({ kind }) => kind !== 'cancelling' && kind !== 'cancelled'))
        this.fail('all_or_nothing', run, `${append.length} entries were sent`)
      const isParked = run.status === 'waiting' && run.readiness !== 'ready'
      const isUnread = parkIf !== null && isUnseen(kept, parkIf)
      if (isParked && isUnread) this.fail('no_lost_wakeup', run, 'parked unread')
      if (answer.released !== (run.session === null)) this.fail('answers_in_order', run, `released ${answer.released}`)
      if (
        was.run.controlRequest !== null &&
        run.session === null &&
        !isTerminal(run.status) &&
        run.status !== 'paused' &&
        run.status !== 'cancelling'
      ) {
        this.fail('control_request_is_kept', run, `${was.run.controlRequest.kind} was requested`)
      }
    })
  }

  /** Whatever others did since: what is answered as committed is there. */
  private checkDurable(transitions: readonly Transition[], answers: readonly Committed[]): void {
    transitions.forEach(({ id, runId, guard, append }, index) => {
      const answer = answers[index]
      const kept = this.runs.get(runId)
      if (answer === undefined || kept === undefined || answer.outcome === 'refused') return
      if (answer.seq !== guard.seq + append.length)
        this.fail('answers_in_order', kept.run, `seq ${answer.seq} for ${guard.seq}`)
      const isThere =
        append.length === 0 ||
        (kept.entries[guard.seq]?.transition === id && kept.entries.length >= guard.seq + append.length)
      if (!isThere) this.fail('all_or_nothing', kept.run, `${append.length} entries were sent after ${guard.seq}`)
    })
  }

  private checkClaimed({ session, limit }: ClaimRequest, { runs }: Claimed): void {
    if (runs.length > limit) this.fail('claim_limit', { id: '', status: 'running' }, `${runs.length} of ${limit}`)
    for (const run of runs) {
      const kept = this.runs.get(run.id)?.run
      const place = `${run.id} ${run.token}`
      if (this.leased.has(place)) this.fail('lease_given_once', run, `token ${run.token}`)
      this.leased.add(place)
      // Unless others came since, it is as it was answered.
      const isOlder = !this.isSerial && kept !== undefined && (kept.token > run.token || kept.session === null)
      if (!isOlder && (kept === undefined || kept.session !== session || kept.token !== run.token)) {
        this.fail('claimed_is_leased', run, `to ${session}`)
      }
    }
  }

  /** A caller that was answered that a run is being cancelled may rely on it. */
  private checkSteered(requests: readonly ControlCommand[], answers: readonly ControlResult[]): void {
    requests.forEach(({ id, kind, runId }, index) => {
      const outcome = answers[index]?.outcome
      const kept = this.runs.get(runId)
      if (kept === undefined || (outcome !== 'done' && outcome !== 'requested')) return
      // What is repeated took effect before, and others may have come since.
      if (kept.entries.some(({ transition }) => transition === id)) return
      const { run } = kept
      const isObeyed =
        kind === 'cancel'
          ? run.status === 'cancelling' || run.status === 'cancelled'
          : kind === 'pause'
            ? !this.isSerial || run.status === 'paused' || run.controlRequest?.kind === 'pause'
            : kind !== 'remove' || run.deletedAt !== null
      if (!isObeyed) this.fail('control_request_is_kept', run, `${kind} was answered with ${outcome}`)
    })
  }

  private checkStarted(asked: readonly NewRun[], answers: readonly (Started | StartBusy)[]): void {
    asked.forEach(({ id, type, idempotencyKey }, index) => {
      const answer = answers[index]
      if (answer === undefined || answer.taken === 'busy') return
      if (answer.created !== (answer.run.id === id)) {
        if (answer.taken !== 'id') this.fail('start_tells_the_truth', answer.run, `asked for ${id}`)
      }
      if (!this.runs.has(answer.run.id)) this.fail('start_is_durable', answer.run, 'it is not there')
      // A caller that repeats its own start is answered with that run, even if it was removed since.
      if (idempotencyKey === null || answer.run.deletedAt !== null) return
      if (this.runs.get(answer.run.id)?.run.deletedAt !== null) return
      const place = `${type} ${idempotencyKey}`
      const first = this.byIdempotencyKey.get(place)
      if (first === undefined || this.runs.get(first)?.run.deletedAt !== null)
        this.byIdempotencyKey.set(place, answer.run.id)
      else if (first !== answer.run.id) this.fail('idempotency_key', answer.run, `${place} was ${first} before`)
    })
  }

  private snapshot(transitions: readonly Transition[]): Before {
    return new Map(
      transitions.flatMap(({ runId }) => {
        const kept = this.runs.get(runId)
        const ids = new Set(kept?.entries.map(({ transition }) => transition))
        return kept === undefined ? [] : [[runId, { run: kept.run, ids }] as const]
      }),
    )
  }
}
