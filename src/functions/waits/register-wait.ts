// How a wait of the body comes into the journal. The runs that it starts or watches are attached to its entry, so that all of
// it takes place, or none. A replay finds the entry and starts nothing again.

import type { StartedChild, WaitingMeta } from '../../core/model/entry.ts'
import type { WaitTarget } from '../../core/model/wait-target.ts'
import type { NewRun } from '../../core/model/new-run.ts'
import { leaveBody } from '../../core/runtime/ports.ts'
import type { ChildStart } from '../../core/model/transition.ts'
import { waitTargetOf, type RecordedCondition } from '../../core/model/wait-condition.ts'
import { waitTargetKey } from '../../core/runtime/attachments.ts'
import { WaitCall } from '../frame/body-call.ts'
import type { FrameState } from '../frame/frame-state.ts'
import { waitsForItself, warnOfUnbegun } from '../api/misuse.ts'
import type { ChildSpec, WaitCase } from './wait-case.ts'
import type { Waits } from './waits.ts'

export interface NewWait {
  /** The identity of the call. */
  readonly name: string
  readonly cases: readonly WaitCase[]
  readonly place: string | null
}

/**
 * Takes a wait of the body. Settles with the value that the body gets for it. It is called when the body awaits, and not by a
 * method of its context, so the body is left here.
 */
export function registerWait(waits: Waits, wait: NewWait): Promise<unknown> {
  const call = new WaitCall(wait.name, wait.cases)
  call.isAwaited = true
  leaveBody(waits.state.host.ports, () => begin(waits, call, wait))
  return call.promise
}

/** Begins a wait that the body has made and does not await yet: its children are started, and its time counts. */
export function beginWait(waits: Waits, wait: NewWait): WaitCall {
  const call = new WaitCall(wait.name, wait.cases)
  begin(waits, call, wait)
  return call
}

/** The body awaits a wait that has begun. */
export function awaitBegun(waits: Waits, call: WaitCall): Promise<unknown> {
  call.isAwaited = true
  leaveBody(waits.state.host.ports, () => enterBegun(waits, call))
  return call.promise
}

function enterBegun(waits: Waits, call: WaitCall): void {
  waits.enter(call)
  const { failure } = call
  if (failure !== null) waits.settler.markReady(call, { failed: true, value: failure.error, seq: null })
}

function begin(waits: Waits, call: WaitCall, { name, cases, place }: NewWait): void {
  const { state } = waits
  const { history } = state
  call.place = place
  const recorded = history.wait(name)
  if (recorded !== undefined) {
    const { conditions } = recorded.meta
    if (!isSame(conditions, cases)) return state.frame.stuckAt(recorded)
    call.register(conditions, recorded.at)
    recall(call, cases, conditions)
    if (call.isAwaited) waits.enter(call)
    if (history.hasEndedSince(recorded)) watchAgain(state, call)
    return
  }
  if (call.isAwaited) waits.enter(call)
  const isForItself = cases.some(({ spec }) => spec.kind === 'run' && spec.runId === state.runId)
  if (isForItself) refuse(waits, call, waitsForItself(state.runId))
  else if (state.isWriting) prepare(waits, call, cases)
}

/** The wait fails before anything of it is recorded, and so it does on every replay. */
function refuse({ settler }: Waits, call: WaitCall, error: unknown): void {
  if (call.isEntered) settler.markReady(call, { failed: true, value: error, seq: null })
  else call.failure = { error }
}

/** A run that has ended receives nothing any more. If it is retried, it watches the targets of its open waits again. */
function watchAgain({ history, isWriting, writer }: FrameState, { name, conditions, isAwaited }: WaitCall): void {
  if (!isWriting || history.has('wait', name)) return
  const watches = conditions.map(waitTargetOf).filter((watched) => watched !== null)
  if (watches.length === 0) return
  const meta: WaitingMeta = isAwaited ? { conditions } : { conditions, unawaited: true }
  writer.append({ kind: 'waiting', name, meta, data: null }, { watches })
}

/** Whether the code still waits on the recorded conditions. A duration may have changed: the recorded one counts. */
function isSame(conditions: readonly RecordedCondition[], cases: readonly WaitCase[]): boolean {
  return (
    conditions.length === cases.length && conditions.every((condition, at) => fits(condition, cases[at] as WaitCase))
  )
}

function fits(condition: RecordedCondition, { tag, spec }: WaitCase): boolean {
  if (condition.tag !== tag) return false
  switch (condition.kind) {
    case 'time':
    case 'delay':
      return spec.kind === 'time' || spec.kind === 'delay'
    case 'signal':
      return spec.kind === 'signal' && spec.name === condition.name
    case 'run':
      return spec.kind === 'child' || (spec.kind === 'run' && spec.runId === condition.runId)
    case 'start':
      return spec.kind === 'start'
  }
}

/** Restores the runs that were started then, and the moments from which times count. */
function recall(call: WaitCall, cases: readonly WaitCase[], conditions: readonly RecordedCondition[]): void {
  cases.forEach(({ spec }, at) => {
    const condition = conditions[at]
    if (spec.kind === 'delay') spec.begun ??= call
    if (isChild(spec) && condition !== undefined && 'runId' in condition) spec.runId = condition.runId
  })
}

/** Prepares the runs that are to be started, at once if that is possible, and then registers the wait. */
function prepare(waits: Waits, call: WaitCall, cases: readonly WaitCase[]): void {
  const { state } = waits
  const children = cases.map(({ spec }) => spec).filter(isChild)
  try {
    const later: Promise<NewRun>[] = []
    const own = children.filter((spec) => spec.runId === null && spec.prepared === null)
    for (const spec of children) {
      if (spec.runId !== null) continue
      const prepared = prepareChild(waits, spec)
      if (prepared instanceof Promise) later.push(prepared)
    }
    if (later.length === 0) return register(waits, call, cases, own)
    waits.prepare()
    const refuseLater = (error: unknown): void => {
      refuse(waits, call, error)
      if (state.hasBodyEnded && !call.isAwaited) warnOfUnbegun(state.host, state.run, error)
    }
    void Promise.all(later).then(
      () => waits.prepared(() => register(waits, call, cases, own)),
      (error: unknown) => waits.prepared(() => refuseLater(error)),
    )
  } catch (error) {
    refuse(waits, call, error)
  }
}

function prepareChild(waits: Waits, spec: ChildSpec): NewRun | Promise<NewRun> {
  const { state } = waits
  const { workflow, input, options } = spec
  spec.prepared ??= state.host.prepare({ parentId: state.runId, workflow, input, options })
  if (spec.prepared instanceof Promise) {
    return spec.prepared.then((run) => {
      spec.prepared = run
      return run
    })
  }
  return spec.prepared
}

/** Appends the entry. `own` are the runs that start with it. */
function register(waits: Waits, call: WaitCall, cases: readonly WaitCase[], own: readonly ChildSpec[]): void {
  const starts: ChildStart[] = []
  const started: Record<string, StartedChild> = {}
  for (const spec of own) {
    const run = spec.prepared as NewRun
    const { type } = run
    const isOutlasted = spec.onParentEnd === 'wait'
    spec.runId = run.id
    const awaited = spec.kind === 'child' || isOutlasted
    starts.push({ run, awaited, onParentEnd: spec.onParentEnd === 'cancel' ? 'cancel' : 'abandon' })
    started[run.id] = isOutlasted ? { type, outlasted: true } : { type }
    if (isOutlasted) waits.outlast(run.id)
  }
  const conditions = cases.map(conditionOf)
  for (const { spec } of cases) if (spec.kind === 'delay') spec.begun ??= call
  const watches = new Map<string, WaitTarget>()
  for (const condition of conditions) {
    const watched = waitTargetOf(condition)
    if (watched === null || (watched.kind === 'run' && watched.runId in started)) continue
    watches.set(waitTargetKey(watched), watched)
  }
  const meta: WaitingMeta = {
    conditions,
    ...(call.isEntered ? {} : { unawaited: true }),
    ...(starts.length === 0 ? {} : { started }),
  }
  const hasOutbound = starts.length > 0 || watches.size > 0
  const attachment = hasOutbound ? { starts, watches: [...watches.values()] } : null
  waits.state.writer.append({ kind: 'waiting', name: call.name, meta, data: null }, attachment)
  call.register(conditions, null)
  waits.registered(call)
  if (call.isEntered) waits.open(call)
}

function conditionOf({ tag, spec }: WaitCase): RecordedCondition {
  if (spec.kind === 'delay') {
    const since = spec.begun?.registeredAt ?? null
    return since === null ? { tag, kind: 'delay', ms: spec.ms } : { tag, kind: 'time', at: since + spec.ms }
  }
  if (!isChild(spec)) return { tag, ...spec }
  return { tag, kind: spec.kind === 'child' ? 'run' : 'start', runId: spec.runId ?? '' }
}

function isChild(spec: WaitCase['spec']): spec is ChildSpec {
  return spec.kind === 'child' || spec.kind === 'start'
}
