// A claimer whose store, slots, time and turns belong to the test.

import { jsonCodec } from '../../src/core/payload/codec.ts'
import type { HoldfastError } from '../../src/core/errors/error.ts'
import { Payloads } from '../../src/core/payload/payload.ts'
import type { Cancel, Ports } from '../../src/core/runtime/ports.ts'
import type { Run } from '../../src/core/model/run.ts'
import type { Engine } from '../../src/engine/engine.ts'
import type { Claimed, ClaimRequest } from '../../src/store.ts'
import { Claimer } from '../../src/worker/claim/claimer.ts'
import { KnownKeys } from '../../src/worker/claim/known-keys.ts'
import type { Performer } from '../../src/worker/perform/performer.ts'
import { Slots } from '../../src/worker/perform/slots.ts'
import { systemDigest } from '../../src/system.ts'

export const nobody: Claimed = { runs: [], more: false, nextDue: null, now: 0 }
let made = 0
/** A run with a new id. */
export const newRun = (type = 'order'): Run => ({ id: `run ${(made += 1)}`, type, keyId: null }) as never
export const some = (count: number): Claimed => ({ ...nobody, runs: Array.from({ length: count }, () => newRun()) })

export function setUp(slotCount: number, leaseMs: number | null = null, types: readonly string[] = ['order']) {
  const asked: number[] = []
  const named: string[] = []
  const answers: (Claimed | Error)[] = []
  const timers = new Map<() => void, number>()
  const turns: (() => void)[] = []
  let time = 0
  const begun: string[] = []
  const givenBack: string[] = []
  const ports: Ports = {
    clock: {
      now: () => 0,
      monotonic: () => time,
      after(ms, wake): Cancel {
        timers.set(wake, ms)
        return () => timers.delete(wake)
      },
    },
    turns: { next: (call) => void turns.push(call) },
    // A half, at which jitter changes nothing.
    random: { uint32: () => 2 ** 31 },
    digest: systemDigest,
    logger: { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined },
  }
  const store = {
    capabilities: { notifies: true, multiProcess: false },
    claim: ({ limit, selectors }: ClaimRequest) => {
      asked.push(limit)
      named.push(selectors.map(({ type }) => type).join(' '))
      const answer = answers.shift() ?? nobody
      return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer)
    },
  }
  const payloads = new Payloads(jsonCodec())
  const engine = {
    store,
    ports,
    session: 'session',
    clock: { observe: () => undefined },
    payloads,
  } as unknown as Engine
  const claimable: Performer['claimable'] = (selectors) => selectors
  const performer = {
    claimable,
    beginAll: (runs: readonly Run[]) => Promise.resolve(void begun.push(...runs.map(({ id }) => id))),
    decline: ({ id }: Run) => void givenBack.push(id),
  } as unknown as Performer
  const slots: Slots = new Slots(slotCount, { freed: () => claimer.slotFreed(), left: () => undefined })
  const refusals: HoldfastError[] = []
  const claimer = new Claimer(engine, slots, performer, {
    selectors: types.map((type) => ({ type, version: 1, leaseMs })),
    pollMs: 1_000,
    keys: new KnownKeys(engine),
    refused: (reason) => void refusals.push(reason),
    rested: () => undefined,
    unanswered: () => undefined,
  })
  return {
    begun: () => begun.splice(0),
    givenBack: () => givenBack.splice(0),
    pass: (ms: number) => void (time += ms),
    refusals,
    asked,
    named,
    answers,
    claimer,
    slots,
    /** The delays of the timers that are set. */
    delays: () => [...timers.values()],
    fire: () => {
      const due = [...timers.keys()]
      timers.clear()
      for (const wake of due) wake()
    },
    /** Runs turns, and the microtasks between them, until there are none. */
    turn: async () => {
      do {
        for (const call of turns.splice(0)) call()
        for (let tick = 0; tick < 10; tick += 1) await Promise.resolve()
      } while (turns.length > 0)
    },
  }
}
