#!/usr/bin/env node
// The `holdfast` command: makes an Io of this process, performs its command line, and exits with its code.

import type { Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { OutputClosed, type Io, type Output, type ProcessSignal, type Supervisor } from './io.ts'
import { runCli } from './program.ts'

const signals: readonly ProcessSignal[] = ['SIGINT', 'SIGTERM']

/** The codes of a write whose reader is gone; any other, such as a full disk, is an error. */
const gone: readonly unknown[] = ['EPIPE', 'ECONNRESET', 'ERR_STREAM_DESTROYED']

const io: Io = {
  argv: process.argv.slice(2),
  env: process.env,
  cwd: process.cwd(),
  stdout: outputOn(process.stdout),
  stderr: outputOn(process.stderr),
  stdin: process.stdin,
  isInteractive: process.stdin.isTTY && process.stderr.isTTY,
  now: () => Date.now(),
  program: {
    runtime: process.execPath,
    options: process.execArgv,
    script: fileURLToPath(import.meta.url),
  },
  supervisor: supervisorOf(),
  onSignal: (listener) => {
    for (const signal of signals) process.on(signal, listener)
    return () => {
      for (const signal of signals) process.off(signal, listener)
    }
  },
}

function supervisorOf(): Supervisor | null {
  if (process.send === undefined) return null
  return {
    // A failed send needs no handling: the closed channel shows that the parent is gone.
    send: (message) => void process.send?.(message, undefined, undefined, () => undefined),
    onGone: (listener) => {
      if (process.connected) process.once('disconnect', listener)
      else listener()
    },
  }
}

function outputOn(stream: Writable & { readonly isTTY?: boolean; readonly columns?: number }): Output {
  // The callback of the write gets the error; without a listener it would end the process with a stack.
  stream.on('error', () => undefined)
  return {
    isTerminal: stream.isTTY === true,
    get columns() {
      // A terminal that does not know its width reports zero.
      return stream.columns || Infinity
    },
    write: (text) =>
      new Promise((resolve, reject) => {
        if (text === '') return resolve()
        stream.write(text, (error) => {
          if (!error) resolve()
          else reject('code' in error && gone.includes(error.code) ? new OutputClosed(error.message) : error)
        })
      }),
  }
}

// Everything is written and closed by now; handles that a user's module left open must not keep the process alive.
process.exit(await runCli(io))
