// Races of those who claim: with each other, and with a stranger who holds a row.

import assert from 'node:assert/strict'
import { times, type Race } from './race-world.ts'

const manyClaimers: Race = async (world) => {
  const { store, newRun, claim, run } = world
  const made = Array.from({ length: 12 }, (_, index) => newRun({ priority: index % 2 }))
  await store.start(made)
  const answers = await world.atOnce(...times(20, (index) => claim({ session: `s${index}`, limit: 2 })))
  const taken = answers.flatMap(({ runs }) => runs)
  assert.equal(new Set(taken.map(({ id }) => id)).size, taken.length, 'no run is handed out twice')
  for (const { id, session, token } of taken) {
    const row = await run(id)
    assert.deepEqual([row.session, row.token, token], [session, 1, 1], 'the session that was answered holds it')
  }
  const rest = await claim({ session: 'last', limit: 100 })
  assert.equal(taken.length + rest.runs.length, made.length, 'and none is lost')
}

/** Workers with one free slot meet at the same runs: those who are late find the next ones. */
const loneClaimers: Race = async (world) => {
  const { store, newRun, claim } = world
  await store.start(Array.from({ length: 20 }, () => newRun()))
  const answers = await world.atOnce(...times(20, (index) => claim({ session: `s${index}`, limit: 1 })))
  const taken = answers.flatMap(({ runs }) => runs.map(({ id }) => id))
  assert.equal(new Set(taken).size, taken.length, 'no run is handed out twice')
  assert.equal(taken.length, 20, 'nobody leaves with nothing')
}

/** Another open transaction has the row of the run that is first. All others go on with the others. */
const claimsBesideStranger: Race = async (world) => {
  const { store, newRun, claim } = world
  const [first, ...others] = Array.from({ length: 4 }, () => newRun())
  assert.ok(first)
  await store.start([first, ...others])
  const { db, tables } = store.insides
  const stranger = db.begin('stranger')
  await stranger.lock(tables.runs, { at: ['id', [first.id]] })
  const answers = await world.atOnce(...times(3, (index) => claim({ session: `s${index}`, limit: 1 })))
  assert.deepEqual(
    answers.flatMap(({ runs }) => runs.map(({ id }) => id)).toSorted(),
    others.map(({ id }) => id).toSorted(),
    'each gets the next that nobody has',
  )
  const { runs, more } = await claim({ session: 's3', limit: 1 })
  assert.deepEqual([runs, more], [[], true], 'the locked one is not given out, and not forgotten')
  stranger.rollBack()
  const { runs: freed } = await claim({ session: 's3', limit: 1 })
  assert.deepEqual(
    freed.map(({ id }) => id),
    [first.id],
  )
}

export const claimRaces: Readonly<Record<string, Race>> = {
  '20 claimers': manyClaimers,
  '20 claimers of one run each': loneClaimers,
  'claims of one run beside a stranger who holds the first': claimsBesideStranger,
}
