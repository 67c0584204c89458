// Timers that gave up, and what an operator does about them. Both are one entry in the journal of the instance, in a transition
// without a lease: the timer once more, due at once, or that it is cancelled. No decision of the author is asked for.

import type { Decided } from '../../core/definition/decider-model.ts'
import { decidedTransition, type WrittenRun } from '../../core/deciding/decided-transition.ts'
import type { Definition } from '../../core/definition/definition.ts'
import { HoldfastError } from '../../core/errors/error.ts'
import type { Due } from '../../core/model/due.ts'
import type { Draft, Entry } from '../../core/model/entry.ts'
import { isTerminal, type Run } from '../../core/model/run.ts'
import { createBackoff } from '../../core/runtime/backoff.ts'
import { assertNotPure } from '../../core/runtime/pure-call.ts'
import { quotedText } from '../../core/text/printable.ts'
import { shown } from '../../core/text/suggest.ts'
import { findInstanceRun, refusalReason } from '../../engine/deciders/cached-instance.ts'
import { hostOf } from '../../engine/deciders/deciding-engine.ts'
import { expectWorker } from '../../engine/deciders/expect-worker.ts'
import type { Engine } from '../../engine/engine.ts'
import { loadJournal } from '../../engine/store/journal-pages.ts'
import { assertNotAborted, reading, type AbortOption } from '../abort-option.ts'
import { deciderOf } from './execute.ts'
import type { TimerFailure } from './instance-views.ts'
import { checkInstanceId } from './read-instance.ts'

type EntryOf<Kind extends Entry['kind']> = Extract<Entry, { readonly kind: Kind }>

/** A timer that gave up, and was not armed again since. */
interface DeadTimer {
  readonly armed: EntryOf<'timer'>
  readonly failed: EntryOf<'timer-failed'>
}

/** How often it is tried while others move the instance. */
const mostTries = 12

const pauses = { firstMs: 8, longestMs: 1_000 }

/** @internal */
export async function readDeadTimers(
  engine: Engine,
  decider: Definition | string,
  id: string,
  options?: AbortOption,
): Promise<readonly TimerFailure[]> {
  engine.assertOpen()
  const { type } = deciderOf(engine, decider)
  const named = checkInstanceId(id)
  return reading('deadTimers()', options, async () => {
    const run = await findInstanceRun(engine, type, named)
    if (run === null) return []
    const { payloads } = engine
    const { dead } = await deadTimersOf(engine, run.id)
    return Promise.all(
      dead.map(async ({ failed: { seq, at, kind, name, meta, data } }) => {
        const error = payloads.decode(await payloads.fetch(data), payloads.place(run.id, seq, kind, name))
        const key = name.startsWith('#') ? null : name
        return { seq, at: new Date(at), name, key, attempts: meta.attempt, error }
      }),
    )
  })
}

interface Found {
  /** In the order in which they gave up. */
  readonly dead: readonly DeadTimer[]
  /** The number of the last entry. */
  readonly seq: number
}

async function deadTimersOf({ store }: Pick<Engine, 'store'>, runId: string): Promise<Found> {
  const armed = new Map<string, EntryOf<'timer'>>()
  const dead = new Map<string, DeadTimer>()
  let last = 0
  for await (const { entries } of loadJournal(store, runId)) {
    for (const entry of entries) {
      last = entry.seq
      if (entry.kind === 'timer') armed.set(entry.name, entry)
      // Its name is used anew, or an operator wants no more of it.
      if (entry.kind === 'timer' || entry.kind === 'timer-cancelled') dead.delete(entry.name)
      const failed = entry.kind === 'timer-failed' ? armed.get(entry.name) : undefined
      if (entry.kind === 'timer-failed' && failed !== undefined) dead.set(entry.name, { armed: failed, failed: entry })
    }
  }
  return { dead: [...dead.values()], seq: last }
}

export interface DeadTimerCall {
  readonly decider: Definition | string
  readonly id: string
  readonly name: string
  readonly options: AbortOption | undefined
}

/** @internal */
export async function retryDeadTimer(
  engine: Engine,
  call: DeadTimerCall,
): Promise<{ readonly outcome: 'retried' | 'not-dead' }> {
  return { outcome: (await settle(engine, call, 'retryDeadTimer()', rearmed)) ? 'retried' : 'not-dead' }
}

/** @internal */
export async function discardDeadTimer(
  engine: Engine,
  call: DeadTimerCall,
): Promise<{ readonly outcome: 'discarded' | 'not-dead' }> {
  return { outcome: (await settle(engine, call, 'discardDeadTimer()', cancelled)) ? 'discarded' : 'not-dead' }
}

interface Change {
  readonly entry: Draft
  readonly due: Due | null
}

type Changing = (engine: Engine, run: Run, timer: DeadTimer, seq: number) => Promise<Change>

/** The same timer with attempts from one on, due with the commit of its entry. */
const rearmed: Changing = async ({ payloads }, run, { armed: { seq: from, kind, name, data } }, seq) => {
  const input = payloads.decode(await payloads.fetch(data), payloads.place(run.id, from, kind, name))
  const text = payloads.encode(input, payloads.place(run.id, seq, kind, name))
  return {
    entry: { kind, name, meta: { at: null, afterMs: 0 }, data: text },
    due: { at: run.due, afterMs: 0 },
  }
}

const cancelled: Changing = async (_, { due }, { armed: { name } }) => ({
  entry: { kind: 'timer-cancelled', name, meta: null, data: null },
  due: due === null ? null : { at: due, afterMs: null },
})

/** Whether the timer was dead, and is so no more. */
async function settle(
  engine: Engine,
  { decider, id, name, options }: DeadTimerCall,
  where: string,
  changing: Changing,
): Promise<boolean> {
  assertNotPure(`holdfast.${where}`)
  engine.assertOpen()
  const { type } = deciderOf(engine, decider)
  const instanceId = checkInstanceId(id)
  if (typeof name !== 'string') {
    const text = `${where} takes the name of the timer, as deadTimers() lists it. Got ${shown(name)}.`
    throw new HoldfastError('INVALID_OPTION', text)
  }
  return reading(where, options, async () => {
    const pause = createBackoff(engine.ports, pauses)
    for (let tries = 1; ; tries += 1) {
      assertNotAborted(where, options?.abortSignal)
      const run = await findInstanceRun(engine, type, instanceId)
      if (run === null || isTerminal(run.status)) return false
      const { dead, seq } = await deadTimersOf(engine, run.id)
      const timer = dead.find(({ armed }) => armed.name === name)
      if (timer === undefined) return false
      if (seq === run.seq) {
        const change = await changing(engine, run, timer, seq + 1)
        if (await isCommitted(engine, { ...run, instanceId }, seq, change)) return true
      }
      if (run.status === 'paused' || tries === mostTries) throw inTheWay(run, instanceId)
      await pause()
    }
  })
}

/** False if the instance has moved on, or is held by another process. */
async function isCommitted(engine: Engine, run: WrittenRun, seq: number, { entry, due }: Change): Promise<boolean> {
  const decided: Decided = { ...nothing, append: [entry], due }
  const options = { host: hostOf(engine), run, seq, decided, lease: null, parkIf: null }
  const made = await decidedTransition({ ...options, isWanted: () => !engine.isClosed })
  try {
    await engine.commit(made)
  } catch (error) {
    if (refusalReason(error) === null) throw error
    return false
  }
  expectWorker(engine, run, made)
  engine.onReady()
  return true
}

const nothing: Omit<Decided, 'append' | 'due'> = {
  answers: [],
  begun: null,
  fired: [],
  isCut: false,
  takes: [],
  settles: [],
  effects: [],
  starts: [],
  signals: [],
  end: null,
  snapshotAt: null,
}

function inTheWay({ id: runId, type, status }: Run, id: string): HoldfastError {
  const todo = status === 'paused' ? 'Resume its run first.' : 'Others move it all the time: call again.'
  return new HoldfastError(
    'WRONG_STATUS',
    `Instance ${quotedText(id)} of decider ${quotedText(type)} is ${status}, so its timer stays as it is. ${todo}`,
    { details: { runId, type, id, status } },
  )
}
