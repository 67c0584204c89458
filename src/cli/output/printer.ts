// The output of a command: answers go to standard output, notes and errors to standard error. With --json every answer is a
// JSON document on one line. Nothing else writes, so that the terminal interprets only our own colours.

import { isHoldfastError } from '../../core/errors/error.ts'
import type { Logger } from '../../core/runtime/ports.ts'
import { quotedText, visible } from '../../core/text/printable.ts'
import type { Io } from '../io.ts'
import { stackLines } from './error-lines.ts'
import { visibleLines } from './pause-lines.ts'
import { jsonLine, messageOf } from './plain-json.ts'
import { cut, displayed, padEnd, painter, type Paint } from './text.ts'

/** A message may quote a megabyte of argument. */
const longestMessage = 4_000

export class Printer {
  readonly isJson: boolean
  readonly isVerbose: boolean
  readonly paint: Paint
  /** How wide a line of the answer may be. */
  readonly columns: number
  private readonly io: Io
  private readonly paintNote: Paint

  constructor(io: Io, options: { readonly isJson: boolean; readonly isVerbose: boolean }) {
    this.io = io
    this.isJson = options.isJson
    this.isVerbose = options.isVerbose
    this.paint = painter(io.stdout, io.env)
    this.paintNote = painter(io.stderr, io.env)
    this.columns = io.stdout.columns
  }

  /** Lines of an answer. Line breaks inside one are shown escaped. */
  async lines(lines: readonly string[]): Promise<void> {
    if (lines.length > 0) await this.io.stdout.write(lines.map((line) => `${displayed(line)}\n`).join(''))
  }

  /** An answer for a program to read. Its errors have their stacks with --verbose. */
  json(document: unknown): Promise<void> {
    return this.lines([this.jsonLine(document)])
  }

  /** Prints the same answer for a program or for a person. */
  async answer(document: unknown, ...lines: readonly string[]): Promise<void> {
    await (this.isJson ? this.json(document) : this.lines(lines))
  }

  /** A note, for a person only. */
  async note(text: string): Promise<void> {
    if (!this.isJson) await this.aside(this.paintNote('dim', text))
  }

  /** A question, or a line that must be seen. */
  async aside(text: string): Promise<void> {
    await this.io.stderr.write(`${displayed(text)}\n`)
  }

  /** Replaces the line that was drawn last, which has that many columns. */
  async redraw(text: string, columns: number): Promise<void> {
    await this.io.stderr.write(`\r${displayed(padEnd(text, columns))}${text === '' ? '\r' : ''}`)
  }

  async error(error: unknown): Promise<void> {
    const { code, family, message, details } = describe(error)
    if (this.isJson) {
      const traced = this.isVerbose ? { stack: stackOf(error) } : {}
      await this.aside(this.jsonLine({ error: { code, family, message, details, ...traced } }))
    } else {
      const [first = '', ...more] = linesOf(error, message)
      const mark = this.paintNote('dim', `(${code})`)
      await this.aside(`${this.paintNote('red', 'error:')} ${first}${more.length === 0 ? ` ${mark}` : ''}`)
      for (const [at, line] of more.entries()) await this.aside(`  ${line}${at === more.length - 1 ? ` ${mark}` : ''}`)
      for (const line of this.stackLines(error)) await this.aside(this.paintNote('dim', line))
    }
  }

  /** Where an error was thrown, and its causes: only with --verbose. */
  stackLines(error: unknown): readonly string[] {
    return this.isVerbose ? stackLines(error) : []
  }

  /** The engine's log, as notes. Debug lines and stacks only with --verbose. */
  logger(): Logger {
    const log =
      (level: keyof Logger) =>
      (message: string, details: Readonly<Record<string, unknown>> = {}): void => {
        const failed = 'error' in details && !message.includes(messageOf(details['error']))
        const why = (failed ? `: ${messageOf(details['error'])}` : '') + noteOfBody(message, details)
        const [first = '', ...more] = this.isJson
          ? [this.jsonLine({ level, message, details })]
          : [...linesOf(details['error'], `${level}: ${message}${why}`), ...this.stackLines(details['error'])]
        for (const line of [first, ...more.map((line) => `  ${line}`)]) {
          // A closed output must not stop the work.
          this.aside(level === 'error' || level === 'warn' ? this.warning(line) : line).catch(() => undefined)
        }
      }
    const silent = (): void => undefined
    return {
      debug: this.isVerbose ? log('debug') : silent,
      info: log('info'),
      warn: log('warn'),
      error: log('error'),
    }
  }

  private jsonLine(document: unknown): string {
    return jsonLine(document, { withStacks: this.isVerbose })
  }

  private warning(line: string): string {
    return this.isJson ? line : this.paintNote('yellow', line)
  }
}

/** A line of `ctx.log` names neither its run nor its data in the message: both are appended. */
function noteOfBody(message: string, { run, type, data }: Readonly<Record<string, unknown>>): string {
  const shownData = data === undefined ? '' : ` ${jsonLine(data)}`
  const isNamed = typeof run !== 'string' || typeof type !== 'string' || message.includes(run)
  return shownData + (isNamed ? '' : ` (run ${run} of ${quotedText(type)})`)
}

interface Described {
  readonly code: string
  readonly family: string
  readonly message: string
  readonly details: Readonly<Record<string, unknown>>
}

function describe(error: unknown): Described {
  if (isHoldfastError(error)) {
    const { code, family, message, details } = error
    return { code, family, message, details }
  }
  return { code: 'UNEXPECTED', family: 'unexpected', message: messageOf(error), details: {} }
}

/** The diff of a drift has lines of ours; any other message may quote anything, and is one line. */
function linesOf(error: unknown, message: string): readonly string[] {
  const text = cut(message, longestMessage)
  return isHoldfastError(error, 'DRIFT') ? visibleLines(text) : [cut(visible(message), longestMessage)]
}

function stackOf(error: unknown): string | null {
  const stack = error instanceof Error ? error.stack : undefined
  return typeof stack === 'string' ? stack : null
}
