// Loggers for tests: a silent one, and one that records.

import type { Logger } from '../core/runtime/ports.ts'

export interface LogLine {
  readonly level: keyof Logger
  readonly message: string
  readonly details: Readonly<Record<string, unknown>>
}

export interface RecordingLogger extends Logger {
  /** The log lines, oldest first. */
  readonly lines: readonly LogLine[]
  /** The messages of one level, oldest first. */
  messages(level: keyof Logger): readonly string[]
  clear(): void
}

export const silentLogger: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
}

/** Makes a logger that keeps every line for a test to look at. */
export function createRecordingLogger(): RecordingLogger {
  const lines: LogLine[] = []
  const at =
    (level: keyof Logger): Logger[keyof Logger] =>
    (message, details = {}) =>
      void lines.push({ level, message, details })
  return {
    lines,
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    messages: (level) => lines.filter((line) => line.level === level).map(({ message }) => message),
    clear: () => void lines.splice(0),
  }
}
