// The identity of a call: its name, and how many calls of that kind and name came before it in its scope. `charge` is the
// first, `charge#2` the second; inside `ctx.branch('eu', …)` they are `eu/charge` and `eu/charge#2`. Two calls of one run
// never share an identity, and the same call has the same one on every replay.

import { HoldfastError } from '../core/error.ts'
import { isPrintable } from '../core/printable.ts'

const longestName = 200

/** What the identities of the waits at the end of a run begin with: no call of a body has such a one. */
const endPrefix = '%end/'

export class Scope {
  private readonly prefix: string
  private readonly counts = new Map<string, number>()

  constructor(prefix = '') {
    this.prefix = prefix
  }

  /** The identity of the next call of that name. Kinds are counted apart, so a step and a wait may share a name. */
  next(kind: 'step' | 'wait' | 'value' | 'note' | 'branch', name: string): string {
    const key = `${kind} ${name}`
    const count = (this.counts.get(key) ?? 0) + 1
    this.counts.set(key, count)
    const escaped = escapeName(name)
    return count === 1 ? this.prefix + escaped : `${this.prefix}${escaped}#${count}`
  }

  child(name: string): Scope {
    return new Scope(`${this.next('branch', name)}/`)
  }
}

/** The identity of the wait for a child that must have ended before its parent does. */
export function endNameOf(runId: string): string {
  return endPrefix + runId
}

/** Tells whether it is the end of a run, and no call of the body, that waits. */
export function isEndName(name: string): boolean {
  return name.startsWith(endPrefix)
}

/** Keeps a name that contains our separators from looking like another call's identity. */
function escapeName(name: string): string {
  return /[%#/]/.test(name) ? name.replace(/%/g, '%25').replace(/#/g, '%23').replace(/\//g, '%2F') : name
}

/** Refuses names that could not be stored, shown or told apart. */
export function checkName(name: unknown, what: string): asserts name is string {
  if (typeof name === 'string' && name !== '' && name.length <= longestName && isPrintable(name)) return
  const shown = typeof name === 'string' ? JSON.stringify(name.slice(0, 40)) : typeof name
  throw new HoldfastError(
    'INVALID_NAME',
    `${what} needs a name: printable text of 1 to ${longestName} characters, the same on every run. Got ${shown}.`,
    { details: { name } },
  )
}
