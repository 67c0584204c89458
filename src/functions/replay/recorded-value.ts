// A recorded value as the body sees it. One that cannot be read pauses the run.

import type { Entry } from '../../core/model/entry.ts'
import type { FrameState } from '../frame/frame-state.ts'
import { decodeAt } from './journal-text.ts'

export function readRecorded(state: FrameState, entry: Extract<Entry, { kind: 'recorded' | 'issued' }>): unknown {
  try {
    return decodeAt(state, entry.data, entry)
  } catch (error) {
    state.frame.unreadable(error, entry)
    throw error
  }
}
