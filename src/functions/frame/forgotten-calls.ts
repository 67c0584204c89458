// The warnings of a body that has returned or begins anew, about calls that it never awaited.

import { isEndName } from '../api/call-identity.ts'
import { warnOfForgotten, warnOfSwallowed, warnOfUnbegun, type BodyEnd } from '../api/misuse.ts'
import { foundCalls } from '../replay/drift.ts'
import type { Settler } from '../replay/settler.ts'
import type { Waits } from '../waits/waits.ts'
import type { FrameState } from './frame-state.ts'

/** Warns of calls that were never awaited. */
export function warnOfForgottenCalls({ host, run, body }: FrameState, settler: Settler, waits: Waits): void {
  const { unawaited, unbegun } = waits
  const unheard = settler.forgotten()
  if (unheard.length === 0 && unawaited.length === 0 && unbegun.length === 0) return
  const calls = foundCalls([...unheard, ...unawaited])
  const forgotten = [...calls, ...unbegun].filter(({ name }) => !isEndName(name))
  for (const { failure } of unawaited) if (failure !== null) warnOfUnbegun(host, run, failure.error)
  if (forgotten.length > 0) warnOfForgotten(host, run, body.places.fill(forgotten))
}

/** Warns of calls that failed without being awaited, when the steps have ended that the body did not await. */
export function warnOfSwallowedFailures({ host, run }: FrameState, settler: Settler, how: BodyEnd): void {
  const swallowed = settler.takeSwallowed()
  if (swallowed.length > 0) warnOfSwallowed(host, run, swallowed, how)
}
