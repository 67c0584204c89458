// The end of a run that the engine cannot move on: it fails, or is cancelled if that was requested, and affects no other run.
// Nothing is undone, because the frame that would do that is what failed; but its last entry names the steps of its journal
// that are not undone. Work that was done and never recorded stays unknown.

import { runLine } from '../../core/rows/engine-notes.ts'
import type { Draft } from '../../core/model/entry.ts'
import { isHoldfastError } from '../../core/errors/error.ts'
import type { Lease, Run, TerminalStatus } from '../../core/model/run.ts'
import type { Engine } from '../../engine/engine.ts'
import { stepsNotUndone } from './not-undone.ts'

/** Never rejects: a run that cannot even be failed is logged, and left to the lease. */
export async function endWithoutFrame(engine: Engine, run: Run, lease: Lease, error: unknown): Promise<void> {
  engine.ports.logger.error(runLine(run, 'cannot be performed and fails.'), { run: run.id, type: run.type, error })
  try {
    await commitEnd(engine, run.id, lease, error)
  } catch (failure) {
    engine.ports.logger.error(
      runLine(run, 'could not be recorded as failed; it is given back after a few heartbeats and tried again.'),
      {
        run: run.id,
        type: run.type,
        error: failure,
      },
    )
  }
}

async function commitEnd(engine: Engine, runId: string, lease: Lease, error: unknown): Promise<void> {
  for (;;) {
    const [run] = await engine.store.get([runId])
    if (run === undefined) return
    const { status, entry } = endOf(engine, run, error, await leftBehind(engine, run))
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
        feed: run.feed,
      })
      const reason = entry.kind === 'cancelled' ? entry.meta.reason : null
      return engine.runEnds.ended({ runId, status, seq, data: entry.data, reason })
    } catch (refusal) {
      // A commit that the run had sent before it was aborted landed in between, or a client cancelled it: look again. The run
      // sends no more and is cancelled once, so this ends.
      if (!isHoldfastError(refusal, 'STALE_WRITE') && !isHoldfastError(refusal, 'RUN_CANCELLING')) throw refusal
    }
  }
}

/** A journal that can never be read must not keep its run from ending. */
async function leftBehind(engine: Engine, run: Run): Promise<readonly string[]> {
  try {
    return await stepsNotUndone(engine.store, run)
  } catch (error) {
    if (isHoldfastError(error, 'STORE_UNAVAILABLE')) throw error
    const message = runLine(run, 'ends without undo work, and the steps that it does not undo could not be read.')
    engine.ports.logger.error(message, { run: run.id, type: run.type, error })
    return []
  }
}

function endOf(
  engine: Engine,
  run: Run,
  error: unknown,
  notUndone: readonly string[],
): { status: TerminalStatus; entry: Draft } {
  if (run.status === 'cancelling') {
    const reason = run.controlRequest?.kind === 'cancel' ? run.controlRequest.reason : null
    return {
      status: 'cancelled',
      entry: { kind: 'cancelled', name: null, meta: { reason, notUndone }, data: null },
    }
  }
  const { payloads } = engine
  const data = payloads.encodeFailure(error, payloads.place(run.id, run.seq + 1, 'failed', null))
  const meta = notUndone.length === 0 ? null : { cause: null, notUndone }
  return { status: 'failed', entry: { kind: 'failed', name: null, meta, data } }
}
