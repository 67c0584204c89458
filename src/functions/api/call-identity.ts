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
  private steps: Map<string, Tally> | null = null
  private others: Map<string, Tally> | null = null

  constructor(prefix = '') {
    this.prefix = prefix
  }

  /** The identity of the next call of that name. Kinds are counted apart, so a step and a wait may share a name. */
  next(kind: ScopeKind, name: string): string {
    const tally =
      kind === 'step'
        ? tallyOf((this.steps ??= new Map<string, Tally>()), name, name)
        : tallyOf((this.others ??= new Map<string, Tally>()), `${kind} ${name}`, name)
    tally.count += 1
    this.nth = tally.count
    return tally.count === 1 ? this.prefix + tally.escaped : `${this.prefix}${tally.escaped}#${tally.count}`
  }

  child(name: string): Scope {
    return new Scope(`${this.next('branch', name)}/`)
  }
}

/** How many calls of a name there were. In a loop the name is escaped once. */
class Tally {
  count = 0
  readonly escaped: string

  constructor(name: string) {
    this.escaped = escapeName(name)
  }
}

function tallyOf(tallies: Map<string, Tally>, key: string, name: string): Tally {
  let tally = tallies.get(key)
  if (tally === undefined) tallies.set(key, (tally = new Tally(name)))
  return tally
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
