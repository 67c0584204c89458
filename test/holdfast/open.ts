// What every test of this folder begins with: a Holdfast on the memory store that is closed when the test is over, and
// whose log lines are kept instead of printed.

import { onTestFinished } from 'vitest'
import { createHoldfast, type Holdfast, type HoldfastOptions, type Logger } from 'holdfast'
import { MemoryStore } from '../../src/stores/memory/store.ts'
import { systemClock } from '../../src/system.ts'

export interface Line {
  readonly level: 'debug' | 'info' | 'warn' | 'error'
  readonly message: string
  readonly details: Readonly<Record<string, unknown>>
}

export function keepLines(): Logger & { readonly lines: readonly Line[] } {
  const lines: Line[] = []
  const keep =
    (level: Line['level']): Logger['info'] =>
    (message, details = {}) =>
      void lines.push({ level, message, details })
  return { lines, debug: keep('debug'), info: keep('info'), warn: keep('warn'), error: keep('error') }
}

/** A store as an object, which two instances can share. */
export function memoryStore(): MemoryStore {
  return new MemoryStore({ clock: systemClock, tokenKey: 'k'.repeat(64) })
}

/** Opens a Holdfast that only starts and reads runs. */
export async function open(options: Partial<HoldfastOptions> = {}): Promise<Holdfast> {
  const holdfast = await createHoldfast({ store: 'memory:', logger: keepLines(), ...options })
  onTestFinished(() => holdfast.close())
  return holdfast
}

/** Opens a Holdfast that performs runs, too. */
export async function openWorking(
  workflows: NonNullable<HoldfastOptions['workflows']>,
  options: Partial<HoldfastOptions> = {},
): Promise<Holdfast> {
  const holdfast = await open({ workflows, ...options })
  await holdfast.work()
  return holdfast
}
