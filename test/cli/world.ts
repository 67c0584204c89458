// A world for the command line: streams that keep what is written, a terminal if one is wanted, and signals that a test
// sends. Each call is a process of its own as far as the command line can see.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { onTestFinished } from 'vitest'
import { OutputClosed, type Io, type Output, type ProcessSignal } from '../../src/cli/io.ts'
import { runCli } from '../../src/cli/program.ts'

export interface Scene {
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
  readonly stdin?: string
  /** The width of the terminal on which everything is printed; without it nothing is a terminal. */
  readonly terminal?: number
  /** The reader of standard output goes away after so many writes. */
  readonly readerLeavesAfter?: number
}

export interface Ending {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

export interface Performance {
  readonly ended: Promise<Ending>
  readonly signal: (signal: ProcessSignal) => void
  /** Everything printed so far. */
  readonly printed: () => string
  /** Settles when the text has been printed. */
  readonly says: (text: string) => Promise<void>
}

/** Begins a command line, with everything it does left to the test. */
export function begin(argv: readonly string[], scene: Scene = {}): Performance {
  const listeners = new Set<(signal: ProcessSignal) => void>()
  const waiting = new Set<() => void>()
  const texts = { stdout: '', stderr: '', all: '' }
  let writes = 0
  const output = (name: 'stdout' | 'stderr'): Output => ({
    isTerminal: scene.terminal !== undefined,
    columns: scene.terminal ?? Infinity,
    write: async (text) => {
      writes += name === 'stdout' && text !== '' ? 1 : 0
      if (name === 'stdout' && writes > (scene.readerLeavesAfter ?? Infinity)) throw new OutputClosed('write EPIPE')
      texts[name] += text
      texts.all += text
      for (const look of waiting) look()
    },
  })
  const io: Io = {
    argv,
    env: scene.env ?? {},
    cwd: scene.cwd ?? resolve('.'),
    stdout: output('stdout'),
    stderr: output('stderr'),
    stdin: (async function* () {
      yield scene.stdin ?? ''
    })(),
    isInteractive: scene.terminal !== undefined,
    now: () => Date.now(),
    program: { runtime: process.execPath, options: ['--import', 'tsx'], script: resolve('src/cli/main.ts') },
    supervisor: null,
    onSignal: (listener) => {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
  const ended = runCli(io).then((code) => ({ code, stdout: texts.stdout, stderr: texts.stderr }))
  return {
    ended,
    signal: (signal) => {
      for (const listener of listeners) listener(signal)
    },
    printed: () => texts.all,
    says: (text) =>
      Promise.race([
        new Promise<void>((resolve) => {
          const look = (): void => {
            if (texts.all.includes(text)) resolve()
          }
          waiting.add(look)
          look()
        }),
        ended.then(({ stdout, stderr }) => {
          if (!texts.all.includes(text)) throw new Error(`It ended without saying "${text}":\n${stdout}${stderr}`)
        }),
      ]),
  }
}

/** A command line from beginning to end. */
export function cli(argv: readonly string[], scene: Scene = {}): Promise<Ending> {
  return begin(argv, scene).ended
}

/** An empty folder that is gone when the test is over. */
export function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'holdfast-cli-'))
  onTestFinished(() => rmSync(path, { recursive: true, force: true }))
  return path
}

/** A file with this text, in a folder of its own. */
export function file(name: string, text: string | Uint8Array): string {
  const path = join(folder(), name)
  writeFileSync(path, text)
  return path
}

/** What may never reach a terminal, but for line ends, joiners within emoji and the colours that we put there ourselves. */
export const hazardous =
  /(?!\n|(?<=\p{Extended_Pictographic}|\p{Emoji_Modifier}|\uFE0F)(?:\u200D|\uFE0F))[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u

const colours = new RegExp(`${String.fromCodePoint(0x1b)}\\[\\d+m`, 'g')

/** Only colours are taken away: whatever else a terminal would obey is still there. */
export function withoutColours(text: string): string {
  return text.replaceAll(colours, '')
}
