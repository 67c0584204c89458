// What a worker asks of its store, line by line, from inside its process: what was claimed, taken over, read and given back
// when, and what was never answered. From that the report says later why a run had to wait for its next holder. A line is written
// when a call is over; of one who dies in the middle of a call nothing is written, and nothing waits for it either.

import { closeSync, openSync, writeSync } from 'node:fs'
import type { Run } from '../../src/core/model/run.ts'
import type { Store } from '../../src/index.ts'
import { readOrNothing } from '../support/server-folder.ts'

/** A call of a worker that is over. */
export interface StoreCall {
  readonly f: 'claim' | 'apart' | 'rescue' | 'beat' | 'load' | 'release'
  readonly worker: string
  readonly from: number
  readonly to: number
  /** It was answered. */
  readonly ok: boolean
  /** In whose name: for claims and heartbeats. */
  readonly session?: string
  /** The tenure of that session, for heartbeats. */
  readonly tenure?: string
  /** The heartbeat ended its session. */
  readonly ends?: true
  /** Until when the store keeps the session by this heartbeat. */
  readonly until?: number
  /** The runs that it is about: claimed, taken over, read or given back. */
  readonly runs?: readonly string[]
  /** The claim left some, or took as many as it was allowed to. */
  readonly full?: boolean
}

export interface StoreCallLogOptions {
  readonly path: string
  readonly worker: string
  readonly tenure: () => string
  /** @default the time of this machine, which is that of the store */
  readonly now?: () => number
}

type Answered = Partial<Omit<StoreCall, 'f' | 'worker' | 'from' | 'to' | 'ok'>>

export class StoreCallLog {
  private readonly options: StoreCallLogOptions
  private readonly file: number

  constructor(options: StoreCallLogOptions) {
    this.options = options
    this.file = openSync(options.path, 'a')
  }

  /** The same store, but every process that asks it for work is written down. */
  watch(store: Store): Store {
    const watched: Partial<Store> = {
      claim: (request) => {
        const { session, limit, isolated } = request
        return this.noted(
          isolated === true ? 'apart' : 'claim',
          { session },
          store.claim(request),
          ({ runs, more }) => ({
            runs: idsOf(runs),
            full: more || runs.length >= limit,
          }),
        )
      },
      rescue: (request) =>
        this.noted('rescue', {}, store.rescue(request), ({ takenOver, ended }) => ({
          runs: [...takenOver, ...ended].map(({ runId }) => runId),
        })),
      beat: (request) => {
        const { session, leaseMs, end } = request
        const beat = store.beat(request)
        const known: Answered = end === true ? { session, ends: true } : { session, tenure: this.options.tenure() }
        return this.noted('beat', known, beat, ({ alive, now }) => (alive ? { until: now + leaseMs } : {}))
      },
      load: (requests, bytes) =>
        this.noted('load', { runs: requests.map(({ runId }) => runId) }, store.load(requests, bytes), () => ({})),
      release: (leases) =>
        this.noted('release', { runs: leases.map(({ runId }) => runId) }, store.release(leases), () => ({})),
    }
    return new Proxy(store, {
      get(target, key) {
        const own: unknown = Reflect.get(watched, key)
        if (own !== undefined) return own
        const value: unknown = Reflect.get(target, key)
        return typeof value === 'function' ? (value.bind(target) as unknown) : value
      },
    })
  }

  close(): void {
    closeSync(this.file)
  }

  private async noted<Answer>(
    f: StoreCall['f'],
    known: Answered,
    asked: Promise<Answer>,
    answeredAs: (answer: Answer) => Answered,
  ): Promise<Answer> {
    const { worker, now = Date.now } = this.options
    const from = now()
    const note = (ok: boolean, more: Answered): void => {
      const call: StoreCall = { f, worker, from, to: now(), ok, ...known, ...more }
      writeSync(this.file, `${JSON.stringify(call)}\n`)
    }
    try {
      const answer = await asked
      note(true, answeredAs(answer))
      return answer
    } catch (error) {
      note(false, {})
      throw error
    }
  }
}

/** What a worker has written down so far. The last line of one who was killed may be half written. */
export function readCalls(path: string): readonly StoreCall[] {
  const text = readOrNothing(path)
  const lines = text.slice(0, text.lastIndexOf('\n') + 1).split('\n')
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as StoreCall)
}

function idsOf(runs: readonly Run[]): readonly string[] {
  return runs.map(({ id }) => id)
}
