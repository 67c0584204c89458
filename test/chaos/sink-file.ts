// What the sink of effects writes down, line by line, and what can be read from it while it goes on writing.

import { closeSync, openSync, readSync } from 'node:fs'
import type { Effect } from './testbed.ts'

export type SinkLine =
  | ({ readonly event: 'begin'; readonly at: number } & Omit<Effect, 'began' | 'ended'>)
  | { readonly event: 'end'; readonly at: number; readonly mark: string }

/** Reads on where it stopped, so that looking again and again costs no more than looking once. */
export class SinkFile {
  private readonly path: string
  private readonly found: Effect[] = []
  /** Where the effect of a mark stands. */
  private readonly places = new Map<string, number>()
  private at = 0

  constructor(path: string) {
    this.path = path
  }

  /** Everything that is written down so far, in the order in which it began. */
  effects(): readonly Effect[] {
    const text = this.unread()
    // The last line may be half written: the rest is read next time.
    const whole = text.slice(0, text.lastIndexOf('\n') + 1)
    this.at += Buffer.byteLength(whole)
    for (const line of whole.split('\n')) if (line !== '') this.take(JSON.parse(line) as SinkLine)
    return [...this.found]
  }

  private take(line: SinkLine): void {
    const place = this.places.get(line.mark)
    if (line.event === 'begin') {
      if (place !== undefined) throw new Error(`The sink has given the mark ${line.mark} twice.`)
      const { event: _, at, ...effect } = line
      this.places.set(line.mark, this.found.push({ ...effect, began: at, ended: null }) - 1)
      return
    }
    const effect = place === undefined ? undefined : this.found[place]
    if (effect === undefined || place === undefined) throw new Error(`${line.mark} ends and never began.`)
    this.found[place] = { ...effect, ended: effect.ended ?? line.at }
  }

  private unread(): string {
    const file = openSync(this.path, 'a+')
    const chunks: Buffer[] = []
    try {
      for (let at = this.at; ;) {
        const chunk = Buffer.alloc(1 << 20)
        const size = readSync(file, chunk, 0, chunk.length, at)
        if (size === 0) return Buffer.concat(chunks).toString()
        chunks.push(chunk.subarray(0, size))
        at += size
      }
    } finally {
      closeSync(file)
    }
  }
}
