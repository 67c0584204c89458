// How a process keeps its session, and when it stops believing in it. Time belongs to the test; the store is scripted.

import { describe, expect, it } from 'vitest'
import { HoldfastError } from '../../../src/core/errors/error.ts'
import type { Engine } from '../../../src/engine/engine.ts'
import type { Beat, BeatRequest } from '../../../src/store.ts'
import { createRecordingLogger } from '../../../src/testing/logger.ts'
import { createVirtualClock } from '../../../src/testing/virtual-clock.ts'
import { Heartbeat, type HeartbeatListener } from '../../../src/worker/heartbeat.ts'

const leaseMs = 30_000
const everyMs = 10_000

/** A number is how long it takes. */
type Answer = Partial<Beat> | Error | 'never' | number

function setUp() {
  const clock = createVirtualClock()
  const logger = createRecordingLogger()
  const answers: Answer[] = []
  /** Everything that happened, in order. */
  const events: string[] = []
  const requests: BeatRequest[] = []
  const sessions = ['second', 'third', 'fourth']
  const store = {
    beat(request: BeatRequest): Promise<Beat> {
      requests.push(request)
      events.push(`${request.end === true ? 'end' : 'beat'} ${request.session}`)
      const answer = request.end === true ? {} : (answers.shift() ?? {})
      if (answer === 'never') return new Promise(() => undefined)
      if (answer instanceof Error) return Promise.reject(answer)
      const beat: Beat = {
        alive: true,
        lost: [],
        unknownLeases: [],
        controlRequests: [],
        messages: [],
        timedOut: [],
        now: clock.now(),
      }
      if (typeof answer === 'number') return new Promise((resolve) => clock.after(answer, () => resolve(beat)))
      return Promise.resolve({ ...beat, ...answer })
    },
  }
  const engine = {
    store,
    ports: { clock, logger },
    clock: { observe: () => undefined },
    session: 'first',
    renewSession() {
      this.session = sessions.shift() ?? 'none left'
    },
  }
  const owner: HeartbeatListener = {
    claims: () => [],
    claimsKept: () => undefined,
    pause: () => void events.push('pause'),
    resume: () => void events.push('resume'),
    refused: ({ code }) => void events.push(`refused ${code}`),
    leasesLost: ({ code, message }) => void events.push(`${code}: ${message}`),
    claimLost: ({ runId, token }) => void events.push(`lost ${runId} ${token}`),
    unknownLeasesFound: (unknownLeases) => unknownLeases.forEach(({ runId }) => void events.push(`unknown ${runId}`)),
    controlRequested: (runId, controlRequest) => void events.push(`${controlRequest.kind} ${runId}`),
    messageArrived: (runId, inbox) => void events.push(`messages ${runId} ${inbox}`),
    runTimedOut: (runId) => void events.push(`timed out ${runId}`),
  }
  const heartbeat = new Heartbeat(engine as unknown as Engine, owner, { leaseMs, everyMs })
  return {
    heartbeat,
    owner,
    clock,
    logger,
    answers,
    requests,
    /** What happened since the last time. */
    happened: () => events.splice(0),
    /** The process does not run for a while: nothing fires on the way, and everything that is due fires afterwards. */
    standStill: async (ms: number): Promise<void> => {
      const monotonic = clock.monotonic.bind(clock)
      const resumeAt = monotonic() + ms
      clock.monotonic = () => Math.max(resumeAt, monotonic())
      await clock.advance(everyMs)
    },
  }
}

const gone = new Error('Gone')
const standstill =
  'LEASE_LOST: This process stood still for longer than its lease. What was being done here is aborted.'
const silence = 'LEASE_LOST: No heartbeat has succeeded for a whole lease. What was being done here is aborted.'
const foundDead =
  'LEASE_LOST: Other workers declared this process dead and recovered its runs. What was being done here is aborted.'

describe('a heartbeat', () => {
  it('opens the session before its start settles, so that nothing is leased to one that nobody knows', async () => {
    const { heartbeat, answers, requests, happened } = setUp()
    answers.push('never')
    let started = false
    void heartbeat.start().then(() => (started = true))
    await new Promise((resolve) => setImmediate(resolve))
    expect(started).toBe(false)
    expect(happened()).toEqual(['beat first'])
    expect(requests[0]).toEqual({ session: 'first', leaseMs, opens: true, held: [], seeksUnknownLeases: false })
  })

  it('opens its session until the first answer, and the next session likewise', async () => {
    const { heartbeat, answers, clock, requests } = setUp()
    answers.push({}, {}, { alive: false }, gone, {})
    await heartbeat.start()
    await clock.advance(2 * everyMs + 2_000)
    expect(requests.filter(({ end }) => end !== true).map(({ session, opens }) => `${session} ${opens}`)).toEqual([
      'first true',
      'first false',
      'first false',
      'second true',
      'second true',
    ])
  })

  it('that cannot open the session says so and leaves no timer', async () => {
    const { heartbeat, answers, clock } = setUp()
    answers.push(gone)
    await expect(heartbeat.start()).rejects.toBe(gone)
    expect(clock.pending).toBe(0)
  })

  it('beats regularly, and asks each time which claims want more time', async () => {
    const { heartbeat, owner, clock, requests, happened } = setUp()
    const held = [{ runId: 'slow', token: 7, extendMs: 500 }]
    owner.claims = () => held
    await heartbeat.start()
    await clock.advance(2 * everyMs)
    expect(happened()).toEqual(['beat first', 'beat first', 'beat first'])
    expect(requests[2]).toEqual({ session: 'first', leaseMs, opens: false, held, seeksUnknownLeases: false })
  })

  it('looks for unknown leases with every sixth beat, and again with the next one as long as it gets some', async () => {
    const { heartbeat, answers, clock, requests, happened } = setUp()
    const reports = { unknownLeases: [{ runId: 'other', token: 1 }] }
    answers.push(...Array.from({ length: 6 }, () => ({})), reports, reports, {})
    await heartbeat.start()
    await clock.advance(14 * everyMs)
    const seeking = requests.flatMap(({ seeksUnknownLeases }, index) => (seeksUnknownLeases === true ? [index] : []))
    expect(seeking).toEqual([6, 7, 8, 14])
    expect(happened().filter((one) => one === 'unknown other')).toHaveLength(2)
  })

  it('looks for unknown leases again with the next beat if the store could not, and forgets nothing that it had seen', async () => {
    const { heartbeat, owner, answers, clock, requests } = setUp()
    const looks: (readonly string[])[] = []
    owner.unknownLeasesFound = (unknownLeases) => void looks.push(unknownLeases.map(({ runId }) => runId))
    const reports = { unknownLeases: [{ runId: 'other', token: 1 }] }
    const rests = { unknownLeasesSkipped: true } as const
    answers.push(...Array.from({ length: 6 }, () => ({})), rests, reports, rests, rests, reports, {})
    await heartbeat.start()
    await clock.advance(12 * everyMs)
    const seeking = requests.flatMap(({ seeksUnknownLeases }, index) => (seeksUnknownLeases === true ? [index] : []))
    expect(seeking).toEqual([6, 7, 8, 9, 10, 11])
    expect(looks).toEqual([['other'], ['other'], []])
  })

  it('looks for unknown leases at once when a call was not answered, also while such a look is on its way', async () => {
    const { heartbeat, answers, clock, requests } = setUp()
    await heartbeat.start()
    heartbeat.seekUnknownLeases()
    answers.push(100)
    await clock.advance(everyMs + 50)
    heartbeat.seekUnknownLeases()
    await clock.advance(3 * everyMs)
    expect(requests.map(({ seeksUnknownLeases }) => seeksUnknownLeases)).toEqual([false, true, true, false])
  })

  it('looks for unknown leases after a beat that failed: others may have had no answer either', async () => {
    const { heartbeat, answers, clock, requests } = setUp()
    answers.push({}, gone)
    await heartbeat.start()
    await clock.advance(everyMs + 1_000)
    expect(requests.map(({ seeksUnknownLeases }) => seeksUnknownLeases)).toEqual([false, false, true])
  })

  it('that another transaction was in the way of is a success, and comes again soon', async () => {
    const { heartbeat, owner, answers, clock, requests, happened } = setUp()
    const kept: (readonly string[])[] = []
    owner.claimsKept = (busy) => void kept.push(busy)
    answers.push({}, { busy: ['locked'] }, { busy: ['locked'] })
    await heartbeat.start()
    await clock.advance(everyMs + 2_000)
    expect(requests).toHaveLength(4)
    expect(kept).toEqual([[], ['locked'], ['locked'], []])
    expect(happened()).toEqual(['beat first', 'beat first', 'beat first', 'beat first'])
    await clock.advance(everyMs - 1)
    expect(requests).toHaveLength(4)
  })

  it('that fails pauses claiming once, and the next success resumes it once', async () => {
    const { heartbeat, answers, clock, logger, happened } = setUp()
    answers.push({}, gone, gone, gone)
    await heartbeat.start()
    await clock.advance(everyMs + 5_000)
    expect(happened()).toEqual([
      'beat first',
      'beat first',
      'pause',
      'beat first',
      'beat first',
      'beat first',
      'resume',
    ])
    expect(logger.messages('warn')).toHaveLength(3)
    await clock.advance(everyMs)
    expect(happened()).toEqual(['beat first'])
  })

  it('that the store refuses for good says so, takes nothing new and goes on beating until it is stopped', async () => {
    const { heartbeat, answers, clock, logger, happened } = setUp()
    const tooNew = new HoldfastError('SCHEMA_TOO_NEW', 'Too new')
    answers.push({}, tooNew, tooNew)
    await heartbeat.start()
    await clock.advance(everyMs + 1_000)
    const refused = ['beat first', 'refused SCHEMA_TOO_NEW']
    const [beat = '', said = ''] = refused
    expect(happened()).toEqual([beat, beat, 'pause', said, ...refused])
    expect(logger.messages('warn')).toEqual([])
    await heartbeat.stop()
    expect(happened()).toEqual(['end first'])
    expect(clock.pending).toBe(0)
  })

  it('that has not succeeded for a whole lease aborts all work here once, not at every further failure', async () => {
    const { heartbeat, answers, clock, happened } = setUp()
    answers.push({}, ...Array.from({ length: 100 }, () => gone))
    await heartbeat.start()
    await clock.advance(leaseMs - 1)
    expect(happened()).not.toContain(silence)
    await clock.advance(1)
    expect(happened()).toContain(silence)
    await clock.advance(leaseMs)
    expect(happened()).not.toContain(silence)
  })

  it('that is never answered aborts all work here when the lease runs out, and goes on under a new session', async () => {
    const { heartbeat, answers, clock, happened } = setUp()
    answers.push({}, 'never')
    await heartbeat.start()
    await clock.advance(leaseMs - 1)
    expect(happened()).toEqual(['beat first', 'beat first'])
    await clock.advance(1)
    expect(happened()).toEqual(['pause', silence, 'end first', 'beat second', 'resume'])
    await clock.advance(everyMs)
    expect(happened()).toEqual(['beat second'])
  })

  it('that comes through after all goes on under a new session, or nobody could take over what was aborted', async () => {
    const { heartbeat, answers, clock, happened } = setUp()
    answers.push({}, ...Array.from({ length: 20 }, () => gone))
    await heartbeat.start()
    await clock.advance(leaseMs - 1)
    happened()
    await clock.advance(1)
    expect(happened()).toEqual([silence, 'end first', 'beat second', 'resume'])
    await clock.advance(everyMs)
    expect(happened()).toEqual(['beat second'])
  })

  it('after a standstill longer than the lease aborts all work before it beats again', async () => {
    const { heartbeat, standStill, happened } = setUp()
    await heartbeat.start()
    happened()
    await standStill(leaseMs + 1)
    expect(happened()).toEqual(['pause', standstill, 'end first', 'beat second', 'resume'])
  })

  it('after a standstill shorter than the lease just goes on', async () => {
    const { heartbeat, standStill, happened } = setUp()
    await heartbeat.start()
    await standStill(leaseMs - 1)
    expect(happened()).toEqual(['beat first', 'beat first'])
  })

  it('of a session that others ended aborts all work and begins anew under another one at once', async () => {
    const { heartbeat, answers, clock, happened } = setUp()
    answers.push({}, { alive: false })
    await heartbeat.start()
    await clock.advance(everyMs)
    expect(happened()).toEqual(['beat first', 'beat first', 'pause', foundDead, 'end first', 'beat second', 'resume'])
    await clock.advance(everyMs)
    expect(happened()).toEqual(['beat second'])
  })

  it('of a new session that is found dead, too, begins anew again, and aborts nothing twice', async () => {
    const { heartbeat, answers, clock, happened } = setUp()
    answers.push({}, { alive: false }, { alive: false })
    await heartbeat.start()
    happened()
    await clock.advance(everyMs)
    const ends = ['end first', 'beat second', 'end second', 'beat third', 'resume']
    expect(happened()).toEqual(['beat first', 'pause', foundDead, ...ends])
  })

  it('counts the lease from when a beat was sent, not from when its answer came', async () => {
    const { heartbeat, answers, clock, happened } = setUp()
    const answerMs = 5_000
    answers.push({}, answerMs, ...Array.from({ length: 100 }, () => gone))
    await heartbeat.start()
    await clock.advance(everyMs + leaseMs - 1)
    expect(happened()).not.toContain(silence)
    await clock.advance(1)
    expect(happened()).toContain(silence)
  })

  it('whose answer comes after the lease has run out does not count: the session was given up meanwhile', async () => {
    const { heartbeat, answers, clock, happened } = setUp()
    answers.push({}, leaseMs)
    await heartbeat.start()
    await clock.advance(everyMs + leaseMs)
    expect(happened()).toEqual([
      'beat first',
      'beat first',
      'pause',
      silence,
      'end first',
      'beat second',
      'resume',
      'beat second',
    ])
  })

  it('says which single claims were lost, what is requested, who got messages and which runs have used up their time', async () => {
    const { heartbeat, owner, answers, clock, happened } = setUp()
    owner.claims = () => ['a', 'b', 'c', 'd'].map((runId, index) => ({ runId, token: index + 1, extendMs: null }))
    const controlRequest = { kind: 'cancel', reason: null, at: 1 } as const
    answers.push(
      {},
      {
        lost: ['a', 'b'],
        controlRequests: [{ runId: 'd', controlRequest }],
        messages: [{ runId: 'd', inbox: 3 }],
        timedOut: ['c'],
      },
    )
    await heartbeat.start()
    happened()
    await clock.advance(everyMs)
    expect(happened()).toEqual(['beat first', 'lost a 1', 'lost b 2', 'cancel d', 'messages d 3', 'timed out c'])
  })

  it('that stops ends the session and leaves no timer', async () => {
    const { heartbeat, clock, happened } = setUp()
    await heartbeat.start()
    happened()
    await heartbeat.stop()
    expect(happened()).toEqual(['end first'])
    expect(clock.pending).toBe(0)
  })

  it('that stops while a beat is on its way sets no timer afterwards, whatever the answer', async () => {
    for (const answer of [{ lost: ['a'] }, { alive: false }, gone]) {
      const { heartbeat, answers, clock, logger, happened } = setUp()
      answers.push({}, answer)
      await heartbeat.start()
      const ticked = clock.runUntil(() => false, everyMs)
      while (happened().length === 0) await Promise.resolve()
      await heartbeat.stop()
      await ticked
      expect(clock.pending).toBe(0)
      expect(logger.lines).toEqual([])
    }
  })
})
