// What a scenario is: cases that are measured, each in a process of its own, so that the heap and the compiled code of
// one do not colour the next. A case gives readings; the harness repeats it and takes medians.

import { createHoldfast, type Holdfast, type HoldfastOptions, type Store } from 'holdfast'
import { logger } from './logger.ts'
import { withStore, type StoreKind } from './stores.ts'

/** What we want to reach. */
export interface Goal {
  readonly is: 'at least' | 'at most'
  readonly value: number
}

/** By store: each has other limits. */
export type Goals = Readonly<Partial<Record<StoreKind, Goal>>>

/** One number that one sample gave. */
export interface Reading {
  readonly metric: string
  readonly unit: string
  readonly value: number
  readonly goals?: Goals
  /** Which way is better, of a number that depends little on the machine: a ratio or a count. Only such are compared. */
  readonly better?: Better
}

export type Better = 'higher' | 'lower'

export interface Case {
  /** What distinguishes it from the other cases of its scenario; empty if there is only one. */
  readonly name: string
  /** Each sample needs a process of its own: what it measures is the process. @default false */
  readonly isolated?: boolean
  /** How many samples, where a single one is a long mean already. @default by how thorough the benchmark is to be */
  readonly samples?: number
  sample(): Promise<readonly Reading[]>
}

export interface Settings {
  /** The address of the store: see stores.ts. */
  readonly store: string
  /** Fewer runs and samples: a first impression instead of a measurement. */
  readonly quick: boolean
}

export interface Scenario {
  readonly name: string
  readonly about: string
  /** The only stores on which it says anything. @default all */
  readonly onlyOn?: readonly StoreKind[]
  /** Asks the server what each statement took, if it is measured alone: that costs a little. @default false */
  readonly timesStatements?: boolean
  cases(settings: Settings): readonly Case[]
}

type Workflows = NonNullable<HoldfastOptions['workflows']>

/** Opens a Holdfast on a store or the address of one, lets `use` have it, and closes it whatever happens. */
export async function withHoldfast<Result>(
  store: string | Store,
  workflows: Workflows,
  use: (holdfast: Holdfast) => Promise<Result>,
  options: Pick<HoldfastOptions, 'codec'> = {},
): Promise<Result> {
  if (typeof store === 'string') return withStore(store, (opened) => withHoldfast(opened, workflows, use, options))
  const holdfast = await createHoldfast({ ...options, store, workflows, logger })
  try {
    return await use(holdfast)
  } finally {
    await holdfast.close()
  }
}
