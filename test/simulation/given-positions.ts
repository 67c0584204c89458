// Which broadcast had which position of its topic, of all that there ever were: a mailbox knows a broadcast by its position, and
// outlives the topic.

import type { Broadcast } from '../../src/core/model/topic.ts'
import type { Violation } from '../../src/testing/invariants/index.ts'

export class GivenPositions {
  /** By topic and position: the time and the id with which it was sent. */
  private readonly sent = new Map<string, string>()

  /** Those that lay in a queue for the next run after the last call. */
  private open: ReadonlySet<string> = new Set()

  /** What is wrong with the broadcasts that are kept now; `isChore`: after a chore, which takes none of them away. */
  check(broadcasts: readonly Broadcast[], isChore: boolean): readonly Violation[] {
    const violations = broadcasts.flatMap((one) => this.given(one))
    const kept = new Set(broadcasts.map(placeOf))
    const lost = isChore ? [...this.open].filter((place) => !kept.has(place)) : []
    const isOpen = ({ delivery, takenBy }: Broadcast): boolean => delivery === 'one' && takenBy === null
    this.open = new Set(broadcasts.filter(isOpen).map(placeOf))
    const message = (place: string): string => `${place} lay in its queue, and went with a chore`
    return [
      ...violations,
      ...lost.map((place) => ({ name: 'queue_loses_nothing', runId: null, message: message(place) })),
    ]
  }

  private given(one: Broadcast): readonly Violation[] {
    const place = placeOf(one)
    const text = `${one.id} at ${one.at}`
    const before = this.sent.get(place) ?? text
    this.sent.set(place, text)
    if (before === text) return []
    return [{ name: 'position_given_once', runId: null, message: `${place} was given to ${before}, and to ${text}` }]
  }
}

function placeOf({ topic, position }: Broadcast): string {
  return `${position} of ${topic}`
}
