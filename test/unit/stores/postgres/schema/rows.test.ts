// What a claim returns of a run: not what it knows, and null where a value is as usual. The run must be the same.

import { describe, expect, it } from 'vitest'
import {
  commonOf,
  leasedColumns,
  leasedRunOf,
  runColumns,
  runOf,
} from '../../../../../src/stores/postgres/schema/rows.ts'

type Values = Readonly<Record<string, unknown>>

const only = { type: 'order', version: 3 }

const plain: Values = {
  shard: 2,
  id: '01890000-0000-7000-8000-000000000000',
  type: 'order',
  version: 3,
  status: 'running',
  readiness: 'leased',
  rank: -4,
  due: null,
  seq: 5,
  base: 1,
  inbox: 0,
  wake_names: null,
  watched: false,
  control_request: null,
  undo: 'none',
  crashes: 1,
  token: 7,
  session: 'holder',
  deadline: 900,
  timeout_at: null,
  expires_at: null,
  key: null,
  key_scope: 'workflow',
  idempotency_key: null,
  parent_id: null,
  tags: null,
  metadata: null,
  key_id: null,
  feed: false,
  created_at: 100,
  updated_at: 200,
  ended_at: null,
  deleted_at: null,
  delete_reason: null,
}
const unusual: Values = {
  ...plain,
  status: 'cancelling',
  base: 2,
  inbox: 8,
  watched: true,
  undo: 'due',
  key_scope: 'queue',
  feed: true,
}

/** What these columns have of a row: `run.x`, or `nullif(run.x, value) as x`. */
function returned(columns: string, row: Values): Values {
  const found: Record<string, unknown> = {}
  for (const [, bare, name = bare ?? '', value] of columns.matchAll(
    /(?<!nullif\()run\.(\w+)|nullif\(run\.(\w+), '?(\w+)'?(?:::text)?\)/g,
  )) {
    found[name] = value !== undefined && String(row[name]) === value ? null : row[name]
  }
  return found
}

describe('the row of a leased run', () => {
  for (const [kind, row] of Object.entries({ plain, unusual })) {
    it(`is the whole run with what its claim knows: ${kind}`, () => {
      const ofOne = returned(leasedColumns('run', true), row)
      expect(leasedRunOf(ofOne, commonOf({ shard: 2, session: 'holder', only }))).toEqual(runOf(row))
      const ofSeveral = returned(leasedColumns('run', false), row)
      expect(leasedRunOf(ofSeveral, commonOf({ shard: 2, session: 'holder', only: undefined }))).toEqual(runOf(row))
    })
  }

  it('has a value for nothing that is the same in all of them', () => {
    const some = returned(leasedColumns('run', true), plain)
    const values = Object.keys(some).filter((name) => some[name] !== null)
    expect(values.sort()).toEqual(['crashes', 'created_at', 'deadline', 'id', 'rank', 'seq', 'token', 'updated_at'])
    expect(Object.keys(returned(runColumns('run'), plain)).sort()).toEqual(Object.keys(plain).sort())
  })
})
