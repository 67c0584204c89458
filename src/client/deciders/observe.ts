// What instances really did: each accepted input as a step from one status to another, counted. All of it is read from journals,
// which have every input with its outcome; nothing else is stored.

import type { DeciderView } from '../../core/definition/state-machine.ts'
import type { Definition } from '../../core/definition/definition.ts'
import { HoldfastError } from '../../core/errors/error.ts'
import type { Entry, InputMeta } from '../../core/model/entry.ts'
import type { Run } from '../../core/model/run.ts'
import { checkOptions } from '../../core/text/suggest.ts'
import { quotedText } from '../../core/text/printable.ts'
import { adminOf } from '../../engine/store/store-admin.ts'
import type { Engine } from '../../engine/engine.ts'
import { abortable, assertNotAborted } from '../abort-option.ts'
import { checkWhole } from '../read/cursor.ts'
import { deciderOf } from './execute.ts'
import type { ObserveOptions } from './instance-reader.ts'
import type { Observed, ObservedTransition } from './instance-views.ts'
import { codeOf, entriesOf, openInstance } from './instance-walk.ts'

const instancesAtOnce = 100

/** @internal */
export async function observeInstances(
  engine: Engine,
  decider: Definition | string,
  options: ObserveOptions = {},
): Promise<Observed> {
  engine.assertOpen()
  checkOptions(options, ['limit', 'abortSignal'], 'observe()')
  const { limit = 1_000, abortSignal } = options
  checkWhole(limit, 'observe({ limit })', { least: 1, most: Number.MAX_SAFE_INTEGER - 1 })
  const { type } = deciderOf(engine, decider)
  return abortable('observe()', abortSignal, async () => {
    const tally = new Tally()
    let read = 0
    for await (const run of newest(engine, type)) {
      if (read === limit) return { ...tally.result(), instances: read, isCapped: true }
      await tally.add(engine, run)
      read += 1
      assertNotAborted('observe()', abortSignal)
    }
    return { ...tally.result(), instances: read, isCapped: false }
  })
}

async function* newest(engine: Engine, type: string): AsyncGenerator<Run, void> {
  const admin = adminOf(engine)
  for (let after: string | undefined; ;) {
    const runs = await admin.find(
      { types: [type] },
      { limit: instancesAtOnce, ...(after === undefined ? {} : { after }) },
    )
    yield* runs
    after = runs.at(-1)?.id
    if (runs.length < instancesAtOnce) return
  }
}

interface Counted {
  readonly step: Pick<ObservedTransition, 'from' | 'input' | 'to' | 'outcome'>
  count: number
  firstAt: number
  lastAt: number
  readonly effects: Set<string>
  readonly timers: Set<string>
}

/** An input whose entries are being read. */
interface Current {
  readonly from: string
  readonly input: string
  readonly outcome: ObservedTransition['outcome']
  readonly at: number
  readonly effects: string[]
  readonly timers: string[]
}

class Tally {
  private readonly steps = new Map<string, Counted>()
  private readonly initial = new Set<string>()
  private readonly terminal = new Set<string>()

  async add(engine: Engine, run: Run): Promise<void> {
    const code = codeOf(engine, run)
    const view = viewOf(code.model.view, run.type)
    const instance = openInstance(engine, code, run)
    const status = (): string => view.stateInfo(instance.state).status
    let current: Current | null = null
    const close = (): void => {
      if (current !== null) this.count(current, current.outcome === 'accepted' ? status() : current.from)
      current = null
    }
    for await (const entry of entriesOf(engine, run)) {
      // What follows from an input stands behind it, in one transition: whatever does not follow from one ends it.
      if (!follows.has(entry.kind)) close()
      if (entry.kind === 'started') this.initial.add(status())
      if (entry.kind === 'input') current = begun(entry, status())
      if (entry.kind === 'effect') current?.effects.push(entry.name.slice(0, entry.name.lastIndexOf('#')))
      if (entry.kind === 'timer') current?.timers.push(entry.name.startsWith('#') ? '#' : entry.name)
      instance.apply([entry])
    }
    close()
    if (instance.isOver && instance.hasBegun) this.terminal.add(status())
  }

  result(): Pick<Observed, 'initial' | 'terminal' | 'transitions'> {
    const transitions = [...this.steps.values()].map(({ step, count, firstAt, lastAt, effects, timers }) => ({
      ...step,
      count,
      firstAt: new Date(firstAt),
      lastAt: new Date(lastAt),
      effects: [...effects],
      timers: [...timers],
    }))
    transitions.sort((one, other) => keyOf(one).localeCompare(keyOf(other), 'en'))
    return { initial: [...this.initial], terminal: [...this.terminal], transitions }
  }

  private count({ from, input, outcome, at, effects, timers }: Current, to: string): void {
    const step = { from, input, to, outcome }
    const key = keyOf(step)
    const known = this.steps.get(key)
    if (known === undefined) {
      const counted = { step, count: 1, firstAt: at, lastAt: at, effects: new Set(effects), timers: new Set(timers) }
      this.steps.set(key, counted)
      return
    }
    known.count += 1
    known.firstAt = Math.min(known.firstAt, at)
    known.lastAt = Math.max(known.lastAt, at)
    for (const effect of effects) known.effects.add(effect)
    for (const timer of timers) known.timers.add(timer)
  }
}

/** Kinds of entries that stand behind an input and follow from it. */
const follows: ReadonlySet<Entry['kind']> = new Set([
  'event',
  'effect',
  'timer',
  'timer-cancelled',
  'start-sent',
  'signal-sent',
  'input-rejected',
  'input-failed',
])

function begun({ name, meta, at }: Extract<Entry, { kind: 'input' }>, from: string): Current | null {
  const { outcome } = meta
  if (!isStep(outcome)) return null
  return { from, input: name ?? 'an unreadable input', outcome, at, effects: [], timers: [] }
}

function isStep(outcome: InputMeta['outcome']): outcome is ObservedTransition['outcome'] {
  return outcome === 'accepted' || outcome === 'rejected' || outcome === 'failed'
}

function keyOf({ from, input, to, outcome }: Counted['step']): string {
  return JSON.stringify([from, input, to, outcome])
}

function viewOf(view: DeciderView | null, type: string): DeciderView {
  if (view !== null) return view
  throw new HoldfastError(
    'INVALID_OPTION',
    `Decider ${quotedText(type)} has no view, so its states have no names. Give it one: view: { stateInfo: (state) => ({ status: state.status }) }.`,
    { details: { type } },
  )
}
