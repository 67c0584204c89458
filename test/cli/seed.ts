// A SQLite file with runs in it, for the commands that look at them and steer them.

import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { createHoldfast, type Holdfast, type HoldfastOptions } from '../../src/index.ts'
import { cli, folder, type Ending, type Scene } from './world.ts'
import * as workflows from './workflows.ts'

export interface Shop {
  /** The address of the file. */
  readonly store: string
  /** A Holdfast on that file which starts, but performs only if it is asked to. */
  readonly holdfast: Holdfast
  /** A command line on that file and its workflows. */
  readonly run: (argv: readonly string[], scene?: Scene) => Promise<Ending>
  /** The environment that names both. */
  readonly env: Readonly<Record<string, string>>
}

const quiet = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }

export async function shop(more: Partial<HoldfastOptions> = {}): Promise<Shop> {
  const store = `sqlite:${join(folder(), 'shop.db')}`
  const holdfast = await createHoldfast({ store, workflows, logger: quiet, ...more })
  onTestFinished(() => holdfast.close())
  const env = { HOLDFAST_STORE: store, HOLDFAST_WORKFLOWS: 'test/cli/workflows.ts' }
  return { store, holdfast, env, run: (argv, scene = {}) => cli(argv, { ...scene, env: { ...env, ...scene.env } }) }
}

/** The documents of a stream. */
export function documents(text: string): readonly unknown[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as unknown)
}
