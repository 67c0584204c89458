// The commands that an instance has decided, so that a repetition gets the first outcome: the last thousand by their ids, and,
// for deciders that ask for it, the last inputs by their content. Windows are cut when entries are durable, so that what is
// taken back leaves them as they were.

import type { KnownCommand } from '../../core/definition/decider-model.ts'
import type { Moment } from './timers.ts'
import type { UndoLog } from './undo-log.ts'

/** How many command ids an instance remembers. */
export const mostCommands = 1_000

/** An input that is remembered by its content. */
export interface KnownContent {
  readonly command: KnownCommand
  readonly since: Moment
}

export class KnownCommands {
  readonly byId = new Map<string, KnownCommand>()
  readonly byContent = new Map<string, KnownContent>()
  private readonly log: UndoLog
  private readonly dedup: { readonly last: number; readonly withinMs: number } | null

  constructor(log: UndoLog, dedup: KnownCommands['dedup']) {
    this.log = log
    this.dedup = dedup
  }

  add(
    command: KnownCommand,
    { id, content, since }: { id: string | null; content: string | null; since: Moment },
  ): void {
    if (id !== null) this.log.set(this.byId, id, command)
    if (content !== null) {
      // Last in the order of the map, so that the window keeps it longest.
      this.log.set(this.byContent, content, null)
      this.log.set(this.byContent, content, { command, since })
    }
  }

  /** The command that was decided under this id, or, within the window, with this content. */
  find(id: string | null, content: string | null, now: number): KnownCommand | null {
    const known = id === null ? undefined : this.byId.get(id)
    if (known !== undefined) return known
    const same = content === null ? undefined : this.byContent.get(content)
    if (same === undefined || this.dedup === null) return null
    return now - (same.since.at ?? now) <= this.dedup.withinMs ? same.command : null
  }

  /** Cuts the windows. */
  cut(): void {
    cutTo(this.byId, mostCommands)
    cutTo(this.byContent, this.dedup?.last ?? 0)
  }
}

function cutTo(map: Map<string, unknown>, most: number): void {
  for (const key of map.keys()) {
    if (map.size <= most) return
    map.delete(key)
  }
}
