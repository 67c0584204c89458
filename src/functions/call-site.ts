// Where in the code a call of the body stands. A stack costs more than the call itself, so none is taken until code and
// journal disagree: then the body is replayed once more, and this time each call leaves its place here.

import type { Call } from './call.ts'

export class CallSites {
  private readonly onEntered: (call: Call) => void

  constructor(onEntered: (call: Call) => void) {
    this.onEntered = onEntered
  }

  /** The place from which a method, which must be under way, was called; null if it is not known. */
  find<Target extends object>(target: Target, method: keyof Target): string | null {
    const holder: { stack?: unknown } = {}
    Error.captureStackTrace(holder, target[method] as () => unknown)
    return typeof holder.stack === 'string' ? placeIn(holder.stack) : null
  }

  entered(call: Call): void {
    this.onEntered(call)
  }
}

const named = /^\s*at .*? \((.+:\d+:\d+)\)$/
const bare = /^\s*at (?:async )?(.+:\d+:\d+)$/

/** The file, line and column of the first frame of a stack. */
export function placeIn(stack: string): string | null {
  for (const line of stack.split('\n')) {
    const place = (named.exec(line) ?? bare.exec(line))?.[1]
    if (place !== undefined) return readable(place)
  }
  return null
}

function readable(place: string): string {
  if (!place.startsWith('file://')) return place
  const path = place.slice('file://'.length)
  try {
    return decodeURI(path)
  } catch {
    return path
  }
}
