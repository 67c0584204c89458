// The surroundings of the command line: arguments, environment, three streams and signals, as one object. All other code
// takes this object, so that a test can provide its own; only main.ts makes one of the real process.

export interface Io {
  /** The arguments, without the runtime and the script. */
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
  readonly stdout: Output
  readonly stderr: Output
  readonly stdin: AsyncIterable<string | Uint8Array>
  /** Whether it is a terminal, so that a question can be asked. */
  readonly isInteractive: boolean
  readonly now: () => number
  /** Calls back on SIGINT and SIGTERM, until the returned function is called. */
  readonly onSignal: (listener: (signal: ProcessSignal) => void) => () => void
  /** How this program was started, so that it can start itself again. */
  readonly program: Program
  /** The process that started this one with a channel between the two; null if there is none. */
  readonly supervisor: Supervisor | null
}

export interface Program {
  /** The path of the runtime. */
  readonly runtime: string
  /** The options of the runtime itself, such as `--import`. */
  readonly options: readonly string[]
  /** The path of the script. */
  readonly script: string
}

export interface Supervisor {
  readonly send: (message: object) => void
  /**
   * Calls back when the channel has closed: the parent has released this process, or is gone. At once if it has closed
   * already.
   */
  readonly onGone: (listener: () => void) => void
}

export interface Output {
  readonly isTerminal: boolean
  /** How wide a line may be; Infinity without a terminal. */
  readonly columns: number
  /** Settles when there is room for more. Rejects with OutputClosed when the reader is gone. */
  readonly write: (text: string) => Promise<void>
}

export type ProcessSignal = 'SIGINT' | 'SIGTERM'

/** The exit code that a shell expects of a process that a signal ended. */
export const signalExits: Readonly<Record<ProcessSignal, number>> = { SIGINT: 130, SIGTERM: 143 }

/** The reader of our output has closed the pipe, as `head` does. It is not a failure. */
export class OutputClosed extends Error {
  override readonly name = 'OutputClosed'
}

/**
 * The whole text of a stream; null if it is longer than `most`, in which case no more is read. Throws a TypeError if it is not
 * UTF-8: characters would be replaced without a word.
 */
export async function readAll(stream: Io['stdin'], most: number): Promise<string | null> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let text = ''
  for await (const chunk of stream) {
    text += typeof chunk === 'string' ? chunk : decoder.decode(chunk, { stream: true })
    if (text.length > most) return null
  }
  return text + decoder.decode()
}

/** Longer than any answer to a question. */
const longestLine = 10_000

/** The first line of standard input. */
export async function readLine(stdin: Io['stdin']): Promise<string> {
  let text = ''
  for await (const chunk of stdin) {
    text += typeof chunk === 'string' ? chunk : new TextDecoder().decode(chunk)
    if (text.includes('\n') || text.length > longestLine) break
  }
  return text.split('\n')[0]?.trim() ?? ''
}
