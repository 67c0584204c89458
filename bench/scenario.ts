// What a scenario is: cases that are measured, each in a process of its own, so that the heap and the compiled code of
// one do not colour the next. A case gives readings; the harness repeats it and takes medians.

import { createHoldfast, type Holdfast, type HoldfastOptions, type Logger } from 'holdfast'

/** What we want to reach on the memory store. */
export interface Goal {
  readonly is: 'at least' | 'at most'
  readonly value: number
}

/** One number that one sample gave. */
export interface Reading {
  readonly metric: string
  readonly unit: string
  readonly value: number
  readonly goal?: Goal
}

export interface Case {
  /** What tells it from the other cases of its scenario; empty if there is only one. */
  readonly name: string
  /** Each sample needs a process of its own: what it measures is the process. @default false */
  readonly isolated?: boolean
  sample(): Promise<readonly Reading[]>
}

export interface Settings {
  /** The store, as `createHoldfast` takes it. */
  readonly store: string
  /** Fewer runs and samples: a first impression instead of a measurement. */
  readonly quick: boolean
}

export interface Scenario {
  readonly name: string
  readonly about: string
  cases(settings: Settings): readonly Case[]
}

const logger: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: (message, details) => console.warn(message, details ?? ''),
  error: (message, details) => console.error(message, details ?? ''),
}

type Workflows = NonNullable<HoldfastOptions['workflows']>

/** Opens a Holdfast, lets `use` have it, and closes it whatever happens. */
export async function withHoldfast<Result>(
  store: string,
  workflows: Workflows,
  use: (holdfast: Holdfast) => Promise<Result>,
): Promise<Result> {
  const holdfast = await createHoldfast({ store, workflows, logger })
  try {
    return await use(holdfast)
  } finally {
    await holdfast.close()
  }
}
