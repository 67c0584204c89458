// A snapshot: the fold of a journal as a value, so that a long journal need not be read from its beginning. It is never
// trusted further than its fingerprint: code that folds differently passes it over and reads the journal.
//
// The fingerprint is of the texts of `evolve`, `initial` and the upcasters, the schema of the events, and the numbers that the
// author raises.
// Functions that `evolve` calls are not seen: `stateVersion` is for them.
//
// Times that count from the commit of the snapshot itself stay relative in it.

import type { KnownCommand } from '../../core/definition/decider-model.ts'
import type { InputMeta } from '../../core/model/entry.ts'
import type { Digest } from '../../core/runtime/ports.ts'
import { isObject, isWhole } from '../../core/text/json-form.ts'
import type { Past } from '../past/past.ts'
import type { DeciderRules } from '../rules.ts'
import type { Fold } from './fold.ts'
import type { Moment } from './timers.ts'

/** Raised when the form of a snapshot changes. */
const formVersion = 2

export interface Snapshot {
  readonly state: unknown
  readonly timers: readonly SnapshotTimer[]
  readonly effects: readonly SnapshotEffect[]
  /** Those that have given up. */
  readonly dead: readonly SnapshotEffect[]
  readonly commands: readonly (readonly [string, number, InputMeta['outcome']])[]
  readonly contents: readonly (readonly [string, number, InputMeta['outcome'], number | null])[]
}

/** Name, number, time of the commit that asked for it (null for that of the snapshot), and the effect. */
type SnapshotEffect = readonly [string, number, number | null, unknown]

interface SnapshotTimer {
  readonly name: string
  readonly at: number | null
  readonly afterMs: number | null
  /** The commit from which it counts; null for that of the snapshot. */
  readonly since: number | null
  readonly failures: number
  readonly input: unknown
}

/** Of each decider: every instance asks for it. */
const fingerprints = new WeakMap<DeciderRules, string>()

/** What two processes share exactly if they fold events to the same states, as far as that can be seen. */
export function fingerprint(rules: DeciderRules, digest: Pick<Digest, 'sha256'>): string {
  let known = fingerprints.get(rules)
  if (known === undefined) fingerprints.set(rules, (known = fingerprintOf(rules, digest)))
  return known
}

function fingerprintOf(rules: DeciderRules, digest: Pick<Digest, 'sha256'>): string {
  const { type, version, stateVersion, initial, evolve, event, past, onErased } = rules
  const parts = [formVersion, type, version, stateVersion, String(initial), String(evolve), schemaText(event)]
  return digest.sha256(JSON.stringify([...parts, ...pastTexts(past), ...(onErased === null ? [] : [String(onErased)])]))
}

/** Nothing for a decider without a past, so that the first change of an event does not cost others their snapshots. */
function pastTexts({ chains, renamed, retired }: Past): readonly unknown[] {
  const events = [...chains].map(([event, { steps }]) => [event, steps.map(String)])
  return events.length + renamed.size + retired.size === 0 ? [] : [events, [...renamed], [...retired]]
}

function schemaText(schema: DeciderRules['event']): string {
  if (schema === null) return ''
  try {
    return JSON.stringify(schema)
  } catch {
    return schema['~standard'].vendor
  }
}

/** The value of a fold. Throws if the input of a timer cannot be read. */
export function snapshotOf({ state, timers, effects, dead, commands }: Fold): Snapshot {
  return {
    state,
    timers: [...timers.values()].map(({ name, due, since, failures, input }) => ({
      name,
      at: due.at,
      afterMs: due.afterMs,
      since: since.at,
      failures,
      input: input(),
    })),
    effects: savedEffects(effects),
    dead: savedEffects(dead),
    commands: [...commands.byId].map(([id, { seq, outcome }]) => [id, seq, outcome] as const),
    contents: [...commands.byContent].map(
      ([content, { command, since }]) => [content, command.seq, command.outcome, since.at] as const,
    ),
  }
}

function savedEffects(effects: Fold['effects']): readonly SnapshotEffect[] {
  return [...effects.values()].map(({ name, seq, since, read }) => [name, seq, since.at, read()])
}

/** Whether a value has the form of a snapshot. */
export function isSnapshot(value: unknown): value is Snapshot {
  if (!isObject(value)) return false
  const { state, timers, effects, dead, commands, contents } = value
  return (
    state !== undefined &&
    Array.isArray(timers) &&
    timers.every((timer) => isObject(timer) && typeof timer['name'] === 'string' && isWhole(timer['failures'])) &&
    [effects, dead, commands, contents].every((list) => Array.isArray(list) && list.every((one) => Array.isArray(one)))
  )
}

/** Puts the value of a snapshot into a fold of which nothing is known. `seq` and `at` are those of its entry. */
export function restore(
  fold: Fold,
  snapshot: Snapshot,
  { seq, at }: { readonly seq: number; readonly at: number },
): void {
  const moment = (since: number | null): Moment => ({ at: since ?? at })
  fold.seq = seq
  fold.snapshotSeq = seq
  fold.state = snapshot.state
  fold.first = { read: () => undefined, isDecided: true, isAccepted: true }
  for (const { name, at: dueAt, afterMs, since, failures, input } of snapshot.timers) {
    fold.timers.set({ name, due: { at: dueAt, afterMs }, since: moment(since), failures, input: () => input })
  }
  for (const which of ['effects', 'dead'] as const) {
    for (const [name, number, since, effect] of snapshot[which]) {
      const type = name.slice(0, name.lastIndexOf('#'))
      fold[which].set(name, { name, type, seq: number, since: moment(since), read: () => effect })
    }
  }
  for (const [id, number, outcome] of snapshot.commands) fold.commands.byId.set(id, known(number, outcome))
  for (const [content, number, outcome, since] of snapshot.contents) {
    fold.commands.byContent.set(content, { command: known(number, outcome), since: moment(since) })
  }
}

function known(seq: number, outcome: InputMeta['outcome']): KnownCommand {
  return { seq, outcome }
}
