// Whose keys are taken: a business key by a live run, an idempotency key by any run that was not removed. The idempotency
// key belongs to the type that the run was started as, also when it goes on as another.

import { uniqueText } from '../../../core/model/key.ts'
import type { Keyed } from '../../../core/rules/commit.ts'
import type { NewRun } from '../../../store.ts'
import type { Row } from './row.ts'

export class Keys {
  private readonly unique = new Map<string, Row>()
  private readonly idempotent = new Map<string, Row>()

  /** Who is in the way of a new run, and by what. */
  obstacle(
    run: Keyed & Pick<NewRun, 'idempotencyKey'>,
  ): { readonly taken: 'idempotency-key' | 'key'; readonly row: Row } | null {
    const same = run.idempotencyKey === null ? undefined : this.idempotent.get(pair(run.type, run.idempotencyKey))
    if (same !== undefined) return { taken: 'idempotency-key', row: same }
    const row = this.holder(run)
    return row === undefined ? null : { taken: 'key', row }
  }

  /** The live run, other than this one, that has the business key which this one has or would have. */
  holder(run: Keyed): Row | undefined {
    const text = uniqueText(run)
    const row = text === null ? undefined : this.unique.get(text)
    return row === undefined || row.id === run.id ? undefined : row
  }

  /** Gives back what the row has taken, before it changes. */
  free(row: Row): void {
    if (row.key !== null) {
      const text = uniqueText(row)
      if (text !== null && this.unique.get(text) === row) this.unique.delete(text)
    }
    if (row.idempotencyKey !== null) {
      const text = pair(row.startedAs, row.idempotencyKey)
      if (this.idempotent.get(text) === row) this.idempotent.delete(text)
    }
  }

  /** Takes what the row, as it is now, has a claim to. */
  take(row: Row): void {
    if (row.deletedAt !== null) return
    if (row.key !== null && row.endedAt === null) {
      const text = uniqueText(row)
      if (text !== null) this.unique.set(text, row)
    }
    if (row.idempotencyKey !== null) this.idempotent.set(pair(row.startedAs, row.idempotencyKey), row)
  }
}

/** A type has no space. */
function pair(type: string, key: string): string {
  return `${type} ${key}`
}
