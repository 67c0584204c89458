// Planted bugs of deciders: only seeds that have accounts can show them.

import { KnownCommands } from '../../src/deciders/fold/known-commands.ts'
import { Timers, unkeyed, type Timer } from '../../src/deciders/fold/timers.ts'
import { firstAccountSeed } from './accounts.ts'
import { inPlaceOf, onCommit, type Canary } from './planting.ts'

/** A decision that is sent again because its answer was lost goes wherever the journal is by now. */
const inputTwice = onCommit((transition, row) => {
  const { guard, id } = transition
  const isRepeated = guard.lease === null && row.entries[guard.seq]?.transition === id
  return isRepeated ? { ...transition, id: `${id} again`, guard: { ...guard, seq: row.seq } } : transition
})

interface Setter {
  set(timer: Timer): void
  get(name: string): Timer | undefined
}

// eslint-disable-next-line typescript/unbound-method -- it is called with the timers that are meant
const { set, firstDue } = Timers.prototype

/** The timer that has the key stays, under another name. */
function keepBoth(this: Setter & Timers, timer: Timer): void {
  const before = this.get(timer.name)
  const isReplaced = before !== undefined && !timer.name.startsWith(unkeyed)
  if (isReplaced) set.call(this, { ...before, name: `${timer.name}~` })
  set.call(this, timer)
}

function fireEarly(this: Timers, now: number): ReturnType<Timers['firstDue']> {
  return firstDue.call(this, now + 40)
}

export const accountCanaries: readonly Canary[] = [
  {
    name: 'input-twice-after-lost-reply',
    bug: 'a decision whose answer was lost is written twice',
    budget: 60,
    from: firstAccountSeed,
    mutation: inputTwice,
  },
  {
    name: 'command-answered-anew',
    bug: 'a command that is repeated is decided again',
    budget: 60,
    from: firstAccountSeed,
    mutation: { engine: inPlaceOf(KnownCommands.prototype, 'find', () => null) },
  },
  {
    name: 'replaced-timer-fires',
    bug: 'a timer that was replaced fires, too',
    budget: 60,
    from: firstAccountSeed,
    mutation: { engine: inPlaceOf(Timers.prototype, 'set', keepBoth) },
  },
  {
    name: 'timer-fires-early',
    bug: 'a timer of a decider fires before its time',
    budget: 60,
    from: firstAccountSeed,
    mutation: { engine: inPlaceOf(Timers.prototype, 'firstDue', fireEarly) },
  },
  {
    name: 'timer-forgotten',
    bug: 'the row does not say when the next timer of an instance is due',
    budget: 60,
    from: firstAccountSeed,
    mutation: { engine: inPlaceOf(Timers.prototype, 'nextDue', () => null) },
  },
]
