// The worker of `holdfast dev`: a process of its own, so that code is loaded anew with every start and what it does to its process
// harms nothing else. The channel to it is what it lives by: it stops gracefully when the channel closes, also if this process is
// killed, and on systems that have no signals.

import { spawn } from 'node:child_process'
import type { Ended } from './reload-state.ts'

/** What a worker tells whoever supervises it, as soon as it works. */
export interface WorkingMessage {
  readonly holdfast: 'working'
  /** As it may be printed. */
  readonly store: string
  readonly workflows: readonly { readonly type: string; readonly version: number }[]
}

export interface ChildWorker {
  /** Asks it to stop gracefully. */
  readonly stop: () => void
  readonly kill: () => void
}

export interface ChildWorkerOptions {
  /** Runtime, script and arguments. */
  readonly command: readonly string[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly onWorking: (message: WorkingMessage) => void
  readonly onEnd: (ended: Ended) => void
  /** In milliseconds, of any beginning. */
  readonly now: () => number
}

export function startWorker({ command, cwd, env, onWorking, onEnd, now }: ChildWorkerOptions): ChildWorker {
  const [program = '', ...args] = command
  const startedAt = now()
  const child = spawn(program, args, { cwd, env: { ...env }, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  let hasEnded = false
  const end = (code: number | null, signal: string | null): void => {
    if (hasEnded) return
    hasEnded = true
    onEnd({ code, signal, livedMs: now() - startedAt })
  }
  child.once('exit', end)
  child.on('error', () => {
    // It could not be started; what else goes wrong here, such as a signal to a process that is gone, its end tells.
    if (child.pid === undefined) end(1, null)
  })
  child.on('message', (message: unknown) => {
    if (isWorking(message)) onWorking(message)
  })
  return {
    stop: () => {
      if (child.connected) child.disconnect()
    },
    kill: () => void child.kill('SIGKILL'),
  }
}

/** The code of a user may send messages, too. */
function isWorking(message: unknown): message is WorkingMessage {
  return typeof message === 'object' && message !== null && 'holdfast' in message && message.holdfast === 'working'
}
