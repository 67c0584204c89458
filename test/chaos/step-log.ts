// What really happened: the bodies of steps write a line when they begin and when they end, into one file that all
// processes append to. It is kept apart from the journal, so that the journal can be judged by it.

import { closeSync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs'

export interface Execution {
  readonly run: string
  readonly step: string
  readonly attempt: number
  readonly pid: number
  /** Distinguishes this execution from every other one. */
  readonly mark: string
  readonly began: number
  /** Null if its process died, or has not come to it yet. */
  readonly ended: number | null
}

type Event = 'begin' | 'end'

interface Line extends Omit<Execution, 'began' | 'ended'> {
  readonly event: Event
  readonly at: number
}

export class StepLog {
  private readonly file: number

  constructor(path: string) {
    this.file = openSync(path, 'a')
  }

  /** Writes that an execution begins; what it returns writes that it has ended. */
  begin(run: string, step: string, attempt: number): { readonly mark: string; readonly end: () => void } {
    const mark = `${process.pid}-${Math.random().toString(36).slice(2)}`
    const write = (event: Event): void => {
      const line: Line = { run, step, attempt, pid: process.pid, mark, event, at: Date.now() }
      writeSync(this.file, `${JSON.stringify(line)}\n`)
      fsyncSync(this.file)
    }
    write('begin')
    return { mark, end: () => write('end') }
  }

  close(): void {
    closeSync(this.file)
  }
}

/** The process that a mark comes from. */
export function pidOf(mark: string): number {
  return Number(mark.split('-')[0])
}

/** Everything that was executed, in the order in which it began. */
export function readExecutions(path: string): readonly Execution[] {
  // The last line may be half written: its process was killed, or is about to write the rest.
  const lines = readFileSync(path, { encoding: 'utf8', flag: 'a+' }).split('\n').slice(0, -1)
  const found = new Map<string, Execution>()
  for (const text of lines) {
    const { event, at, ...line } = JSON.parse(text) as Line
    const known = found.get(line.mark)
    found.set(line.mark, known === undefined ? { ...line, began: at, ended: null } : { ...known, ended: at })
    if ((known === undefined) !== (event === 'begin')) throw new Error(`The log of steps is out of order: ${text}`)
  }
  return [...found.values()]
}
