// A process that was taken for dead while it performed a suspect in isolation, and lives, says so. Nobody else is believed to live.

import { describe, expect, it } from 'vitest'
import type { Run } from '../../../../src/core/model/run.ts'
import type { Engine } from '../../../../src/engine/engine.ts'
import type { Store } from '../../../../src/store.ts'
import { MemoryStore } from '../../../../src/stores/memory/store.ts'
import { createContractBench } from '../../../../src/testing/contract/index.ts'
import * as ask from '../../../../src/testing/contract/requests.ts'
import { createRecordingLogger } from '../../../../src/testing/logger.ts'
import { createVirtualClock } from '../../../../src/testing/virtual-clock.ts'
import { Witness } from '../../../../src/worker/perform/suspect-witness.ts'

const leaseMs = 3_000
/** After so long the witness has looked. */
const lookMs = 1_000
const maxCrashes = 5

/** A run that is a suspect, and a process that may perform it apart and lose it. */
async function setUp(workflowLeaseMs: number | null = null) {
  const clock = createVirtualClock()
  const store = new MemoryStore({ clock })
  const bench = createContractBench({ store, clock })
  const { beat, claim, rescue, selector, start, run, journal } = bench
  const state = { cutOff: false, answersLost: 0, words: 0 }
  const line: Pick<Store, 'get' | 'load' | 'control'> = {
    get: async (ids) => {
      if (state.cutOff) throw new Error('Away')
      return store.get(ids)
    },
    load: (requests) => store.load(requests),
    control: async (requests) => {
      state.words += 1
      const answers = await store.control(requests)
      state.answersLost -= 1
      if (state.answersLost >= 0) throw new Error('No answer')
      return answers
    },
  }
  let ids = 0
  const engine = {
    store: line,
    session: 'me',
    ports: { clock, logger: createRecordingLogger() },
    registry: { find: () => ({ leaseMs: workflowLeaseMs }) },
    transitionId: () => `word-${(ids += 1)}`,
  }
  const witness = new Witness(engine as unknown as Engine, { leaseMs })
  const { id } = await start()
  for (const session of ['first', 'second']) {
    await beat(session)
    await claim({ session })
    await beat(session, { end: true })
    await rescue()
  }

  /** A worker claims it apart, and marks that it begins. */
  async function begin(session: string): Promise<Run> {
    await clock.advance(60_000 - (clock.now() % 60_000))
    await beat(session)
    const selectors = [{ ...selector, leaseMs: workflowLeaseMs }]
    const { runs } = await store.claim({ session, selectors, limit: 1, isolated: true })
    const [taken] = runs as [Run]
    if (session.startsWith('me')) witness.watch(taken)
    await beat(session, { held: [{ runId: id, token: taken.token, extendMs: null, begun: taken.crashes + 1 }] })
    return taken
  }

  /** Others find its session dead; it goes on under the next one. */
  async function lose(session: string): Promise<void> {
    await beat(session, { end: true })
    await rescue({ maxCrashes })
    if (session.startsWith('me')) engine.session = `me after ${session}`
  }

  const stands = async (): Promise<readonly [string, number]> => {
    const { status, crashes } = await run(id)
    return [status, crashes]
  }
  const last = async (): Promise<string | undefined> => (await journal(id)).at(-1)?.kind
  return { ...bench, id, clock, store, engine, state, witness, begin, lose, stands, last }
}

describe('a process that lost a suspect and lives', () => {
  it('takes back the crash that it was counted for, once, and looks at the run no more', async () => {
    const { begin, lose, stands, clock, last, state, engine } = await setUp()
    await begin('me')
    await lose('me')
    expect(await stands()).toEqual(['pending', 3])
    await clock.advance(lookMs)
    expect([await stands(), await last(), state.words]).toEqual([['pending', 2], 'resumed', 1])
    expect(engine.ports.logger.lines.map(({ level }) => level)).toEqual(['info'])
    expect(clock.pending).toBe(0)
  })

  it('does so however often: eight losses in a row do not pause the run', async () => {
    const { begin, lose, stands, clock } = await setUp()
    for (let loss = 1; loss <= 8; loss += 1) {
      await begin(`me ${loss}`)
      await lose(`me ${loss}`)
      await clock.advance(lookMs)
    }
    expect(await stands()).toEqual(['pending', 2])
  })

  it('takes the pause back that came of it, and leaves what others died of', async () => {
    const { begin, lose, stands, clock, last } = await setUp()
    for (const dead of ['third', 'fourth']) {
      await begin(dead)
      await lose(dead)
    }
    await begin('me')
    await lose('me')
    expect([await stands(), await last()]).toEqual([['paused', 5], 'paused'])
    await clock.advance(lookMs)
    expect([await stands(), await last()]).toEqual([['pending', 4], 'resumed'])
    await begin('fifth')
    await lose('fifth')
    await clock.advance(60_000)
    expect(await stands()).toEqual(['paused', 5])
  })

  it('takes one loss back once, also if it had claimed the run there before and given it back', async () => {
    const { begin, lose, stands, clock, state, store, id } = await setUp()
    await begin('third')
    await lose('third')
    const { token, crashes } = await begin('me')
    await store.release([{ session: 'me', token, runId: id, crashes }])
    await begin('me')
    await lose('me')
    expect(await stands()).toEqual(['pending', 4])
    await clock.advance(5 * lookMs)
    expect([await stands(), state.words, clock.pending]).toEqual([['pending', 3], 1, 0])
  })

  it('forgets a run that it has given back', async () => {
    const { begin, lose, clock, state, store, id } = await setUp()
    await begin('third')
    await lose('third')
    const { token, crashes } = await begin('me')
    await store.release([{ session: 'me', token, runId: id, crashes }])
    await clock.advance(2 * lookMs)
    expect([state.words, clock.pending]).toEqual([0, 0])
  })

  it('waits while others hold the run, and speaks when they have lost it, too', async () => {
    const { begin, lose, stands, clock, state } = await setUp()
    await begin('me 1')
    await lose('me 1')
    state.cutOff = true
    await begin('me 2')
    state.cutOff = false
    await clock.advance(5 * lookMs)
    expect([await stands(), state.words]).toEqual([['running', 4], 0])
    await lose('me 2')
    await clock.advance(2 * lookMs)
    expect([await stands(), state.words]).toEqual([['pending', 2], 2])
  })

  it('says nothing when the next holder has committed something', async () => {
    const { begin, lose, stands, clock, state, commit, id } = await setUp()
    await begin('me')
    await lose('me')
    state.cutOff = true
    const { token, seq } = await begin('next')
    await commit({ runId: id, lease: { session: 'next', token }, seq })
    state.cutOff = false
    await clock.advance(lookMs)
    expect([await stands(), state.words, clock.pending]).toEqual([['running', 0], 0, 0])
  })

  it('is counted once though the answer to its word was lost', async () => {
    const { begin, lose, stands, clock, state } = await setUp()
    for (const dead of ['third', 'fourth']) {
      await begin(dead)
      await lose(dead)
    }
    state.answersLost = 3
    await begin('me')
    await lose('me')
    await clock.advance(10 * lookMs)
    expect([await stands(), state.words, clock.pending]).toEqual([['pending', 4], 4, 0])
  })

  it('does not let go on what people have paused, nor count crashes of another time', async () => {
    const { begin, lose, stands, clock, state, control, id, rescue, claim, beat } = await setUp()
    await begin('me 1')
    state.cutOff = true
    await lose('me 1')
    await control(id, ask.pause)
    state.cutOff = false
    await clock.advance(lookMs)
    expect([await stands(), state.words, clock.pending]).toEqual([['paused', 3], 0, 0])
    await control(id, ask.resume)
    for (const session of ['third', 'fourth']) {
      await beat(session)
      await claim({ session })
      await beat(session, { end: true })
      await rescue()
    }
    await begin('me 2')
    state.cutOff = true
    await lose('me 2')
    await control(id, ask.pause)
    await control(id, ask.resume)
    for (const session of ['fifth', 'sixth']) {
      await beat(session)
      await claim({ session })
      await beat(session, { end: true })
      await rescue()
    }
    await begin('seventh')
    await lose('seventh')
    state.cutOff = false
    await clock.advance(lookMs)
    expect([await stands(), state.words, clock.pending]).toEqual([['pending', 3], 0, 0])
  })

  it('says nothing of a run that it gave back', async () => {
    const { begin, stands, clock, state, store, id } = await setUp()
    const { token, crashes } = await begin('me')
    await store.release([{ runId: id, session: 'me', token, crashes }])
    await clock.advance(lookMs)
    expect([await stands(), state.words, clock.pending]).toEqual([['pending', 2], 0, 0])
  })

  it('looks a last time when it stops', async () => {
    const { begin, lose, stands, clock, witness } = await setUp()
    await begin('me')
    await lose('me')
    await witness.stop()
    expect([await stands(), clock.pending]).toEqual([['pending', 2], 0])
  })
})

describe('a run that is past the deadline of its workflow', () => {
  it.each([
    ['counts, if its process was awake: its step has fallen silent', false, 3],
    ['counts for nothing, if its process was silent, too', true, 2],
  ])('%s', async (_, isSilent, crashes) => {
    const { begin, stands, clock, state, beat, rescue } = await setUp(1_500)
    await begin('me')
    state.cutOff = isSilent
    for (let beats = 0; beats < 4; beats += 1) {
      await clock.advance(500)
      await beat('me')
    }
    await rescue({ maxCrashes })
    state.cutOff = false
    await clock.advance(500)
    expect([await stands(), clock.pending]).toEqual([['pending', crashes], 0])
  })
})
