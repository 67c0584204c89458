// A run that a rig holds, and what may happen to it from outside: it is claimed anew, its process dies, an operator controls it.

import type { Claim, Definition, Departure, DepartureListener, Frame } from '../../src/core/definition/definition.ts'
import type { Entry } from '../../src/core/model/entry.ts'
import type { PauseReason } from '../../src/core/model/run.ts'
import type { Revival, ControlResult } from '../../src/core/rules/control.ts'
import type { FunctionRig } from './function-rig.ts'

/** A run that the rig holds: its frame, and how that departed. */
export class Held {
  readonly runId: string
  frame: Frame
  departure: Departure | null = null
  private readonly rig: FunctionRig
  private definition: Definition

  constructor(rig: FunctionRig, definition: Definition, claim: Claim) {
    this.rig = rig
    this.definition = definition
    this.runId = claim.run.id
    this.frame = definition.open(rig.host, claim)
  }

  /** Lets the body begin, and go as far as it can by itself. */
  async begin(): Promise<this> {
    this.frame.start(this.followed())
    await this.rig.quiet()
    return this
  }

  /** Claims the run again when it is due: goes on in memory if that is possible and wanted, by a replay otherwise. */
  async goOn(how: 'in memory' | 'replayed' = 'in memory'): Promise<this> {
    const { due } = await this.rig.run(this.runId)
    if (due === null) throw new Error('The run is not due by itself')
    this.rig.clock.moveTo(due)
    const claim = this.rig.claim(this.runId)
    if (how === 'in memory' && this.frame.seq === claim.run.seq) {
      this.frame.resume({ ...claim, entries: [] }, this.followed())
      await this.rig.quiet()
      return this
    }
    return this.open(claim)
  }

  /** Goes on as what the run is from its last entry on, under the same lease. */
  continueWith(definition = this.definition): Promise<this> {
    if (this.departure?.kind !== 'continued') throw new Error('The run did not begin anew')
    this.definition = definition
    const run = this.rig.store.row(this.runId)
    const lease = { session: run.session ?? '', token: run.token }
    return this.open({ run, lease, entries: [this.departure.input], messages: [] })
  }

  private open(claim: Claim): Promise<this> {
    this.frame = this.definition.open(this.rig.host, claim)
    return this.begin()
  }

  /** The process dies: nothing that the frame does from here on reaches anybody, and others may take the run over. */
  async crash(): Promise<void> {
    this.die()
    await this.rig.quiet()
  }

  die(): void {
    const { status } = this.rig.store.row(this.runId)
    this.rig.restart()
    this.frame.abort(new Error('The process died'))
    if (status === 'running' || status === 'cancelling') this.rig.store.takeOver(this.runId)
  }

  /** An operator cancels the run. Its holder hears of it with its next beat, or with the answer to its next commit. */
  async cancel(reason: string | null = null, heard: 'now' | 'later' = 'now'): Promise<ControlResult> {
    return this.controlled(this.rig.store.control(this.runId, { kind: 'cancel', mode: 'cooperative', reason }), heard)
  }

  async pause(reason: PauseReason = 'operator', heard: 'now' | 'later' = 'now'): Promise<ControlResult> {
    return this.controlled(this.rig.store.control(this.runId, { kind: 'pause', reason, note: 'a note' }), heard)
  }

  /** An operator lets a paused run go on, or a failed one, with repairs of its journal if there are any. */
  async revive(kind: 'resume' | 'retry', amend: Revival['amend'] = []): Promise<ControlResult> {
    return this.controlled(this.rig.store.control(this.runId, { kind, note: null, amend, seq: null }), 'later')
  }

  private async controlled(answer: ControlResult, heard: 'now' | 'later'): Promise<ControlResult> {
    const { controlRequest } = this.rig.store.row(this.runId)
    if (heard === 'now' && answer.outcome === 'requested' && controlRequest !== null) {
      if (controlRequest.kind === 'cancel') this.rig.heard.add(this.runId)
      this.frame.applyControl(controlRequest)
    }
    await this.rig.quiet()
    return answer
  }

  async status(): Promise<string> {
    return this.rig.store.row(this.runId).status
  }

  journal(): Promise<readonly Entry[]> {
    return this.rig.journal(this.runId)
  }

  /** The journal, in short: kinds and names. */
  async story(): Promise<readonly string[]> {
    return (await this.journal()).map(({ kind, name }) => (name === null ? kind : `${kind} ${name}`))
  }

  /** The value of the last entry: what the run returned, or why it failed. */
  async outcome(): Promise<{ readonly status: string; readonly value: unknown }> {
    const { status } = await this.rig.run(this.runId)
    const last = (await this.journal()).at(-1)
    if (last === undefined || last.data === null) return { status, value: undefined }
    const { payloads } = this.rig
    const place = payloads.place(this.runId, last.seq, last.kind, last.name)
    return { status, value: payloads.decode(await payloads.fetch(last.data), place) }
  }

  private followed(): DepartureListener {
    this.departure = null
    return { departed: (how) => (this.departure = how) }
  }
}
