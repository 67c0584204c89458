// How a wait of the body comes into the journal. What it starts or watches is attached to its entry, so that all of it takes
// place, or none. A replay finds the entry and starts nothing again.

import type { StartedChild, WaitingMeta } from '../core/entry.ts'
import type { Watched } from '../core/watched.ts'
import type { NewRun } from '../core/new-run.ts'
import { leaveBody } from '../core/ports.ts'
import type { ChildStart } from '../core/transition.ts'
import { watchedBy, type Condition } from '../core/wait.ts'
import { watchedKey } from '../core/attachments.ts'
import { WaitCall } from './call.ts'
import { warnOfUnbegun } from './misuse.ts'
import type { Stage } from './stage.ts'
import type { ChildAsk, Way } from './way.ts'

export interface NewWait {
  /** The identity of the call. */
  readonly name: string
  readonly ways: readonly Way[]
  readonly place: string | null
}

/**
 * Takes a wait of the body. Settles with what the body gets for it. It is called when the body awaits, and not by a method of its
 * context, so the body is left here.
 */
export function registerWait(stage: Stage, wait: NewWait): Promise<unknown> {
  const call = new WaitCall(wait.name, wait.ways)
  call.isAwaited = true
  leaveBody(stage.host.ports, () => begin(stage, call, wait))
  return call.promise
}

/** Begins a wait that the body has made and does not await yet: what it starts is started, and time counts. */
export function beginWait(stage: Stage, wait: NewWait): WaitCall {
  const call = new WaitCall(wait.name, wait.ways)
  begin(stage, call, wait)
  return call
}

/** The body awaits what has begun. */
export function awaitBegun(stage: Stage, call: WaitCall): Promise<unknown> {
  call.isAwaited = true
  leaveBody(stage.host.ports, () => enterBegun(stage, call))
  return call.promise
}

function enterBegun(stage: Stage, call: WaitCall): void {
  stage.enterWait(call)
  const { failure } = call
  if (failure !== null) stage.ripen(call, { failed: true, value: failure.error, seq: null })
}

function begin(stage: Stage, call: WaitCall, { name, ways, place }: NewWait): void {
  call.place = place
  const recorded = stage.history.wait(name)
  if (recorded !== undefined) {
    const { conditions } = recorded.meta
    if (!isSame(conditions, ways)) return stage.stuckAt(recorded)
    call.register(conditions, recorded.at)
    recall(call, ways, conditions)
    if (call.isAwaited) stage.enterWait(call)
    if (stage.history.hasEndedSince(recorded)) watchAgain(stage, call)
    return
  }
  if (call.isAwaited) stage.enterWait(call)
  if (stage.isWriting) prepare(stage, call, ways)
}

/** A run that has ended is told nothing any more. If it is let go on, it watches again what it still waits for. */
function watchAgain({ history, isWriting, writer }: Stage, { name, conditions }: WaitCall): void {
  if (!isWriting || history.has('wait', name)) return
  const watches = conditions.map(watchedBy).filter((watched) => watched !== null)
  if (watches.length > 0) writer.append({ kind: 'waiting', name, meta: { conditions }, data: null }, { watches })
}

/** Tells whether the code still waits on what the journal says. A duration may have changed: the recorded one counts. */
function isSame(conditions: readonly Condition[], ways: readonly Way[]): boolean {
  return conditions.length === ways.length && conditions.every((condition, at) => fits(condition, ways[at] as Way))
}

function fits(condition: Condition, { tag, ask }: Way): boolean {
  if (condition.tag !== tag) return false
  switch (condition.kind) {
    case 'time':
    case 'delay':
      return ask.kind === 'time' || ask.kind === 'delay'
    case 'signal':
      return ask.kind === 'signal' && ask.name === condition.name
    case 'run':
      return ask.kind === 'child' || (ask.kind === 'run' && ask.runId === condition.runId)
    case 'start':
      return ask.kind === 'start'
  }
}

/** What was started then is known again, and since when a time counts. */
function recall(call: WaitCall, ways: readonly Way[], conditions: readonly Condition[]): void {
  ways.forEach(({ ask }, at) => {
    const condition = conditions[at]
    if (ask.kind === 'delay') ask.begun ??= call
    if (isChild(ask) && condition !== undefined && 'runId' in condition) ask.runId = condition.runId
  })
}

/** Prepares the runs that are to be started, at once if that is possible, and then registers the wait. */
function prepare(stage: Stage, call: WaitCall, ways: readonly Way[]): void {
  const asks = ways.map(({ ask }) => ask).filter(isChild)
  const fail = (error: unknown): void => {
    if (call.isEntered) stage.ripen(call, { failed: true, value: error, seq: null })
    else call.failure = { error }
  }
  try {
    const later: Promise<NewRun>[] = []
    const own = asks.filter((ask) => ask.runId === null && ask.prepared === null)
    for (const ask of asks) {
      if (ask.runId !== null) continue
      const prepared = prepareChild(stage, ask)
      if (prepared instanceof Promise) later.push(prepared)
    }
    if (later.length === 0) return register(stage, call, ways, own)
    stage.preparing += 1
    const refuse = (error: unknown): void => {
      fail(error)
      if (stage.hasBodyEnded && !call.isAwaited) warnOfUnbegun(stage.host, stage.run, error)
    }
    void Promise.all(later).then(
      () => stage.prepared(() => register(stage, call, ways, own)),
      (error: unknown) => stage.prepared(() => refuse(error)),
    )
  } catch (error) {
    fail(error)
  }
}

function prepareChild(stage: Stage, ask: ChildAsk): NewRun | Promise<NewRun> {
  const { workflow, input, options } = ask
  ask.prepared ??= stage.host.prepare({ parentId: stage.runId, workflow, input, options })
  if (ask.prepared instanceof Promise) {
    return ask.prepared.then((run) => {
      ask.prepared = run
      return run
    })
  }
  return ask.prepared
}

/** Appends the entry. `own` are the runs that start with it. */
function register(stage: Stage, call: WaitCall, ways: readonly Way[], own: readonly ChildAsk[]): void {
  const starts: ChildStart[] = []
  const started: Record<string, StartedChild> = {}
  for (const ask of own) {
    const run = ask.prepared as NewRun
    const { type } = run
    const isOutlasted = ask.onParentEnd === 'wait'
    ask.runId = run.id
    const awaited = ask.kind === 'child' || isOutlasted
    starts.push({ run, awaited, onParentEnd: ask.onParentEnd === 'cancel' ? 'cancel' : 'abandon' })
    started[run.id] = isOutlasted ? { type, outlasted: true } : { type }
    if (isOutlasted) stage.dependants.add(run.id)
  }
  const conditions = ways.map(conditionOf)
  for (const { ask } of ways) if (ask.kind === 'delay') ask.begun ??= call
  const watches = new Map<string, Watched>()
  for (const condition of conditions) {
    const watched = watchedBy(condition)
    if (watched === null || (watched.kind === 'run' && watched.runId in started)) continue
    watches.set(watchedKey(watched), watched)
  }
  const meta: WaitingMeta = {
    conditions,
    ...(call.isEntered ? {} : { unawaited: true }),
    ...(starts.length === 0 ? {} : { started }),
  }
  const reaches = starts.length > 0 || watches.size > 0
  const attachment = reaches ? { starts, watches: [...watches.values()] } : null
  stage.writer.append({ kind: 'waiting', name: call.name, meta, data: null }, attachment)
  call.register(conditions, null)
  stage.registered(call)
  if (call.isEntered) stage.openWait(call)
}

function conditionOf({ tag, ask }: Way): Condition {
  if (ask.kind === 'delay') {
    const since = ask.begun?.registeredAt ?? null
    return since === null ? { tag, kind: 'delay', ms: ask.ms } : { tag, kind: 'time', at: since + ask.ms }
  }
  if (!isChild(ask)) return { tag, ...ask }
  return { tag, kind: ask.kind === 'child' ? 'run' : 'start', runId: ask.runId ?? '' }
}

function isChild(ask: Way['ask']): ask is ChildAsk {
  return ask.kind === 'child' || ask.kind === 'start'
}
