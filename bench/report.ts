// The results as a file for machines. Its shape is stable: what reads it today reads it after the next release. It says
// what kind of machine measured, and nothing that says which one.

import { writeFile } from 'node:fs/promises'
import { availableParallelism, totalmem } from 'node:os'
import type { Result } from './conduct.ts'
import { storeKindOf } from './stores.ts'

export interface Machine {
  readonly cores: number
  readonly memoryGiB: number
  readonly node: string
  readonly platform: string
}

interface Report {
  readonly shape: 1
  readonly date: string
  readonly machine: Machine
  readonly store: string
  readonly quick: boolean
  readonly results: readonly Result[]
}

export function thisMachine(): Machine {
  const { version, platform, arch } = process
  return {
    cores: availableParallelism(),
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    node: version,
    platform: `${platform} ${arch}`,
  }
}

export async function writeReport(
  file: string,
  settings: { readonly store: string; readonly quick: boolean },
  results: readonly Result[],
): Promise<void> {
  const report: Report = {
    shape: 1,
    date: new Date().toISOString(),
    machine: thisMachine(),
    store: `${storeKindOf(settings.store)}:`,
    quick: settings.quick,
    results,
  }
  await writeFile(file, `${JSON.stringify(report, null, 2)}\n`)
}
