// A wait of a body as its frame takes it: which call it becomes when it begins, and when it is awaited.

import { never } from '../api/call-promise.ts'
import type { FrameParts } from '../frame/frame-parts.ts'
import { awaitBegun, beginWait, registerWait, type NewWait } from './register-wait.ts'
import type { WaitCase } from './wait-case.ts'
import type { WaitFrame } from './wait.ts'

export interface CallIdentity {
  readonly name: string
  /** Where in the code it stands; null unless that is asked for. */
  readonly place: string | null
}

export function waitFrameOf(
  { state, waits }: FrameParts,
  { name, place }: CallIdentity,
  refusal: () => Error | null,
): WaitFrame {
  const made = (cases: readonly WaitCase[]): NewWait => ({ name, cases, place })
  return {
    refusal,
    made: (wait) => waits.add(wait),
    offered: () => waits.offered({ kind: 'wait', name, place }),
    taken: () => waits.taken(name),
    begin: (cases) => beginWait(waits, made(cases)),
    await: (cases, begun) => {
      if (!state.admits() || state.hasBodyEnded) return never()
      return begun === null ? registerWait(waits, made(cases)) : awaitBegun(waits, begun)
    },
  }
}
