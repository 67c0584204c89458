// What encryption costs: the same runs of three steps with and without `holdfast/encryption`, in turns within one sample, so
// that a machine which is busy for a while is so for both. Each run encrypts five payloads (its input, three results and its
// output), and decrypts those that it reads again.

import { randomBytes } from 'node:crypto'
import type { Codec } from 'holdfast'
import { encryptingCodec } from 'holdfast/encryption'
import type { Reading, Scenario, Settings } from '../scenario.ts'
import { countOf, performRuns, type Level, type Performed } from './runs.ts'

const level: Level = { atOnce: 1_000, memory: 15_000, sqlite: 10_000, postgres: 8_000 }

const codec: Codec = encryptingCodec({ keys: { bench: randomBytes(32) }, current: 'bench' })

export const encryption: Scenario = {
  name: 'encryption',
  about: 'what encrypting every payload costs a run of three steps',
  cases: (settings) => [{ name: '', sample: () => measure(settings) }],
}

async function measure(settings: Settings): Promise<readonly Reading[]> {
  const runs = countOf(level, settings)
  const perform = (given?: Codec): Promise<Performed> =>
    performRuns(settings.store, level.atOnce, runs, given === undefined ? {} : { codec: given })
  // Each is first once: the one that comes second finds a heap that the other has grown.
  const plain = [await perform()]
  const encrypted = [await perform(codec), await perform(codec)]
  plain.push(await perform())
  const perRun = (performed: readonly Performed[], micros: (one: Performed) => number): number =>
    performed.reduce((sum, one) => sum + micros(one), 0) / (runs * performed.length)
  const [time, cpu] = [(one: Performed) => one.ms * 1_000, (one: Performed) => one.cpuMicros]
  const [plainTime, encryptedTime] = [perRun(plain, time), perRun(encrypted, time)]
  const [plainCpu, encryptedCpu] = [perRun(plain, cpu), perRun(encrypted, cpu)]
  return [
    { metric: 'time per run, plain', unit: 'µs', value: plainTime },
    { metric: 'time per run, encrypted', unit: 'µs', value: encryptedTime },
    { metric: 'time, encrypted / plain', unit: '×', value: encryptedTime / plainTime },
    { metric: 'CPU per run, plain', unit: 'µs', value: plainCpu },
    { metric: 'CPU per run, encrypted', unit: 'µs', value: encryptedCpu },
    { metric: 'CPU, encrypted / plain', unit: '×', value: encryptedCpu / plainCpu, better: 'lower' },
    { metric: 'cost of encryption per run', unit: 'µs of CPU', value: encryptedCpu - plainCpu },
  ]
}
