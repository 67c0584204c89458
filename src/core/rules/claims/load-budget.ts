// How much one load hands out. Entries and messages are counted apart, in the order of the requests and of their pages: each
// goes on as long as less than the bound was handed out before it. So one item comes in any case, and a load is at most one
// item heavier than its bound.

import { utf8Length } from '../../text/bytes.ts'

export class LoadBudget {
  readonly mostBytes: number
  private bytes = 0

  constructor(mostBytes: number | undefined) {
    this.mostBytes = mostBytes ?? Number.POSITIVE_INFINITY
  }

  /** No bound: nothing need be measured. */
  get isOpen(): boolean {
    return this.mostBytes === Number.POSITIVE_INFINITY
  }

  get isReached(): boolean {
    return this.bytes >= this.mostBytes
  }

  /** Whether this many more bytes stay below the bound. */
  fits(bytes: number): boolean {
    return this.bytes + bytes < this.mostBytes
  }

  /** So much was handed out. */
  count(bytes: number): void {
    this.bytes += bytes
  }

  /** Hands out as many of the first of these as the bound allows. */
  take<Item>(items: readonly Item[], bytesOf: (item: Item) => number): readonly Item[] {
    if (this.isOpen) return items
    let taken = 0
    for (; taken < items.length && !this.isReached; taken += 1) this.count(bytesOf(items[taken] as Item))
    return taken === items.length ? items : items.slice(0, taken)
  }
}

/** The size of a payload: as many bytes as a database keeps it in. */
export function bytesOf({ data }: { readonly data: string | null }): number {
  return data === null ? 0 : utf8Length(data)
}

/** The bounds of one load. */
export interface LoadBudgets {
  readonly entries: LoadBudget
  readonly messages: LoadBudget
}

export function loadBudgets(mostBytes: number | undefined): LoadBudgets {
  return { entries: new LoadBudget(mostBytes), messages: new LoadBudget(mostBytes) }
}

/** Marks the answer as cut if the bound was reached: there may be more messages than these. */
export function cutBy({ messages }: LoadBudgets): { readonly cut?: true } {
  return messages.isReached ? { cut: true } : {}
}
