// The states of `holdfast dev`: what happens to its one worker when files change, when the worker ends, and at Ctrl-C. Pure:
// the shell in dev-loop.ts executes the decisions.
//
//   starting   a worker was started                 → working   it says that it works
//   starting, working   a file changed              → stopping  the worker is asked to stop, and killed when patience is over
//                       it ended with a usage error → waiting   until a file changes: the code, or the options, are wrong
//                       it ended otherwise          → waiting   for a while: at once the first time, longer each time after that
//                       Ctrl-C                      → stopping  for good
//   stopping   the worker ended                     → starting, or over after Ctrl-C
//              a second Ctrl-C                      → over      the worker is killed
//   waiting    a file changed, or the while is over → starting
//              Ctrl-C                               → over
//
// No worker is started before the last one has ended: two would share the runs, and one of them would have the old code.

/** Why a worker was started. */
export type Cause = { readonly kind: 'begin' | 'crash' } | { readonly kind: 'change'; readonly file: string }

export type DevState =
  | { readonly phase: 'starting' | 'working'; readonly cause: Cause; readonly crashes: number }
  /** `next` is why a worker is started when this one has ended; null for none. */
  | { readonly phase: 'stopping'; readonly next: Cause | null }
  | { readonly phase: 'waiting'; readonly until: 'change' | 'time'; readonly crashes: number }
  | { readonly phase: 'over'; readonly isAtOnce: boolean }

/** How a process ended: by itself, or by a signal. */
export interface Ended {
  readonly code: number | null
  readonly signal: string | null
  /** How long it had lived. */
  readonly livedMs: number
}

export type DevEvent =
  | { readonly kind: 'changed'; readonly file: string }
  | { readonly kind: 'working' }
  | { readonly kind: 'ended'; readonly ended: Ended }
  /** The time of the last `wait` is over. */
  | { readonly kind: 'time' }
  | { readonly kind: 'interrupted' }

export type DevAction =
  | { readonly kind: 'start' | 'stop' | 'kill' }
  /** Raises the event `time` after this time, unless the phase has changed by then. */
  | { readonly kind: 'wait'; readonly ms: number }
  | { readonly kind: 'report'; readonly event: DevReport }

/** What the user sees. */
export type DevReport =
  | { readonly event: 'working'; readonly cause: Cause }
  /** `againInMs` is null if only a change starts it again. */
  | { readonly event: 'ended'; readonly ended: Ended; readonly cause: Cause; readonly againInMs: number | null }
  | { readonly event: 'stopping' | 'stopped' }

export interface Decided {
  readonly state: DevState
  readonly actions: readonly DevAction[]
}

/** The exit code of a worker whose module, options or store are wrong. */
const usageExit = 2
/** A worker that lived this long did not crash because of its start. */
const steadyMs = 10_000
const firstRestMs = 500
const longestRestMs = 10_000

export const begun: Decided = {
  state: { phase: 'starting', cause: { kind: 'begin' }, crashes: 0 },
  actions: [{ kind: 'start' }],
}

/** The transition of an event. A worker may take `patienceMs` to stop. */
export function decide(state: DevState, event: DevEvent, patienceMs: number): Decided {
  switch (state.phase) {
    case 'starting':
    case 'working':
      return withWorker(state, event, patienceMs)
    case 'stopping':
      return whileStopping(state, event)
    case 'waiting':
      return whileWaiting(state, event)
    case 'over':
      return { state, actions: [] }
  }
}

function withWorker(
  state: Extract<DevState, { phase: 'starting' | 'working' }>,
  event: DevEvent,
  patienceMs: number,
): Decided {
  const stop = [{ kind: 'stop' }, { kind: 'wait', ms: patienceMs }] as const
  switch (event.kind) {
    case 'working':
      if (state.phase === 'working') return { state, actions: [] }
      return {
        state: { ...state, phase: 'working' },
        actions: [{ kind: 'report', event: { event: 'working', cause: state.cause } }],
      }
    case 'changed':
      return { state: { phase: 'stopping', next: { kind: 'change', file: event.file } }, actions: stop }
    case 'interrupted':
      return {
        state: { phase: 'stopping', next: null },
        actions: [{ kind: 'report', event: { event: 'stopping' } }, ...stop],
      }
    case 'ended':
      return afterEnd(event.ended, state)
    case 'time':
      return { state, actions: [] }
  }
}

function afterEnd(ended: Ended, before: Extract<DevState, { phase: 'starting' | 'working' }>): Decided {
  const { cause } = before
  if (ended.code === usageExit) {
    return {
      state: { phase: 'waiting', until: 'change', crashes: 0 },
      actions: [{ kind: 'report', event: { event: 'ended', ended, cause, againInMs: null } }],
    }
  }
  const crashes = ended.livedMs >= steadyMs ? 1 : before.crashes + 1
  const ms = restMs(crashes)
  return {
    state: { phase: 'waiting', until: 'time', crashes },
    actions: [
      { kind: 'report', event: { event: 'ended', ended, cause, againInMs: ms } },
      { kind: 'wait', ms },
    ],
  }
}

function restMs(crashes: number): number {
  return crashes === 1 ? 0 : Math.min(longestRestMs, firstRestMs * 2 ** (crashes - 2))
}

function whileStopping(state: Extract<DevState, { phase: 'stopping' }>, event: DevEvent): Decided {
  switch (event.kind) {
    case 'time':
      return { state, actions: [{ kind: 'kill' }] }
    case 'ended':
      return state.next === null ? over() : started(state.next)
    case 'interrupted':
      if (state.next === null) return { state: { phase: 'over', isAtOnce: true }, actions: [{ kind: 'kill' }] }
      return { state: { phase: 'stopping', next: null }, actions: [{ kind: 'report', event: { event: 'stopping' } }] }
    case 'changed':
    case 'working':
      return { state, actions: [] }
  }
}

function whileWaiting(state: Extract<DevState, { phase: 'waiting' }>, event: DevEvent): Decided {
  switch (event.kind) {
    case 'changed':
      return started({ kind: 'change', file: event.file })
    case 'time':
      return state.until === 'time' ? started({ kind: 'crash' }, state.crashes) : { state, actions: [] }
    case 'interrupted':
      return over()
    case 'working':
    case 'ended':
      return { state, actions: [] }
  }
}

function started(cause: Cause, crashes = 0): Decided {
  return { state: { phase: 'starting', cause, crashes }, actions: [{ kind: 'start' }] }
}

function over(): Decided {
  return {
    state: { phase: 'over', isAtOnce: false },
    actions: [{ kind: 'report', event: { event: 'stopped' } }],
  }
}
