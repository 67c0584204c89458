// Races for a projection: it has one holder at a time, and no position is written that is not the holder's.

import assert from 'node:assert/strict'
import type { ProjectionAnswer, ProjectionCommand, StoreProjections } from '../../src/store.ts'
import { times, type Race } from './race-world.ts'

const live = { name: 'totals', part: 'live' } as const

/** Four processes claim a projection that is not there yet; the one that has it moves it on. */
const claimsOfOne: Race = async (world) => {
  const store = world.store as unknown as StoreProjections
  const send = (command: ProjectionCommand): Promise<ProjectionAnswer> => store.commandProjection(command)
  let session = 0
  const answers = await world.atOnce(
    ...times(4, async () => {
      const own = `session-${(session += 1)}`
      const claim = { ...live, kind: 'claim', session: own, leaseMs: 30_000, definition: 'v1', startAt: 0 } as const
      const { outcome, row } = await send(claim)
      if (outcome !== 'done' || row === null) return null
      const holder = { ...live, session: own, token: row.token }
      const advanced = await send({ ...holder, kind: 'advance', from: 0, to: 5 })
      return advanced.outcome
    }),
  )
  assert.deepEqual(
    answers.filter((outcome) => outcome !== null),
    ['done'],
    'one of them holds it',
  )
  assert.deepEqual(
    (await store.projections()).map(({ position, token }) => [position, token]),
    [[5, 1]],
  )
}

/** A holder moves on while an operator pauses: what was paused stays where it was. */
const pauseAgainstHolder: Race = async (world) => {
  const store = world.store as unknown as StoreProjections
  const send = (command: ProjectionCommand): Promise<ProjectionAnswer> => store.commandProjection(command)
  const holder = { ...live, session: 'one', token: 1 }
  await send({ ...live, kind: 'claim', session: 'one', leaseMs: 30_000, definition: 'v1', startAt: 0 })
  const [paused, ...moved] = await world.atOnce(
    () => send({ ...live, kind: 'pause' }),
    () => send({ ...holder, kind: 'advance', from: 0, to: 5 }),
    () => send({ ...holder, kind: 'advance', from: 0, to: 6 }),
  )
  assert.ok(moved.filter(({ outcome }) => outcome === 'done').length <= 1, 'a position is left once')
  const [row] = await store.projections()
  assert.deepEqual([row?.status, row?.session], ['paused', null], 'the pause is not overwritten')
  assert.ok((row?.position ?? 0) >= (paused?.row?.position ?? 0), 'nothing is forgotten that was passed')
  assert.equal(row?.position, paused?.row?.position, 'nothing moves on after the pause')
}

/** A rebuild is swapped while the live part moves on: never to a place that the live part has passed. */
const swapAgainstHolder: Race = async (world) => {
  const store = world.store as unknown as StoreProjections
  const send = (command: ProjectionCommand): Promise<ProjectionAnswer> => store.commandProjection(command)
  const claim = { kind: 'claim', leaseMs: 30_000, definition: 'v1', startAt: 0 } as const
  await send({ ...live, ...claim, session: 'one' })
  await send({ ...live, kind: 'rebuild', definition: 'v1' })
  const rebuild = { name: live.name, part: 'rebuild', session: 'two' } as const
  const token = (await send({ ...rebuild, ...claim })).row?.token ?? 0
  await send({ ...rebuild, token, kind: 'begin' })
  await send({ ...rebuild, token, kind: 'advance', from: 0, to: 5 })
  const holder = { ...live, session: 'one', token: 1 }
  const [swapped, first, second] = await world.atOnce(
    () => send({ ...rebuild, token, kind: 'swap' }),
    () => send({ ...holder, kind: 'advance', from: 0, to: 4 }),
    () => send({ ...holder, kind: 'advance', from: 4, to: 9 }),
  )
  const passed = second?.outcome === 'done' ? 9 : first?.outcome === 'done' ? 4 : 0
  const [row] = await store.projections()
  const isSwapped = swapped?.outcome === 'done'
  assert.ok((row?.position ?? 0) >= passed || isSwapped, 'nothing is forgotten that was passed')
  assert.equal(isSwapped ? row?.position : passed, isSwapped ? 5 : row?.position)
  assert.ok(!(isSwapped && passed === 9), 'a rebuild that is behind is not swapped')
}

export const projectionRaces: Readonly<Record<string, Race>> = {
  'claims of a projection': claimsOfOne,
  'a pause of a projection against its holder': pauseAgainstHolder,
  'a swap of a rebuild against the holder of the live part': swapAgainstHolder,
}
