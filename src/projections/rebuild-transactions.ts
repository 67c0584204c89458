// The two transactions of a rebuild: the one that makes the place where it writes, and the one that makes it live.

import { bug } from '../core/errors/error.ts'
import type { Engine } from '../engine/engine.ts'
import type { ProjectionAnswer, ProjectionCommand, ProjectionRow } from '../store.ts'
import type { RebuildHooks, WorkedProjection } from './definition.ts'

interface Holder {
  readonly name: string
  readonly part: ProjectionRow['part']
  readonly session: string
  readonly token: number
}

interface RebuildParts {
  readonly engine: Engine
  readonly projection: WorkedProjection
  readonly signal: AbortSignal
}

/** Makes the place, once; false if another process has taken the rebuild. */
export async function beginRebuild({
  row,
  ...parts
}: RebuildParts & { readonly row: ProjectionRow }): Promise<boolean> {
  const { name, part, token, session } = row
  if (session === null) throw bug('A rebuild was begun without a lease')
  return (await inTransaction(parts, 'begin', { name, part, session, token })) === 'done'
}

/** False if the live part has passed more than the rebuild: that goes on then. */
export async function swapRebuild({ holder, ...parts }: RebuildParts & { readonly holder: Holder }): Promise<boolean> {
  return (await inTransaction(parts, 'swap', holder)) === 'done'
}

/** Calls the hook, and executes the command behind it. If that is refused, nothing has happened. */
async function inTransaction(
  { engine, projection, signal }: RebuildParts,
  kind: keyof RebuildHooks,
  holder: Holder,
): Promise<ProjectionAnswer['outcome']> {
  const { transactions } = engine
  const { rebuild } = projection
  if (transactions === null || rebuild === null) throw bug('A projection is built anew that cannot be')
  const refused = new Refused()
  const command: ProjectionCommand = { ...holder, kind }
  const done = await transactions(
    async (tx, { store, check }) => {
      await rebuild[kind](tx)
      await check()
      const answer = await store.commandProjection?.(command)
      refused.outcome = answer?.outcome ?? 'lost'
      if (refused.outcome !== 'done') throw refused
    },
    { signal, isolation: undefined },
  )
  if (done.outcome === 'committed') return 'done'
  if (done.error === refused) return refused.outcome
  throw done.error
}

class Refused extends Error {
  outcome: ProjectionAnswer['outcome'] = 'lost'
}
