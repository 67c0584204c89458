// `npm run fuzz`: a million cases over all targets, each of which must come to what its target declares within 100 ms.
// `-- --cases 10000 --target decoder --seed 7` for fewer, for one target, or for the same again. What is found is printed with the
// case, shrunk, and the command that repeats it.

import { parseArgs } from 'node:util'
import { fc } from '../support/properties.ts'
import { closeShared } from './client-targets.ts'
import type { Target } from './target.ts'
import { targets } from './targets.ts'

const { values } = parseArgs({
  options: {
    cases: { type: 'string', default: '1000000' },
    target: { type: 'string', default: '' },
    seed: { type: 'string', default: String(Date.now() % 2 ** 31) },
  },
})
const [cases, seed] = [Number(values.cases), Number(values.seed)]
const longestMs = 100
/** One that was slow is performed so often again: another process may have had the processor. */
const secondLooks = 5
/** Drawn at once, so that progress is seen and nothing is kept for long. */
const atOnce = 5_000

class Slow extends Error {}

async function timed(target: Target, drawn: unknown): Promise<number> {
  const begun = performance.now()
  await target.run(drawn as never)
  return performance.now() - begun
}

/** How long a case takes, at best of several looks if it took too long at first. */
async function perform(target: Target, drawn: unknown): Promise<number> {
  let ms = await timed(target, drawn)
  for (let look = 0; look < secondLooks && ms > longestMs; look += 1) ms = Math.min(ms, await timed(target, drawn))
  if (ms > longestMs) throw new Slow(`It took ${Math.round(ms)} ms`)
  return ms
}

async function fuzz(target: Target, share: number): Promise<{ readonly slowestMs: number }> {
  let slowestMs = 0
  for (const one of target.corpus) slowestMs = Math.max(slowestMs, await perform(target, one))
  for (let done = 0; done < share; done += atOnce) {
    const property = fc.asyncProperty(target.cases, async (drawn) => {
      slowestMs = Math.max(slowestMs, await perform(target, drawn))
    })
    await fc.assert(property, { seed: seed + done, numRuns: Math.min(atOnce, share - done) })
  }
  return { slowestMs }
}

const chosen = targets.filter(({ name }) => values.target === '' || name === values.target)
if (chosen.length === 0) {
  console.error(`There is no target "${values.target}". There are: ${targets.map(({ name }) => name).join(', ')}.`)
  process.exit(2)
}
const whole = chosen.reduce((sum, { perMillion }) => sum + perMillion, 0)
let [total, failed] = [0, 0]
for (const target of chosen) {
  const share = Math.ceil((cases * target.perMillion) / whole)
  const begun = performance.now()
  try {
    const { slowestMs } = await fuzz(target, share)
    const seconds = ((performance.now() - begun) / 1000).toFixed(1)
    console.log(
      `${target.name}: ${share + target.corpus.length} cases in ${seconds} s, slowest ${slowestMs.toFixed(1)} ms`,
    )
    total += share + target.corpus.length
  } catch (error) {
    failed += 1
    console.error(`${target.name}: found something.`, error)
    console.error(`Again: npm run fuzz -- --target "${target.name}" --seed ${seed} --cases ${share}`)
  }
}
await closeShared()
console.log(
  `${total.toLocaleString('en-GB')} cases, seed ${seed}: ${failed === 0 ? 'nothing found' : `${failed} targets failed`}`,
)
// What fuzzed command lines have opened must not keep the process.
process.exit(failed === 0 ? 0 : 1)
