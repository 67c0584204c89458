// Races against another transaction, which has the row of a run that others concern.

import assert from 'node:assert/strict'
import { ending } from '../../src/testing/contract/drafts.ts'
import { endOf, outbound } from '../../src/testing/contract/exchanges.ts'
import type { Race } from './race-world.ts'

/** A run ends while strangers have one of those who wait for it, and one of its children. */
const endAgainstStranger: Race = async (world) => {
  const { store, hold, park, clock, run, mailbox } = world
  const { db, tables } = store.insides
  const ends = await hold()
  const start = world.child(ends.runId, {}, { awaited: false })
  await world.commit(ends, { outbound: outbound({ starts: [start] }) })
  const [first, second] = [await hold(), await hold()]
  for (const held of [first, second]) await park(held, { outbound: outbound({ watches: [endOf(ends.runId)] }) })
  const letGo = await db.holdRow(tables.runs, first.runId)
  const letChildGo = await db.holdRow(tables.runs, start.run.id)
  const other = await hold()
  const [, committed] = await world.atOnce(
    () => world.commit(ends, { append: [ending('succeeded')], status: 'succeeded' }),
    () => world.commit(other, {}),
    () => world.chores(),
  )
  assert.equal(committed.outcome, 'committed')
  assert.equal((await run(ends.runId)).status, 'succeeded', 'nobody waits for the strangers')
  assert.deepEqual([(await run(first.runId)).inbox, (await run(second.runId)).inbox], [0, 1])
  letChildGo()
  await clock.advance(1_000)
  await world.atOnce(
    () => world.chores(),
    () => world.chores(),
  )
  assert.equal(
    (await run(start.run.id)).status,
    'cancelling',
    'the child is found, and the other one is not waited for',
  )
  assert.equal((await run(first.runId)).inbox, 0)
  letGo()
  await clock.advance(1_000)
  await world.atOnce(
    () => world.chores(),
    () => world.chores(),
  )
  for (const { runId } of [first, second]) assert.equal((await mailbox(runId)).length, 1, 'each is notified once')
  assert.deepEqual(await store.doChores(), { worked: false, nextInMs: null })
}

const news = { name: 'news', delivery: 'all', retainMs: 0 } as const
const jobs = { name: 'jobs', delivery: 'one', retainMs: 0 } as const

/** Something is sent to a topic while a stranger has one of its subscribers. */
const broadcastAgainstStranger: Race = async (world) => {
  const { store, hold, park, clock, mailbox, run } = world
  const { db, tables } = store.insides
  const [first, second] = [await hold(), await hold()]
  for (const held of [first, second])
    await park(held, { outbound: outbound({ watches: [{ kind: 'topic', ...news }] }) })
  const send = (id: string) => () => world.deliver(world.broadcast({ id, topic: news, data: id }))
  const letGo = await db.holdRow(tables.runs, first.runId)
  const answers = await world.atOnce(send('1'), send('2'))
  const counts = answers.map((answer) => (answer as { readonly runs?: number }).runs)
  assert.deepEqual(counts, [1, 1], 'nobody waits for the stranger')
  await world.chores()
  assert.deepEqual([(await run(first.runId)).inbox, (await run(second.runId)).inbox], [0, 2])
  await clock.advance(1_500)
  letGo()
  await world.atOnce(
    send('3'),
    () => world.chores(),
    () => world.chores(),
  )
  await clock.advance(5_500)
  await world.atOnce(
    () => world.chores(),
    () => world.chores(),
  )
  const [one, other] = [await mailbox(first.runId), await mailbox(second.runId)].map((all) =>
    all.map(({ data }) => data),
  )
  assert.deepEqual(one, other, 'both get all of it, once and in one order')
  assert.deepEqual([one?.length, await store.doChores()], [3, { worked: false, nextInMs: null }])
}

/** Something is sent to a queue while a stranger has who waits longest on it. */
const queueAgainstStranger: Race = async (world) => {
  const { store, hold, park, clock, mailbox, run } = world
  const { db, tables } = store.insides
  const [first, second, third] = [await hold(), await hold(), await hold()]
  const watching = { outbound: outbound({ watches: [{ kind: 'topic', ...jobs } as const] }) }
  await park(first, watching)
  const letGo = await db.holdRow(tables.runs, first.runId)
  const send = (id: string) => () => world.deliver(world.broadcast({ id, topic: jobs, data: id }))
  await send('1')()
  await world.commit(second, watching)
  assert.equal((await mailbox(second.runId))[0]?.data, '1', 'who can be had gets what is there')
  await park(third, watching)
  await world.atOnce(send('2'), send('3'), () => world.chores())
  assert.deepEqual([(await run(first.runId)).inbox, (await run(third.runId)).inbox], [0, 1])
  letGo()
  await clock.advance(6_500)
  await world.atOnce(
    () => world.chores(),
    () => world.chores(),
  )
  const got = [...(await mailbox(first.runId)), ...(await mailbox(third.runId))].map(({ data }) => data)
  assert.deepEqual(got.toSorted(), ['2', '3'], 'each goes to one')
  assert.deepEqual(await store.doChores(), { worked: false, nextInMs: null })
}

export const strangerRaces: Readonly<Record<string, Race>> = {
  'an end against a stranger who has a watcher and a child': endAgainstStranger,
  'broadcasts against a stranger who has a subscriber': broadcastAgainstStranger,
  'a queue against a stranger who has who waits longest': queueAgainstStranger,
}
