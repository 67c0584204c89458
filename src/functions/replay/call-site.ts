// Where in the code a call of the body stands. A stack costs more than the call itself, so one is taken only the first time
// that a workflow makes a call of that name, of a loop the first nine times; and for every call once code and journal
// disagree: then the body is replayed once more, and this time each call leaves its place here.

import type { FoundCall } from '../../core/model/entry.ts'
import type { Call } from '../frame/body-call.ts'

/** At most this many calls of one name, as in a loop, are looked at. */
const mostOfName = 9

/** The places of at most this many names are remembered: names may be made anew for each run. */
const mostPlaces = 1_000

/** Calls that are none of these have the kind that a warning uses for them. */
type CallKind = Call['kind'] | 'other'

/** Where the calls of a workflow stand, each as it was first seen in this process. */
export class CallPlaces {
  // One for each kind: no text is made of kind and name with every call.
  private readonly places = {
    step: new Map<string, string | null>(),
    wait: new Map<string, string | null>(),
    send: new Map<string, string | null>(),
    other: new Map<string, string | null>(),
  }

  /** Records the place of a call whose method is under way, the nth of the name that the body uses. */
  note<Target extends object>(kind: CallKind, name: string, nth: number, target: Target, method: keyof Target): void {
    const places = this.places[kind]
    if (nth > mostOfName || places.size >= mostPlaces || places.has(name)) return
    places.set(name, callerOf(target, method))
  }

  /** The same calls, each with its place as far as that is known. */
  fill(calls: readonly FoundCall[]): readonly FoundCall[] {
    return calls.map((call) => ({ ...call, place: call.place ?? this.placeOf(call) }))
  }

  /** A call that was not seen under its own name may have been seen under that of the first of its kind. */
  placeOf({ kind, name }: { readonly kind: CallKind; readonly name: string }): string | null {
    const first = name.replace(/#\d+$/, '').replace(/^.*\//, '')
    return this.places[kind].get(name) ?? this.places[kind].get(first) ?? null
  }
}

export class CallSites {
  private readonly onEntered: (call: Call) => void

  constructor(onEntered: (call: Call) => void) {
    this.onEntered = onEntered
  }

  /** The place from which a method, which must be under way, was called; null if it is not known. */
  find<Target extends object>(target: Target, method: keyof Target): string | null {
    return callerOf(target, method)
  }

  entered(call: Call): void {
    this.onEntered(call)
  }
}

function callerOf<Target extends object>(target: Target, method: keyof Target): string | null {
  const holder: { stack?: unknown } = {}
  Error.captureStackTrace(holder, target[method] as () => unknown)
  return typeof holder.stack === 'string' ? placeIn(holder.stack) : null
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
