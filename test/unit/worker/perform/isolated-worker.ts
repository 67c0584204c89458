// A worker that may have suspects to perform, for tests: time belongs to the test, the store is scripted, and what happens is
// written down.

import type { Run } from '../../../../src/core/model/run.ts'
import type { Engine } from '../../../../src/engine/engine.ts'
import type { BeatRequest, Claimed, ClaimRequest } from '../../../../src/store.ts'
import { createRecordingLogger } from '../../../../src/testing/logger.ts'
import { createVirtualClock } from '../../../../src/testing/virtual-clock.ts'
import { IsolatedRuns } from '../../../../src/worker/perform/isolation.ts'
import type { Performer } from '../../../../src/worker/perform/performer.ts'
import { Slots } from '../../../../src/worker/perform/slots.ts'

export const leaseMs = 3_000
export const suspect = { id: 'suspect', token: 7, session: 'me', crashes: 2 } as Run

/** A worker that has lived for so long, with such a lease. */
export function setUp(age = 2 * leaseMs, leaseOf = leaseMs, chance = 0) {
  const clock = createVirtualClock()
  const claims: Pick<ClaimRequest, 'limit' | 'isolated'>[] = []
  const beats: BeatRequest[] = []
  const events: string[] = []
  /** Whom its process may have to speak for. */
  const watched: string[] = []
  const answers: (Partial<Claimed> | Error)[] = []
  const state = {
    isFree: true,
    mayLease: true,
    isAlive: true,
    isLost: false,
    isBusy: false,
    beatFails: false,
    /** Settles when all that was left is given back. */
    gaveBack: Promise.resolve(),
  }
  const store = {
    claim: ({ limit, isolated }: ClaimRequest): Promise<Claimed> => {
      claims.push({ limit, ...(isolated === undefined ? {} : { isolated }) })
      const answer = answers.shift() ?? {}
      if (answer instanceof Error) return Promise.reject(answer)
      return Promise.resolve({ runs: [], more: false, nextDue: null, now: clock.now(), ...answer })
    },
    beat: (request: BeatRequest): Promise<unknown> => {
      beats.push(request)
      if (state.beatFails) return Promise.reject(new Error('Gone'))
      const busy = state.isBusy ? { busy: ['suspect'] } : {}
      return Promise.resolve({ alive: state.isAlive, lost: state.isLost ? ['suspect'] : [], ...busy })
    },
  }
  let lived = 0
  const own = { after: clock.after.bind(clock), monotonic: () => clock.monotonic() + lived }
  const ports = { clock: own, logger: createRecordingLogger(), random: { uint32: () => chance * 2 ** 32 } }
  const engine = { store, session: 'me', ports, clock: { observe: () => 0 }, payloads: { keys: null } }
  const slots: Slots = new Slots(10, { freed: () => isolation.look(), left: () => isolation.look() })
  const performer = {
    beginIsolated: (run: Run) => Promise.resolve(void events.push(`begins ${run.id}`)),
    leave: (runId: string) => void events.push(`${runId} is to leave`),
    giveBack: (run: Run) => void events.push(`goes back ${run.id}`),
    gaveBack: () => state.gaveBack,
  } as unknown as Performer
  const owner = {
    get isFree() {
      return state.isFree
    },
    get mayLease() {
      return state.mayLease
    },
    watch: (run: Run) => void watched.push(run.id),
    pause: () => void events.push('pause'),
    resume: () => void events.push('resume'),
  }
  const isolation = new IsolatedRuns(engine as unknown as Engine, slots, performer, owner, {
    selectors: [],
    leaseMs: leaseOf,
  })
  lived = age
  return { isolation, slots, clock, claims, beats, watched, answers, state, happened: () => events.splice(0) }
}
