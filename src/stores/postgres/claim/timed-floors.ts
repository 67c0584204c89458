// Where claims look for the next run that comes due. Most entries of the index of timed runs belong to runs that have come
// due or were woken before: dead ones, while a transaction holds an old snapshot, on both sides of the present. So a claim
// remembers the results of the last ones:
//
//   behind   runs that came due before the last look have been made ready since; a claim begins five seconds before that look,
//            for the reason in `claim-floors.ts`
//   ahead    the first run that will come due. It is looked for as far as it takes if there is one, or a hint of one, and
//            `walk-pace.ts` allows it; otherwise in the next ten seconds only, longer than a worker sleeps between two claims, and
//            a run that a look saw beyond that is remembered
//
// So a run comes due late only if its transaction was open for longer than the slack and no hint reported it: by the time
// between two claims from the front, a minute at most.

import type { ClaimSelector } from '../../../store.ts'
import { slackMs, type Walking } from './claim-floors.ts'
import type { DetailedHint } from '../execution.ts'

/** Longer than a worker sleeps between two claims. */
export const aheadMs = 10_000

/** Of so many lists of types claims are remembered: a worker has one, and leaves some types out now and then. */
const mostLists = 100

/** The part of the timed runs that a claim looks at. */
export interface TimedLook {
  /** Nothing that is due before this is left. */
  readonly since: number
  /** How far ahead of now it looks; null for as far as it takes. */
  readonly aheadMs: number | null
}

interface Memory {
  readonly names: ReadonlySet<string>
  since: number
  next: number | null
  /** One may have been added anywhere. */
  isStale: boolean
}

const everything: TimedLook = { since: -1, aheadMs: null }

export class TimedFloors {
  private readonly memories = new Map<string, Memory>()

  /** The part that a claim of these types looks at now. */
  look(shard: number, types: readonly ClaimSelector[], { isFront, mayWalk, cutAt = null }: Walking): TimedLook {
    const names = types.map(nameOf)
    const list = listOf(shard, names)
    const memory = this.memories.get(list)
    if (memory === undefined) {
      if (this.memories.size >= mostLists) this.memories.clear()
      const isCut = cutAt !== null
      const since = isCut ? cutAt - slackMs : everything.since
      this.memories.set(list, { names: new Set(names), since, next: null, isStale: isCut })
      return isCut ? { since, aheadMs } : everything
    }
    const { since, next, isStale } = memory
    const isDueWalk = mayWalk && (isStale || next !== null)
    if (!isFront && !isDueWalk) return { since, aheadMs }
    memory.isStale = false
    return isFront ? everything : { since, aheadMs: null }
  }

  /** Remembers the first that such a look saw, and answers when the next one comes due. */
  saw(
    shard: number,
    types: readonly ClaimSelector[],
    look: TimedLook,
    { due, now }: { readonly due: number | null; readonly now: number },
  ): number | null {
    const memory = this.memories.get(listOf(shard, types.map(nameOf)))
    if (memory === undefined) return due
    // Runs that would come due in the examined time have gone, or they would have been seen.
    const known = memory.next !== null && memory.next > now + aheadMs ? memory.next : null
    const next = look.aheadMs === null ? due : (due ?? known)
    // Due runs that stay, because another transaction has locked them, are looked at again.
    memory.since = Math.min(now - slackMs, due ?? now)
    memory.next = next
    return next
  }

  /** A claim of these types failed, and its result is unknown. */
  failed(shard: number, types: readonly ClaimSelector[]): void {
    this.memories.delete(listOf(shard, types.map(nameOf)))
  }

  /** Some may come due sooner than the remembered time. */
  notice(hints: readonly DetailedHint[]): void {
    if (this.memories.size === 0) return
    for (const hint of hints) {
      if (hint.kind !== 'ready' || hint.isTimed === false) continue
      const { type, version, due } = hint
      for (const memory of this.memories.values()) {
        if (due === undefined || version === undefined) memory.isStale = true
        else if (memory.names.has(nameOf({ type, version }))) memory.next = Math.min(memory.next ?? due, due)
      }
    }
  }
}

function nameOf({ type, version }: Pick<ClaimSelector, 'type' | 'version'>): string {
  return `${version} ${type}`
}

/** In any order: a worker names the types in turns. */
function listOf(shard: number, names: readonly string[]): string {
  return `${shard} ${[...names].sort().join(' ')}`
}
