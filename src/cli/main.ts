#!/usr/bin/env node
// The `holdfast` command: makes an Io of this process, performs its command line, and exits with its code.

import type { Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { OutputClosed, type Io, type Output, type ProcessSignal, type Supervisor } from './io.ts'
import { runCli } from './program.ts'

const signals: readonly ProcessSignal[] = ['SIGINT', 'SIGTERM']

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
    // Whoever is gone need not be told: that is noticed by the closed channel.
    send: (message) => void process.send?.(message, undefined, undefined, () => undefined),
    onGone: (listener) => {
      if (process.connected) process.once('disconnect', listener)
      else listener()
    },
  }
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
