// Which rights the statements of the store need, read from their texts: also of those that a test meets only when a stranger has
// locked something. So no statement is written that the roles were not given the right for.

import { expect, it, onTestFinished, vi } from 'vitest'
import type * as Dialect from '../../../../src/stores/postgres/dialect.ts'
import { openPostgresStore } from '../../../../src/stores/postgres/index.ts'
import { needsOf } from '../../../../src/stores/postgres/schema/missing-right.ts'
import type { RoleKind } from '../../../../src/stores/postgres/schema/roles.ts'
import { installPostgres } from '../../../../src/stores/postgres/schema/install.ts'
import { createRoles } from '../../../support/postgres-roles.ts'
import { emptyPlace } from './database.ts'

const texts = vi.hoisted(() => new Set<string>())

vi.mock('../../../../src/stores/postgres/dialect.ts', async (original) => {
  const real = await original<typeof Dialect>()
  const statement: typeof real.statement = (plan, text) => {
    texts.add(text)
    return real.statement(plan, text)
  }
  return { ...real, statement }
})

/** What nobody but the migrator may: to encrypt payloads anew. */
const rewriting = ['journal update']

/** What only who performs runs needs. */
const performing = [
  'feed select',
  'feed update',
  'projections delete',
  'projections insert',
  'projections update',
  'sequencer select',
  'sequencer update',
  'sessions delete',
  'sessions insert',
  'sessions update',
  'topics delete',
]

it.each<[RoleKind, readonly string[]]>([
  ['worker', rewriting],
  ['starter', [...performing, ...rewriting]],
])('a %s has the right for every statement of the store, but for those that are not for it', async (kind, others) => {
  const { pool, schema, rows } = await emptyPlace()
  const url = pool.options.connectionString as string
  await installPostgres({ url, schema, shards: 4 })
  const roles = await createRoles(url, schema)
  onTestFinished(() => roles.drop())
  await roles.grant(schema)
  for (const distributed of [false, true]) {
    const store = await openPostgresStore({ url, schema, listen: false, distributed })
    await store.close()
  }
  const needs = [...texts].flatMap((text) => needsOf(`"${schema}"`, text))
  expect(needs.length).toBeGreaterThan(100)
  const lacking = new Set<string>()
  for (const need of new Map(needs.map((one) => [`${one.name} ${one.right}`, one])).values()) {
    const { kind: what, name, right } = need
    // A right on some columns is meant for who reads those.
    const check = what === 'table' && right === 'select' ? 'has_any_column_privilege' : `has_${what}_privilege`
    const [row] = await rows(`select ${check}('${schema}_${kind}', '${schema}.${name}', '${right}') as may`)
    if (row?.['may'] !== true) lacking.add(`${name} ${right}`)
  }
  expect([...lacking].toSorted()).toEqual(others.toSorted())
})
