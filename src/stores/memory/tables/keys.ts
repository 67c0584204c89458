// Whose keys are taken: a business key by a live run, an idempotency key by any run that was not removed. The idempotency
// key belongs to the type that the run was started as, also when it goes on as another.

import { uniqueText } from '../../../core/model/key.ts'
import type { Keyed } from '../../../core/rules/commit.ts'
import type { NewRun } from '../../../store.ts'
import type { Row } from './row.ts'

export class Keys {
  private readonly unique = new Map<string, Row>()
  private readonly idempotent = new Map<string, Row>()

  /** The run that was started as this type with this idempotency key. */
  sameStart({ type, idempotencyKey }: Pick<NewRun, 'type' | 'idempotencyKey'>): Row | undefined {
    return idempotencyKey === null ? undefined : this.idempotent.get(pair(type, idempotencyKey))
  }

  /** The live run, other than this one, that has the business key which this one has or would have. */
  holder(run: Keyed): Row | undefined {
    const text = uniqueText(run)
    const row = text === null ? undefined : this.unique.get(text)
    return row === undefined || row.id === run.id ? undefined : row
  }

  /** Frees the keys of the row, before it changes. */
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

  /** Takes the keys that belong to the row as it is now. */
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
