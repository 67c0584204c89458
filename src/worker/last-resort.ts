// The end of a run that the engine cannot move on: it fails by itself, or is cancelled if that was asked for, and harms no
// other. Nothing is undone, because whoever would do that is what failed.

import type { Draft } from '../core/entry.ts'
import { isHoldfastError } from '../core/error.ts'
import type { Lease, Run, TerminalStatus } from '../core/run.ts'
import type { Engine } from '../engine/engine.ts'

/** Never rejects: what cannot even be failed is logged, and left to the lease. */
export async function giveUp(engine: Engine, run: Run, lease: Lease, error: unknown): Promise<void> {
  engine.ports.logger.error(`Run ${run.id} cannot be performed and fails.`, { run: run.id, type: run.type, error })
  try {
    await commitEnd(engine, run.id, lease, error)
  } catch (failure) {
    engine.ports.logger.error(`Run ${run.id} could not even be failed.`, { run: run.id, error: failure })
  }
}

async function commitEnd(engine: Engine, runId: string, lease: Lease, error: unknown): Promise<void> {
  for (;;) {
    const [run] = await engine.store.get([runId])
    if (run === undefined) return
    const { status, entry } = endOf(engine, run, error)
    try {
      const { seq } = await engine.commit({
        id: engine.transitionId(),
        runId,
        guard: { seq: run.seq, lease },
        append: [entry],
        status,
        due: null,
        parkIf: null,
        undo: null,
        continues: null,
        takes: [],
      })
      const reason = entry.kind === 'cancelled' ? entry.meta.reason : null
      return engine.endings.ended({ runId, status, seq, data: entry.data, reason })
    } catch (refusal) {
      // What the run had sent before it was aborted landed in between, or somebody cancelled it: look again. It sends no
      // more and is cancelled once, so this ends.
      if (!isHoldfastError(refusal, 'STALE_WRITE') && !isHoldfastError(refusal, 'RUN_CANCELLING')) throw refusal
    }
  }
}

function endOf(engine: Engine, run: Run, error: unknown): { status: TerminalStatus; entry: Draft } {
  if (run.status === 'cancelling') {
    const reason = run.wish?.kind === 'cancel' ? run.wish.reason : null
    return {
      status: 'cancelled',
      entry: { kind: 'cancelled', name: null, meta: { reason, notUndone: [] }, data: null },
    }
  }
  const data = engine.payloads.encodeFailure(error, { runId: run.id, seq: run.seq + 1, name: null })
  return { status: 'failed', entry: { kind: 'failed', name: null, meta: null, data } }
}
