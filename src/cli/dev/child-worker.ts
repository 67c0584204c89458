// The worker of `holdfast dev`: a separate process, so that every start loads the code again and the code cannot harm the
// supervisor. The worker stops gracefully when the channel to the supervisor closes, also if the supervisor is killed, and
// on systems that have no signals.

import { spawn } from 'node:child_process'
import type { Ended } from './reload-state.ts'

/** The message of a worker to its supervisor, as soon as it runs. */
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
    // It could not be started. Any other error, such as a signal to a process that is gone, shows in how the process ends.
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
