// The identity of a call: its name, and how many calls of that kind and name came before it in its scope. `charge` is the
// first, `charge#2` the second; inside `ctx.branch('eu', …)` they are `eu/charge` and `eu/charge#2`. Two calls of one run
// never share an identity, and the same call has the same one on every replay.

import { shown } from '../../core/text/suggest.ts'
import { HoldfastError } from '../../core/errors/error.ts'
import { isPrintable } from '../../core/text/printable.ts'

const longestName = 200

/** The prefix of the identities of the waits at the end of a run: no call of a body has it. */
const endPrefix = '%end/'

type ScopeKind = 'step' | 'wait' | 'send' | 'value' | 'note' | 'branch'

export class Scope {
  /** How many calls of its kind and name the last one was, itself included. */
  nth = 0
  private readonly prefix: string
  // Steps are counted by their names alone: no text is made of kind and name with each of them.
  private steps: Map<string, number> | null = null
  private others: Map<string, number> | null = null

  constructor(prefix = '') {
    this.prefix = prefix
  }

  /** The identity of the next call of that name. Kinds are counted apart, so a step and a wait may share a name. */
  next(kind: ScopeKind, name: string): string {
    const nth =
      kind === 'step' ? this.count((this.steps ??= new Map<string, number>()), name) : this.countOther(kind, name)
    const escaped = escapeName(name)
    return nth === 1 ? this.prefix + escaped : `${this.prefix}${escaped}#${nth}`
  }

  private countOther(kind: ScopeKind, name: string): number {
    return this.count((this.others ??= new Map<string, number>()), `${kind} ${name}`)
  }

  private count(counts: Map<string, number>, key: string): number {
    this.nth = (counts.get(key) ?? 0) + 1
    counts.set(key, this.nth)
    return this.nth
  }

  child(name: string): Scope {
    return new Scope(`${this.next('branch', name)}/`)
  }
}

/** The identity of the wait for a child that must have ended before its parent does. */
export function endNameOf(runId: string): string {
  return endPrefix + runId
}

/** Whether it is the end of a run, and no call of the body, that waits. */
export function isEndName(name: string): boolean {
  return name.startsWith(endPrefix)
}

/** Keeps a name that contains our separators from looking like another call's identity. */
function escapeName(name: string): string {
  return /[%#/]/.test(name) ? name.replace(/%/g, '%25').replace(/#/g, '%23').replace(/\//g, '%2F') : name
}

/** Refuses names that could not be stored, shown or distinguished. */
export function checkName(name: unknown, what: string): asserts name is string {
  if (typeof name === 'string' && name !== '' && name.length <= longestName && isPrintable(name)) return
  throw new HoldfastError(
    'INVALID_NAME',
    `${what} needs a name: printable text of 1 to ${longestName} characters, the same on every run. Got ${shown(name)}.`,
    { details: { name } },
  )
}
