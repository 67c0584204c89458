// Folds the journal of an instance with the code of its decider, and says whether the two agree. What was decided stays decided,
// so only `evolve` can disagree: it does not know an event, or makes another last state of them.

import { isDecider } from '../../core/definition/decider-model.ts'
import type { Definition } from '../../core/definition/definition.ts'
import type { Entry } from '../../core/model/entry.ts'
import type { Run } from '../../core/model/run.ts'
import { isSameValue } from '../../core/payload/same-value.ts'
import { fetchedEntries } from '../../core/deciding/read-entries.ts'
import type { Lent } from './dry-replay.ts'
import type { ReplayResult } from './replay-result.ts'

const same: ReplayResult = { outcome: 'same' }

/** Nothing of an effect is replayed: it is performed, and its outcome recorded. */
export async function replayInstance(
  definition: Definition,
  run: Run,
  entries: readonly Entry[],
  lent: Lent,
): Promise<ReplayResult> {
  if (!isDecider(definition)) return same
  const { payloads } = lent
  try {
    const journal = await fetchedEntries(lent, entries, () => true)
    const id = run.idempotencyKey ?? run.id
    const instance = definition.model.open({ runId: run.id, id, payloads, ports: lent.ports })
    // A snapshot of other code says nothing of this one: the whole journal would.
    if (instance.apply(journal) === 'stale') return same
    const last = journal.at(-1)
    if (last?.kind !== 'succeeded') return same
    const { seq, kind, name, data } = last
    const output = payloads.decode(data, payloads.place(run.id, seq, kind, name))
    const { state } = instance
    if (isSameValue(output, state)) return same
    const now = { status: 'succeeded', output: state } as const
    return { outcome: 'ends-otherwise', recorded: { status: 'succeeded', output }, now }
  } catch (error) {
    return { outcome: 'throws', error }
  }
}
