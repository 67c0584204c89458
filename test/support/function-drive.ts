// What moves a run on from rest to rest until it has ended: attempts that end, time that passes, and what people and fate do
// to it meanwhile.

import { fc } from './properties.ts'
import type { RecordedCondition } from '../../src/core/model/wait-condition.ts'
import type { Entry } from '../../src/core/model/entry.ts'
import { isTerminal } from '../../src/core/model/run.ts'
import type { Play } from './function-program.ts'
import type { FunctionRig, Held } from './function-rig.ts'

/** What may happen next to a run at rest: an attempt ends, or time passes. */
export type Event = { readonly gates: readonly string[] } | 'time'

/** Moves a run from rest to rest until it has ended, as `choose` says. */
export async function drive(
  rig: FunctionRig,
  held: Held,
  choose: (options: { readonly gates: readonly string[]; readonly timeAt: number | null }) => Event,
  how: 'in memory' | 'replayed' = 'in memory',
): Promise<void> {
  for (let event = 0; event < 400; event += 1) {
    if (held.departure?.kind === 'ended') return
    if (held.departure?.kind === 'lost') throw new Error('The run was lost', { cause: held.departure.reason })
    if (held.departure !== null) {
      await held.goOn(how)
      continue
    }
    const gates = rig.gates.map(({ step }) => step).sort()
    const timeAt = rig.clock.nextAt
    if (gates.length === 0 && timeAt === null) throw new Error('Nothing can move the run on, and it has not ended')
    const chosen = choose({ gates, timeAt })
    if (chosen !== 'time') for (const step of chosen.gates) rig.gate(step).succeed()
    else if (timeAt === null) throw new Error('No time to wait for')
    else rig.clock.moveTo(timeAt)
    await rig.quiet()
  }
  throw new Error('The program does not end')
}

/** Those that come more than once here come more often. */
const deeds = [
  ...(['end', 'end', 'end', 'end', 'end', 'throw', 'time', 'time', 'fail'] as const),
  ...(['cancel', 'cancel later', 'pause', 'pause later', 'resume'] as const),
  ...(['crash', 'crash before a commit', 'crash after a commit'] as const),
] as const

/** What may be done to a run while it rests. `later`: its holder hears of it with the answer to its next commit. */
export interface Act {
  readonly does: (typeof deeds)[number]
  /** Which of the attempts that are running. */
  readonly which: number
}

export const acts: fc.Arbitrary<readonly Act[]> = fc.array(
  fc.record({
    does: fc.constantFrom(...deeds),
    which: fc.nat(5),
  }),
  { maxLength: 20 },
)

const patient: Act = { does: 'end', which: 0 }

/** Lets a run live its life as the acts say, and after them until it ends. */
export async function live(rig: FunctionRig, held: Held, play: Play, script: readonly Act[]): Promise<void> {
  await held.begin()
  for (let event = 0; event < 400; event += 1) {
    const { status } = rig.store.row(held.runId)
    if (isTerminal(status)) return
    const act = script[event] ?? patient
    if (held.departure === null) await whileHeld(rig, held, play, act)
    else await whileNobodys(held, act)
  }
  throw new Error('The run does not end')
}

async function whileHeld(rig: FunctionRig, held: Held, play: Play, { does, which }: Act): Promise<void> {
  const gates = rig.gates.map(({ step }) => step).sort()
  switch (does) {
    case 'cancel':
    case 'cancel later':
      return void (await held.cancel(null, does === 'cancel' ? 'now' : 'later'))
    case 'pause':
    case 'pause later':
      return void (await held.pause('operator', does === 'pause' ? 'now' : 'later'))
    case 'resume':
      return void (await held.revive('resume'))
    case 'fail':
      held.frame.fail(new Error('Out of time'))
      return rig.quiet()
    case 'crash':
      play.crashed()
      return held.crash()
    case 'crash before a commit':
    case 'crash after a commit':
      rig.dies = {
        hasLanded: does === 'crash after a commit',
        how: () => {
          play.crashed()
          held.die()
        },
      }
      return
    case 'time':
    case 'end':
    case 'throw': {
      const gate = gates[which % gates.length]
      if (gate !== undefined && does !== 'time') {
        return does === 'end' ? rig.succeed(gate) : rig.fail(gate, new Error('Thrown'))
      }
      const { nextAt } = rig.clock
      if (nextAt !== null) rig.clock.moveTo(nextAt)
      else if (gate !== undefined) return rig.succeed(gate)
      else throw new Error('Nothing can move the run on, and it has not ended')
      return rig.quiet()
    }
  }
}

async function whileNobodys(held: Held, { does, which }: Act): Promise<void> {
  if (does.startsWith('cancel')) await held.cancel()
  else if (does.startsWith('pause')) await held.pause()
  if (isTerminal((await held.status()) as never)) return
  if ((await held.status()) === 'paused') await held.revive('resume')
  await held.goOn(which % 2 === 0 ? 'in memory' : 'replayed')
}

/** What a journal that has come to its end says against the rules of how runs end. */
export function brokenRules(journal: readonly Entry[]): readonly string[] {
  const broken: string[] = []
  const of = (...kinds: readonly Entry['kind'][]): readonly Entry[] =>
    journal.filter(({ kind }) => kinds.includes(kind))
  const ends = of('succeeded', 'failed', 'cancelled')
  const [end] = ends
  if (ends.length !== 1 || end !== journal.at(-1)) broken.push('There is not one end, and nothing after it')
  // What is known last of a step counts: it happened, or nobody knows, or it did not.
  const outcomes = of('step-succeeded', 'step-failed', 'abandoned').filter(
    ({ kind, meta }) => kind !== 'abandoned' || isUndoable(meta),
  )
  const known = new Map(outcomes.map((entry) => [entry.name, entry]))
  const undoable = [...known.values()].filter(({ meta }) => isUndoable(meta))
  const undone = of('undone', 'undo-failed').map(({ name }) => name)
  const inOrder = undoable.toSorted((one, other) => other.seq - one.seq)
  const expected = end?.kind === 'succeeded' ? [] : inOrder.map(({ name }) => name)
  if (JSON.stringify(undone) !== JSON.stringify(expected)) {
    broken.push(`Undone was ${undone.join(', ')}, expected was ${expected.join(', ')}`)
  }
  const notUndone = end?.kind === 'failed' || end?.kind === 'cancelled' ? (end.meta?.notUndone ?? []) : []
  const failed = of('undo-failed').map(({ name }) => name)
  if (JSON.stringify(notUndone) !== JSON.stringify(failed))
    broken.push(`Not undone is said to be ${notUndone.join(', ')}`)
  const begun = journal.findIndex(({ kind }) => kind === 'failing' || kind === 'undone' || kind === 'undo-failed')
  // What was under way when a process died is attempted once more.
  const before = new Set(of('begun').flatMap(({ seq, name }) => (seq <= begun ? [name] : [])))
  const late = begun === -1 ? [] : journal.slice(begun).filter(({ kind, name }) => body.has(kind) && !before.has(name))
  if (late.length > 0) broken.push(`Came after the undo work had begun: ${late.map(({ kind }) => kind).join(', ')}`)
  return broken
}

function isUndoable(meta: Entry['meta']): boolean {
  return (meta as { readonly undo?: true }).undo === true
}

/** What only a body that goes on writes. */
const body = new Set<Entry['kind']>([
  'begun',
  'step-succeeded',
  'step-failed',
  'attempt-failed',
  'recorded',
  'waiting',
  'woken',
  'logged',
  'progressed',
])

/** An entry without what may differ between two executions that are the same. */
export function essence(entry: Entry, index: number, recordedUpTo = Infinity): unknown {
  const { kind, name } = entry
  if (kind === 'recorded') return { kind, name, data: index < recordedUpTo ? entry.data : null }
  if (kind === 'woken') return { kind, name, winner: entry.meta.winner }
  if (kind === 'waiting') {
    // A sleep that is raced after it was made counts from an entry that may not be durable yet, or from its time.
    const isTime = ({ kind: of, tag }: RecordedCondition): boolean =>
      of === 'time' || (of === 'delay' && tag === 'made')
    const conditions = entry.meta.conditions.map((one) => (isTime(one) ? { tag: one.tag, kind: 'time', at: 0 } : one))
    return { kind, name, conditions }
  }
  const attempt = entry.meta !== null && 'attempt' in entry.meta ? entry.meta.attempt : null
  return { kind, name, attempt, data: entry.data?.replace(/"stack":"(?:[^"\\]|\\.)*"/g, '') ?? null }
}

export function isOutcome({ kind }: Entry): boolean {
  return kind === 'step-succeeded' || kind === 'step-failed' || kind === 'woken'
}
