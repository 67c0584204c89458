// Who looks after dead holders, and what it reports. Time belongs to the test; the store is scripted.

import { describe, expect, it } from 'vitest'
import type { Definition } from '../../../src/core/definition/definition.ts'
import { Payloads } from '../../../src/core/payload/payload.ts'
import type { Engine } from '../../../src/engine/engine.ts'
import type { Rescued, RescueRequest } from '../../../src/store.ts'
import { createRecordingLogger } from '../../../src/testing/logger.ts'
import { createVirtualClock } from '../../../src/testing/virtual-clock.ts'
import { Rescuer } from '../../../src/worker/rescuer.ts'

const leaseMs = 30_000

/** A codec that could not read what another wrote. */
const hexCodec = {
  encode: (value: unknown) => Buffer.from(JSON.stringify(value)).toString('hex'),
  decode: (text: string): unknown => JSON.parse(Buffer.from(text, 'hex').toString()),
}

function setUp() {
  const clock = createVirtualClock()
  const logger = createRecordingLogger()
  const answers: (Partial<Rescued> | Error)[] = []
  const requests: RescueRequest[] = []
  const hinted: string[] = []
  const seen = { ready: 0 }
  let onRescue = (): void => undefined
  const store = {
    capabilities: { notifies: true },
    rescue(request: RescueRequest): Promise<Rescued> {
      requests.push(request)
      onRescue()
      const answer = answers.shift() ?? {}
      if (answer instanceof Error) return Promise.reject(answer)
      const now = clock.now()
      const nothing = { takenOver: [], ended: [], paused: [], suspects: null, more: false, next: null }
      return Promise.resolve({ sessionsEnded: 0, ...nothing, now, ...answer })
    },
  }
  const engine = {
    store,
    // A half, at which jitter changes nothing.
    ports: { clock, logger, random: { uint32: () => 2 ** 31 } },
    clock: { now: () => clock.now(), observe: () => undefined },
    pollMs: undefined,
    payloads: new Payloads(hexCodec),
    runEnds: { hinted: (runId: string) => void hinted.push(runId) },
    onReady: () => void (seen.ready += 1),
  }
  const suspects: (number | null)[] = []
  const definitions = [
    { type: 'own', version: 2, maxCrashes: 9, onCrashes: 'fail' },
    { type: 'other', version: 1 },
  ] as unknown as readonly Definition[]
  const rescuer = new Rescuer(engine as unknown as Engine, {
    leaseMs,
    maxCrashes: 5,
    definitions,
    suspects: (dueInMs) => void suspects.push(dueInMs),
  })
  return {
    rescuer,
    clock,
    logger,
    answers,
    requests,
    hinted,
    seen,
    suspects,
    store,
    whenRescuing: (call: () => void) => void (onRescue = call),
  }
}

const taken = (count: number): Partial<Rescued> => ({
  takenOver: Array.from({ length: count }, (_, n) => ({ runId: `${n}`, type: 't', session: 'dead', crashes: 1 })),
})

describe('a rescuer', () => {
  it('looks again at once while there is more to do, and reports the sum of it', async () => {
    const { rescuer, answers, requests, seen, logger } = setUp()
    answers.push({ ...taken(500), sessionsEnded: 2, more: true }, { ...taken(3), sessionsEnded: 1 })
    expect(await rescuer.start()).toEqual({ sessions: 3, runs: 503 })
    expect(requests).toHaveLength(2)
    expect(seen.ready).toBe(1)
    expect(logger.lines).toEqual([
      { level: 'warn', message: expect.stringContaining('503') as string, details: { runs: 503, sessions: 3 } },
    ])
  })

  it('that finds nothing says nothing', async () => {
    const { rescuer, logger, seen } = setUp()
    expect(await rescuer.start()).toEqual({ sessions: 0, runs: 0 })
    expect(logger.lines).toEqual([])
    expect(seen.ready).toBe(0)
  })

  it('gives the store a reason to write down for each way in which a run is given up', async () => {
    const { rescuer, requests } = setUp()
    await rescuer.start()
    const { failures } = requests[0] as RescueRequest
    const payloads = new Payloads(hexCodec)
    const codes = Object.entries(failures).map(([reason, data]) => {
      // Any run may get this text, so no codec has bound it to a place.
      const error = payloads.decode(data, payloads.place('any', 9, 'failed', null)) as {
        readonly code: string
      }
      return [reason, error.code]
    })
    expect(Object.fromEntries(codes)).toEqual({
      crashed: 'RUN_CRASHED',
      'timed-out': 'RUN_TIMEOUT',
      expired: 'RUN_EXPIRED',
    })
  })

  it('notifies those who wait for a run that it was given up, and why in the log', async () => {
    const { rescuer, answers, hinted, logger } = setUp()
    answers.push({
      ended: [
        { runId: 'a', type: 't', reason: 'expired' },
        { runId: 'b', type: 't', reason: 'crashed' },
        { runId: 'c', type: 't', reason: 'cancelled' },
      ],
    })
    await rescuer.start()
    expect(hinted).toEqual(['a', 'b', 'c'])
    expect(logger.lines.map(({ details }) => details)).toEqual([
      { run: 'a', type: 't', reason: 'expired' },
      { run: 'b', type: 't', reason: 'crashed' },
      { run: 'c', type: 't', reason: 'cancelled' },
    ])
  })

  it('looks again soon after an error, and later after each one more in a row', async () => {
    const { rescuer, answers, requests, clock } = setUp()
    const gone = new Error('Gone')
    answers.push({}, gone, gone, gone, {}, gone)
    await rescuer.start()
    await clock.advance(leaseMs / 2)
    const pauses: number[] = []
    for (const ms of [100, 200, 400]) {
      const before = requests.length
      await clock.advance(ms - 1)
      expect(requests).toHaveLength(before)
      await clock.advance(1)
      pauses.push(requests.length - before)
    }
    expect(pauses).toEqual([1, 1, 1])
    // The last look has succeeded: the next error is the first one again.
    await clock.advance(leaseMs / 2)
    expect(requests).toHaveLength(6)
    await clock.advance(100)
    expect(requests).toHaveLength(7)
  })

  it('looks twice in a lease, and goes on after an error of the store', async () => {
    const { rescuer, answers, requests, clock, logger, seen } = setUp()
    answers.push({}, new Error('Gone'), taken(1))
    await rescuer.start()
    await clock.advance(leaseMs / 2)
    expect(requests).toHaveLength(2)
    expect(logger.messages('warn')).toEqual(['Could not look for work to take over; looking again soon.'])
    await clock.advance(leaseMs / 2)
    expect(requests).toHaveLength(3)
    expect(seen.ready).toBe(1)
  })

  it('gives the store its bound on crashes, and those of the workflows that it knows', async () => {
    const { rescuer, requests } = setUp()
    await rescuer.start()
    expect(requests[0]).toMatchObject({
      maxCrashes: 5,
      workflows: [
        { type: 'own', version: 2, maxCrashes: 9, onCrashes: 'fail' },
        { type: 'other', version: 1, maxCrashes: null, onCrashes: 'pause' },
      ],
    })
  })

  it('says when a suspect is due, and names a run that was paused for its crashes', async () => {
    const { rescuer, answers, suspects, clock, logger } = setUp()
    answers.push({ ...taken(2), paused: ['1'], suspects: clock.now() + 700 }, {})
    await rescuer.start()
    expect(suspects).toEqual([700])
    expect(logger.messages('error')).toEqual([
      expect.stringContaining('Run 1 of "t" is paused (crashes): Its process died once, '),
    ])
    await clock.advance(leaseMs / 2)
    expect(suspects).toEqual([700, null])
  })

  it('looks when a deadline is over that it knows of, also while it looked', async () => {
    const { rescuer, requests, clock, whenRescuing } = setUp()
    await rescuer.start()
    rescuer.expect(clock.now() + 5_000)
    rescuer.expect(clock.now() + 500)
    rescuer.expect(clock.now() + 9_000)
    await clock.advance(499)
    expect(requests).toHaveLength(1)
    whenRescuing(() => rescuer.expect(clock.now() + 300))
    await clock.advance(1)
    expect(requests).toHaveLength(2)
    whenRescuing(() => undefined)
    await clock.advance(300)
    expect(requests).toHaveLength(3)
  })

  it('looks no more often than ten times a second, however many deadlines are over', async () => {
    const { rescuer, requests, clock } = setUp()
    await rescuer.start()
    for (let ms = 0; ms < 1_000; ms += 10) {
      rescuer.expect(clock.now())
      await clock.advance(10)
    }
    expect(requests.length).toBeLessThanOrEqual(11)
  })

  it('looks again after longer and longer pauses while another transaction has locked what has run out', async () => {
    const { rescuer, requests, answers, clock } = setUp()
    const over = clock.now()
    answers.push(...Array.from({ length: 12 }, () => ({ next: over })))
    await rescuer.start()
    const looks: number[] = [requests.length]
    for (const ms of [100, 200, 400, 800, 1_000, 1_000]) {
      await clock.advance(ms - 1)
      looks.push(requests.length)
      await clock.advance(1)
    }
    expect(looks).toEqual([1, 1, 2, 3, 4, 5, 6])
    // A hint of a deadline is heard at once.
    await clock.advance(200)
    rescuer.expect(clock.now())
    await clock.advance(0)
    expect(requests).toHaveLength(8)
    // Once nothing is left that has run out, the next one is looked at soon again.
    answers.length = 0
    await clock.advance(1_000)
    expect(requests).toHaveLength(9)
    answers.push({ next: clock.now() })
    await clock.advance(100)
    rescuer.expect(clock.now())
    await clock.advance(100)
    expect(requests).toHaveLength(11)
  })

  it('looks every second where others cannot send a hint of a deadline, and seldom where they can', async () => {
    const { rescuer, requests, clock, store } = setUp()
    await rescuer.start()
    await clock.advance(10_000)
    expect(requests).toHaveLength(1)
    await clock.advance(5_000)
    store.capabilities.notifies = false
    await clock.advance(15_000)
    requests.splice(0)
    await clock.advance(10_000)
    expect(requests).toHaveLength(10)
  })

  it('that cannot look at its start says so and leaves no timer', async () => {
    const { rescuer, answers, clock } = setUp()
    const gone = new Error('Gone')
    answers.push(gone)
    await expect(rescuer.start()).rejects.toBe(gone)
    expect(clock.pending).toBe(0)
  })

  it('that is stopped leaves no timer', async () => {
    const { rescuer, clock, requests } = setUp()
    await rescuer.start()
    rescuer.stop()
    expect(clock.pending).toBe(0)
    await clock.advance(leaseMs)
    expect(requests).toHaveLength(1)
  })

  it('that is stopped while it looks takes no more, and sets no timer afterwards', async () => {
    const { rescuer, answers, requests, clock, whenRescuing } = setUp()
    answers.push({}, { ...taken(500), more: true }, taken(1))
    await rescuer.start()
    whenRescuing(() => rescuer.stop())
    await clock.advance(leaseMs)
    expect(requests).toHaveLength(2)
    expect(clock.pending).toBe(0)
  })
})
