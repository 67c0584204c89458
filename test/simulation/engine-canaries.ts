// Planted bugs of the engine itself, over a store that is right. Each is what the engine did once, or would do without one
// of its rules.

import type { Entry } from '../../src/core/model/entry.ts'
import type { Run } from '../../src/core/model/run.ts'
import { JournalWriter } from '../../src/core/runtime/journal-writer.ts'
import { Batcher } from '../../src/engine/batch/batcher.ts'
import { Engine } from '../../src/engine/engine.ts'
import { Drain, type ExitPlan } from '../../src/functions/frame/drain.ts'
import { StepRunner } from '../../src/functions/steps/step-runner.ts'
import { Contention } from '../../src/worker/contention.ts'
import { leaseOf } from '../../src/worker/perform/load.ts'
import { Performer } from '../../src/worker/perform/performer.ts'
import type { Fresh } from '../../src/store.ts'
import { inPlaceOf, type Canary } from './planting.ts'
import { scopes } from './process.ts'

/** Leaves at once: what is under way is asked to stop, and nobody records what comes of it. */
function leaveAtOnce(this: Drain, { leave, stop }: ExitPlan): void {
  if (stop !== null) this.abortBody(stop())
  leave()
}

interface Left {
  readonly slow: readonly unknown[]
}

interface Sender {
  send(units: readonly unknown[], options: unknown): Promise<Left>
  sendAgain(units: readonly unknown[], items: readonly unknown[], options: unknown, error: unknown): Promise<Left>
}

// eslint-disable-next-line typescript/unbound-method -- it is called with the batcher that is meant
const { sendAgain } = Batcher.prototype as unknown as Sender

/** However often a flush takes too long. */
async function sendWhole(this: Sender, ...given: Parameters<Sender['sendAgain']>): Promise<Left> {
  const left = await sendAgain.apply(this, given)
  const [units, , options] = given
  return left.slow.length === 0 ? left : this.send(units, options)
}

/** Begins a step that can be undone as any other. */
function beginUnnamed(this: StepRunner, call: unknown): void {
  const inside = this as unknown as { beginWhenDurable(call: unknown): void }
  inside.beginWhenDurable(call)
}

// eslint-disable-next-line typescript/unbound-method -- it is called with the performer that is meant
const { beginAll } = Performer.prototype
const firstEntries = new WeakMap<Performer, Map<string, Entry>>()

/** Takes the first entry that ever came with a claim of a run for its whole journal, also when it is claimed again. */
function beginByFirstEntry(this: Performer, claimed: readonly Run[], fresh: readonly Fresh[] = []): Promise<void> {
  const firsts = firstEntries.get(this) ?? new Map<string, Entry>()
  firstEntries.set(this, firsts)
  for (const { runId, entry } of fresh) firsts.set(runId, entry)
  const others = claimed.filter((run) => {
    const first = firsts.get(run.id)
    if (first === undefined || run.seq === 1 || this.isParked(run.id) || this.isMoving(run.id)) return true
    this.open({ run, lease: leaseOf(run), entries: [first], messages: [] })
    return false
  })
  return beginAll.call(this, others, fresh)
}

const nothingNamed = inPlaceOf(StepRunner.prototype, 'beginWhenNamed', beginUnnamed)
const nothingAwaited = inPlaceOf(Drain.prototype, 'begin', leaveAtOnce)

export const engineCanaries: readonly Canary[] = [
  {
    name: 'sibling-dropped',
    bug: 'when a step fails its run, what is under way beside it is thrown away',
    budget: 400,
    mutation: { engine: nothingAwaited },
  },
  {
    name: 'begun-unnamed',
    bug: 'a step that can be undone begins before the journal says so',
    budget: 400,
    mutation: { engine: nothingNamed },
  },
  {
    name: 'journal-cut-short',
    bug: 'a run that is claimed again is opened with its first entry in place of its journal',
    budget: 400,
    mutation: { engine: inPlaceOf(Performer.prototype, 'beginAll', beginByFirstEntry) },
  },
  {
    name: 'identity-shifted',
    bug: 'what a step asks of the context after an await is not refused',
    budget: 400,
    mutation: { engine: inPlaceOf(scopes, 'current', () => undefined) },
  },
  {
    name: 'transition-over-bound',
    bug: 'everything that was appended goes in one transition',
    budget: 600,
    mutation: { engine: inPlaceOf(JournalWriter.prototype, 'bound', (seq: number) => seq) },
  },
  {
    name: 'claims-without-pause',
    bug: 'a claim that found nothing but what others hold is repeated at once',
    budget: 400,
    mutation: { engine: inPlaceOf(Contention.prototype, 'met', () => 0) },
  },
  {
    name: 'poisonous-unit-in-a-flush',
    bug: 'a flush that takes the store too long is sent again as it was, for ever',
    budget: 1_000,
    mutation: { engine: inPlaceOf(Batcher.prototype, 'sendAgain', sendWhole) },
  },
  {
    name: 'silence-taken-for-absence',
    bug: 'a flush that the store never answers is sent again as it was, though the store answers others',
    budget: 2_000,
    from: 4414,
    mutation: { engine: inPlaceOf(Engine.prototype, 'isAnswering', () => Promise.resolve(false)) },
  },
]
