// The effects of entries beyond the journal: messages that leave the mailbox with them, runs that they start, targets that
// the run begins or ceases to watch. They are kept until the entry is durable, because a refused batch is sent again.
//
// One transition carries the sum: a watch that is over before it was sent is never sent, a child whose end is no longer
// awaited is started without being watched, and one whose end is awaited meanwhile is started as watched: a store looks up
// watched runs before it starts any.

import { targetOf, type WaitTarget } from '../model/wait-target.ts'
import { startsSizeOf, type ChildStart, type Outbound } from '../model/transition.ts'

export interface Attachment {
  /** The id of the message that leaves the mailbox. */
  readonly takes?: string | null
  readonly starts?: readonly ChildStart[]
  readonly watches?: readonly WaitTarget[]
  readonly unwatches?: readonly WaitTarget[]
}

interface Attached {
  readonly seq: number
  readonly attachment: Attachment
}

/** Stands for an empty list until its first member: most entries have nothing attached. */
const none: never[] = []

export class Attachments {
  private list: Attached[] = none

  attach(seq: number, attachment: Attachment): void {
    const attached = { seq, attachment }
    if (this.list.length === 0) this.list = [attached]
    else this.list.push(attached)
  }

  /** Entries after that place will not be sent. */
  forgetAfter(seq: number): void {
    if (this.list.length > 0) this.list = this.list.filter((one) => one.seq <= seq)
  }

  /** Entries up to that place are durable. */
  settle(seq: number): void {
    if (this.list.length > 0) this.list = this.list.filter((one) => one.seq > seq)
  }

  /** The messages that are to leave the mailbox, as long as that is not durable. */
  get taken(): readonly string[] {
    return takenOf(this.list)
  }

  /** The approximate size in bytes of the attachments of each entry after that place that has any. */
  sizesAfter(place: number): ReadonlyMap<number, number> {
    if (this.list.length === 0) return weightless
    const later = this.list.filter(({ seq }) => seq > place)
    return new Map(later.map(({ seq, attachment }) => [seq, sizeOfAttached(attachment)]))
  }

  /** The attachments of a transition that appends the entries between two places. */
  between(after: number, upTo: number): { readonly takes: readonly string[]; readonly outbound: Outbound | null } {
    if (this.list.length === 0) return nothing
    const list = this.list.filter(({ seq }) => seq > after && seq <= upTo)
    return { takes: takenOf(list), outbound: outboundOf(list) }
  }
}

const weightless: ReadonlyMap<number, number> = new Map()
const nothing = { takes: none, outbound: null } as const

/** The approximate size in bytes of the attachments of an entry. */
export function sizeOfAttached({ starts }: Attachment): number {
  return starts === undefined ? 0 : startsSizeOf(starts)
}

function takenOf(list: readonly Attached[]): readonly string[] {
  const taken: string[] = []
  for (const { attachment } of list) if (typeof attachment.takes === 'string') taken.push(attachment.takes)
  return taken
}

function outboundOf(list: readonly Attached[]): Outbound | null {
  const starts = new Map<string, ChildStart>()
  const watches = new Map<string, WaitTarget>()
  const unwatches = new Map<string, WaitTarget>()
  for (const { attachment } of list) {
    for (const watched of attachment.unwatches ?? none) {
      const key = waitTargetKey(watched)
      const start = watched.kind === 'run' ? starts.get(watched.runId) : undefined
      if (start !== undefined) starts.set(start.run.id, { ...start, awaited: false })
      else if (!watches.delete(key)) unwatches.set(key, watched)
    }
    for (const start of attachment.starts ?? none) starts.set(start.run.id, start)
    for (const watched of attachment.watches ?? none) {
      const start = watched.kind === 'run' ? starts.get(watched.runId) : undefined
      if (start !== undefined) starts.set(start.run.id, { ...start, awaited: true })
      else watches.set(waitTargetKey(watched), watched)
    }
  }
  if (starts.size + watches.size + unwatches.size === 0) return null
  return { starts: [...starts.values()], watches: [...watches.values()], unwatches: [...unwatches.values()] }
}

/** A key that distinguishes the targets that a run watches. */
export function waitTargetKey(watched: WaitTarget): string {
  return `${watched.kind} ${targetOf(watched)}`
}
