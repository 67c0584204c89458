// Races for the key of a run: as long as the run lives, nobody else gets it, whatever is written to the run meanwhile; once it has
// ended, one does.

import assert from 'node:assert/strict'
import type { ControlResult, Started } from '../../src/store.ts'
import { holdersOf, startOne, times, type Race } from './race-world.ts'

const cancelNow = { kind: 'cancel', mode: 'now', reason: null } as const
const pause = { kind: 'pause', reason: 'operator', note: null } as const
const resume = { kind: 'resume', note: null, amend: [], seq: null } as const

const startAgainstEnd: Race = async (world) => {
  const { store, newRun, start, control } = world
  const old = await start({ key: 'k' })
  const answers = await world.atOnce<(Started | ControlResult)[]>(
    () => control(old.id, cancelNow),
    ...times(6, () => startOne(world, newRun({ key: 'k' }))),
  )
  const started = answers.filter((answer) => 'created' in answer)
  for (const { run } of started) assert.ok((await store.get([run.id]))[0], 'every answer is a run that exists')
  assert.ok((await holdersOf(world, 'k')).length <= 1, 'one live run has the key')
  assert.ok(started.filter(({ created }) => created).length <= 1)
}

const startsAgainstPause: Race = async (world) => {
  const { start, control, newRun } = world
  const { id } = await start({ key: 'k' })
  const answers = await world.atOnce<(ControlResult | Started)[]>(
    () => control(id, pause),
    ...times(3, () => startOne(world, newRun({ key: 'k' }))),
    () => control(id, resume),
  )
  for (const answer of answers) if ('created' in answer) assert.deepEqual([answer.created, answer.run.id], [false, id])
  assert.deepEqual(
    (await holdersOf(world, 'k')).map((run) => run.id),
    [id],
    'one live run has it',
  )
}

export const keyRaces: Readonly<Record<string, Race>> = {
  'start against the end of the run that has the key': startAgainstEnd,
  'starts with the key of a run that is paused': startsAgainstPause,
}
