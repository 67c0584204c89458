#!/usr/bin/env node
// The `holdfast` command: makes an Io of this process, performs its command line, and leaves with its exit code.

import type { Writable } from 'node:stream'
import { OutputClosed, type Io, type Output, type StopSignal } from './io.ts'
import { runCli } from './program.ts'

const signals: readonly StopSignal[] = ['SIGINT', 'SIGTERM']

/** What a write says when its reader is gone; anything else, such as a full disk, is an error. */
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
  onSignal: (listener) => {
    for (const signal of signals) process.on(signal, listener)
    return () => {
      for (const signal of signals) process.off(signal, listener)
    }
  },
}

function outputOn(stream: Writable & { readonly isTTY?: boolean; readonly columns?: number }): Output {
  // Told to whoever wrote; without a listener it would end the process with a stack.
  stream.on('error', () => undefined)
  return {
    isTerminal: stream.isTTY === true,
    get columns() {
      // A terminal that does not know its width says zero.
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

// Everything is written and closed by now; what a user's module left open must not keep the process.
process.exit(await runCli(io))
