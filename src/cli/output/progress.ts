// The progress of a long command: a bar on a terminal, a line from time to time without one, and nothing for a program.

import type { Io } from '../io.ts'
import type { Printer } from './printer.ts'
import { amount, cut } from './text.ts'

const drawEveryMs = 100
const sayEveryMs = 10_000
const barColumns = 24

export class Progress {
  private readonly io: Io
  private readonly printer: Printer
  private readonly total: number
  /** The verb for a line, as in "replayed". */
  private readonly did: string
  private printedAt: number
  private drawn = 0

  constructor(io: Io, printer: Printer, total: number, did = 'Replayed') {
    this.io = io
    this.printer = printer
    this.total = total
    this.did = did
    this.printedAt = io.now()
  }

  /** Shows how many are done, with a remark. */
  async at(done: number, remark: string): Promise<void> {
    const { io, printer } = this
    if (printer.isJson) return
    const everyMs = io.stderr.isTerminal ? drawEveryMs : sayEveryMs
    if (io.now() - this.printedAt < everyMs) return
    this.printedAt = io.now()
    const text = `${done.toLocaleString('en-GB')} of ${amount(this.total, 'run')}${remark === '' ? '' : `, ${remark}`}`
    if (io.stderr.isTerminal) await this.draw(`${this.bar(done)} ${text}`)
    else await printer.note(`${this.did} ${text}.`)
  }

  /** Removes the bar. */
  async end(): Promise<void> {
    if (this.drawn > 0) await this.printer.redraw('', this.drawn)
    this.drawn = 0
  }

  private bar(done: number): string {
    const full = Math.min(barColumns, Math.round((done / Math.max(1, this.total)) * barColumns))
    return '█'.repeat(full) + '·'.repeat(barColumns - full)
  }

  private async draw(line: string): Promise<void> {
    // The last column stays free: some terminals go on to the next line when it is written.
    const shown = cut(line, Math.min(this.io.stderr.columns, 200) - 1)
    await this.printer.redraw(shown, this.drawn)
    this.drawn = Math.max(this.drawn, shown.length)
  }
}
