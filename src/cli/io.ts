// What the command line knows of the world: arguments, environment, three streams and signals, as one object. Everything
// below it takes this object, so that a test is a world of its own; only main.ts makes one of the real process.

export interface Io {
  /** The arguments, without the runtime and the script. */
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
  readonly stdout: Output
  readonly stderr: Output
  readonly stdin: AsyncIterable<string | Uint8Array>
  /** Somebody sits there who can be asked. */
  readonly isInteractive: boolean
  readonly now: () => number
  /** Calls back on SIGINT and SIGTERM, until the returned function is called. */
  readonly onSignal: (listener: (signal: ProcessSignal) => void) => () => void
  /** How this program is started, so that it can start itself once more. */
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
  /** Calls back when the channel has closed: it lets go of this process, or is gone. At once if it has already. */
  readonly onGone: (listener: () => void) => void
}

export interface Output {
  readonly isTerminal: boolean
  /** How wide a line may be; Infinity where nobody looks. */
  readonly columns: number
  /** Settles when there is room for more. Rejects with OutputClosed when the reader is gone. */
  readonly write: (text: string) => Promise<void>
}

export type ProcessSignal = 'SIGINT' | 'SIGTERM'

/** What a shell expects of a process that a signal ended. */
export const signalExits: Readonly<Record<ProcessSignal, number>> = { SIGINT: 130, SIGTERM: 143 }

/** Whoever read our output has seen enough, as `head` does. It is no failure. */
export class OutputClosed extends Error {
  override readonly name = 'OutputClosed'
}

/** All that comes from a stream, as text; null if that is longer than `most`, and no more of it is read then. */
export async function readAll(stream: Io['stdin'], most: number): Promise<string | null> {
  const decoder = new TextDecoder()
  let text = ''
  for await (const chunk of stream) {
    text += typeof chunk === 'string' ? chunk : decoder.decode(chunk, { stream: true })
    if (text.length > most) return null
  }
  return text + decoder.decode()
}

/** More than anybody answers to a question. */
const longestLine = 10_000

/** The first line that comes from standard input. */
export async function readLine(stdin: Io['stdin']): Promise<string> {
  let text = ''
  for await (const chunk of stdin) {
    text += typeof chunk === 'string' ? chunk : new TextDecoder().decode(chunk)
    if (text.includes('\n') || text.length > longestLine) break
  }
  return text.split('\n')[0]?.trim() ?? ''
}
