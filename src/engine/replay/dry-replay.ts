// One replay of a body without any effect: a frame is opened for a run with a request to pause, on a host that answers
// nothing. So it shows the body the recorded outcomes, begins no step, and commits a pause where nothing is left to show. The
// commit with which it would leave is the answer, and is not sent.

import type { Definition, Frame, Host } from '../../core/definition/definition.ts'
import type { Draft, Drift, Entry, Unreadable } from '../../core/model/entry.ts'
import { HoldfastError } from '../../core/errors/error.ts'
import { silentHost, silentListener } from '../../core/runtime/silent-host.ts'
import type { Payloads } from '../../core/payload/payload.ts'
import type { Cancel, Ports } from '../../core/runtime/ports.ts'
import type { Run, ControlRequest } from '../../core/model/run.ts'
import type { Transition } from '../../core/model/transition.ts'
import { quotedText } from '../../core/text/printable.ts'
import type { KeptState } from './kept-state.ts'

export interface Lent {
  readonly ports: Ports
  readonly payloads: Payloads
  readonly services: unknown
  /** The key from which the secrets of completion tokens are derived. @default bodies get tokens that complete nothing */
  readonly tokenKey?: string | null
  /** Of an instance of a decider that was exported. @default none was kept */
  readonly kept?: KeptState | undefined
}

/** The result of a dry replay of a body. */
export type DryReplay =
  | { readonly status: 'succeeded'; readonly output: unknown }
  /** `cause` is the entry of the step whose error it threw on; null if it is another error. */
  | { readonly status: 'failed'; readonly error: unknown; readonly cause: number | null }
  /** It makes a call that was not recorded. */
  | { readonly status: 'waiting' }
  /** It begins anew. */
  | { readonly status: 'continued' }
  | { readonly status: 'drifted'; readonly drift: Drift }

/** How long a body may be silent. */
const silenceMs = 10_000
/** How long it may take, however busy it is. */
const longestMs = 60_000

/** Every payload of `entries` must be at hand. Rejects if the body does not come to rest. */
export async function replayDry(
  definition: Definition,
  run: Run,
  entries: readonly Entry[],
  lent: Lent,
): Promise<DryReplay> {
  const timeout = new ReplayTimeout(lent.ports, run)
  let frame: Frame | null = null
  try {
    return await new Promise<DryReplay>((resolve, reject) => {
      timeout.begin(reject)
      const sent: Draft[] = []
      const commit = (transition: Transition): Promise<never> => {
        sent.push(...transition.append)
        if (transition.status !== null || transition.continues !== null) resolve(readLast(run, sent, lent.payloads))
        return new Promise(() => undefined)
      }
      const host: Host = { ...silentHost(lenderOf(lent, timeout)), commit }
      frame = definition.open(host, claimOf(run, entries, lent.ports))
      frame.start(silentListener)
    })
  } finally {
    timeout.end()
    // Resources that the body holds are released.
    ;(frame as Frame | null)?.abort(new Error('The replay is over.'))
  }
}

function lenderOf(
  { ports, payloads, services, tokenKey = null }: Lent,
  { turns }: ReplayTimeout,
): Parameters<typeof silentHost>[0] {
  return {
    ports: { ...ports, turns },
    payloads,
    services,
    inlineRetryMs: 0,
    abortGraceMs: 0,
    untilIntervalMs: 0,
    now: () => ports.clock.now(),
    // It is never called: the frame only checks that it exists.
    transact: () => new Promise(() => undefined),
    tokenKey,
  }
}

function claimOf(run: Run, entries: readonly Entry[], { clock }: Ports): Parameters<Definition['open']>[1] {
  const controlRequest: ControlRequest = { kind: 'pause', reason: 'operator', note: null, at: clock.now() }
  const lease = { session: 'replay', token: run.token }
  const held: Run = { ...run, status: 'running', readiness: 'leased', session: lease.session, inbox: 0, controlRequest }
  return { run: held, lease, entries, messages: [] }
}

/** The meaning of the entries that a frame would have left with. */
function readLast({ id, seq }: Run, sent: readonly Draft[], payloads: Payloads): DryReplay {
  for (const [at, draft] of sent.entries()) {
    const place = payloads.place(id, seq + at + 1, draft.kind, draft.name)
    const read = (data: string): unknown => payloads.decode(data, place)
    if (draft.kind === 'paused' && draft.meta.reason === 'drift') return { status: 'drifted', drift: draft.meta }
    if (draft.kind === 'paused' && draft.meta.reason === 'unreadable') {
      return { status: 'failed', error: unreadError(id, draft.meta), cause: null }
    }
    if (draft.kind === 'continued') return { status: 'continued' }
    if (draft.kind === 'succeeded') return { status: 'succeeded', output: read(draft.data) }
    const isOfBody = draft.kind === 'attempt-failed' && draft.name === null
    if (isOfBody) return { status: 'failed', error: read(draft.data), cause: null }
    if (draft.kind !== 'failed' && draft.kind !== 'failing') continue
    return { status: 'failed', error: read(draft.data), cause: draft.meta?.cause ?? null }
  }
  return { status: 'waiting' }
}

/** The codec's error for the payload for which a run would be paused. */
function unreadError(runId: string, { entry, key, why, note }: Unreadable): HoldfastError {
  const details = { runId, ...entry, reason: why, ...(key === null ? {} : { key }) }
  return new HoldfastError('PAYLOAD_CORRUPT', note, { details })
}

/** Gives up a body that is silent for too long, or never done. Each turn that its frame takes is a sign of life. */
class ReplayTimeout {
  readonly turns: Ports['turns']
  private readonly ports: Ports
  private readonly run: Run
  private readonly begunAt: number
  private heardAt: number
  private cancel: Cancel = () => undefined

  constructor(ports: Ports, run: Run) {
    this.ports = ports
    this.run = run
    this.begunAt = this.heardAt = ports.clock.monotonic()
    this.turns = {
      next: (call) => {
        this.heardAt = ports.clock.monotonic()
        ports.turns.next(call)
      },
    }
  }

  begin(reject: (error: unknown) => void): void {
    const { clock } = this.ports
    const leftMs = Math.min(this.heardAt + silenceMs, this.begunAt + longestMs) - clock.monotonic()
    if (leftMs <= 0) return reject(restless(this.run))
    this.cancel = clock.after(leftMs, () => this.begin(reject))
  }

  end(): void {
    this.cancel()
  }
}

function restless({ id, type }: Run): HoldfastError {
  return new HoldfastError(
    'DRIFT',
    `The body of ${quotedText(type)} does not come to rest when run ${id} is replayed: it awaits something that no step, wait or ` +
      'resource stands for. Do such work inside a step, so that a replay need not do it again.',
    { details: { runId: id, type } },
  )
}
