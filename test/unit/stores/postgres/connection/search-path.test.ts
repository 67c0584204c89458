// Which schemas our own connections search, as our own statements see it: the expression for the time is a function that
// records it.

import { expect, it, onTestFinished } from 'vitest'
import { createHoldfast, workflow } from 'holdfast'
import { openPostgresStore } from '../../../../../src/stores/postgres/index.ts'
import { keepLines } from '../../../../holdfast/open.ts'
import { sharedPostgres } from '../../../../support/postgres-shared.ts'
import { emptyPlace } from '../database.ts'

it('statements on connections of our own find nothing that others created: they search pg_catalog and pg_temp alone', async () => {
  const { schema, rows } = await emptyPlace()
  const watch = `${schema}_watch`
  await rows(`
    create schema ${watch};
    create table ${watch}.seen (path text, pid int);
    create function ${watch}.now_ms() returns bigint language plpgsql as $$ begin
      insert into ${watch}.seen values (pg_catalog.current_setting('search_path'), pg_catalog.pg_backend_pid());
      return pg_catalog.floor(extract(epoch from pg_catalog.clock_timestamp()) * 1000)::bigint;
    end $$`)
  const store = await openPostgresStore({ url: await sharedPostgres(), schema, now: `${watch}.now_ms()` })
  const order = workflow('order', async (ctx, id: string) => {
    await ctx.step('book', () => id)
    return ctx.receive<string>('paid')
  })
  const holdfast = await createHoldfast({ store, workflows: [order], logger: keepLines() })
  onTestFinished(async () => {
    await holdfast.close()
    await store.close()
  })
  await holdfast.work()
  const run = await holdfast.start(order, 'a')
  await holdfast.signal(run, 'paid', 'cash')
  expect(await run.result()).toBe('cash')
  expect(await rows(`select distinct replace(path, ' ', '') as path from ${watch}.seen`)).toEqual([
    { path: 'pg_catalog,pg_temp' },
  ])
  // The connection that is kept for heartbeats is another.
  expect((await rows(`select distinct pid from ${watch}.seen`)).length).toBeGreaterThan(1)
})
