// Hints of other processes, at a bounded rate: the first hint is passed on at once, all that come within a moment after that
// together and each of them once, and of very many only that there are some.

import type { Clock } from '../../../core/runtime/ports.ts'
import type { Hint } from '../../../store.ts'

/** For how long hints gather after some were passed on. */
const pauseMs = 20
/** More types than these are not distinguished. */
const mostHints = 2_000

export class HintGate {
  private readonly clock: Pick<Clock, 'after'>
  private readonly pass: (hints: readonly Hint[]) => void
  private waiting = new Map<string, Hint>()
  private hasMore = false
  private isPausing = false

  constructor(clock: Pick<Clock, 'after'>, pass: (hints: readonly Hint[]) => void) {
    this.clock = clock
    this.pass = pass
  }

  readonly take = (hints: readonly Hint[]): void => {
    for (const hint of hints) {
      const name = nameOf(hint)
      if (this.waiting.size >= mostHints && !this.waiting.has(name)) this.hasMore = true
      else this.waiting.set(name, earlier(this.waiting.get(name), hint))
    }
    if (!this.isPausing) this.open()
  }

  private open(): void {
    this.isPausing = false
    if (this.waiting.size === 0) return
    const hints = [...this.waiting.values()]
    // As after a time without hints: every listener looks.
    if (this.hasMore) hints.push({ kind: 'ready', type: '' }, { kind: 'chore' })
    this.waiting = new Map()
    this.hasMore = false
    this.isPausing = true
    this.clock.after(pauseMs, () => this.open())
    this.pass(hints)
  }
}

function nameOf(hint: Hint): string {
  if (hint.kind === 'ready') return `ready ${hint.type}`
  return 'runId' in hint ? `${hint.kind} ${hint.runId}` : hint.kind
}

/** The first of two deadlines counts: a look at that time finds the next one. */
function earlier(one: Hint | undefined, other: Hint): Hint {
  return one?.kind === 'deadline' && other.kind === 'deadline' && one.at < other.at ? one : other
}
