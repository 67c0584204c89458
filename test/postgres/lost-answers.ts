// Connections that break at the moment at which something is written for good, while an engine performs runs: either the
// database never hears of it, or it has done it and nobody hears of that. The engine cannot tell the two apart. It must not
// have to: what was answered with an error is sent again under the same id.
//
// Every body of a step writes a row past all of this, so that it is known what really happened.

import { setTimeout } from 'node:timers/promises'
import { Pool } from 'pg'
import { onTestFinished } from 'vitest'
import { workflow } from 'holdfast'
import { holdfastAt, proxied } from './proxied.ts'

export interface Losses {
  /** How many moments were struck. */
  readonly struck: number
  readonly runs: number
  /** What must not be, each as a sentence. */
  readonly violations: readonly string[]
}

const steps = ['a', 'b', 'c', 'd']

export async function loseAnswers(points: number, how: 'drop-request' | 'drop-reply'): Promise<Losses> {
  const { url, schema, proxy, through } = await proxied()
  const pool = new Pool({ connectionString: url, max: 4 })
  onTestFinished(() => pool.end())
  await pool.query(`create schema ${schema}`)
  await pool.query(`create table ${schema}.effects (run uuid, step text, attempt int, mark text)`)
  const happened = async (run: string, step: string, attempt: number): Promise<string> => {
    const mark = `${step}-${Math.random().toString(36).slice(2)}`
    await pool.query(`insert into ${schema}.effects values ($1, $2, $3, $4)`, [run, step, attempt, mark])
    return mark
  }
  const four = workflow('lost-answers', async (ctx) => {
    const step = (name: string): Promise<string> => ctx.step(name, ({ attempt }) => happened(ctx.run.id, name, attempt))
    const first = await step('a')
    const both = await Promise.all([step('b'), step('c')])
    // It is parked here, and claimed again.
    await ctx.sleep(5)
    return [first, ...both, await step('d')]
  })
  const holdfast = await holdfastAt({ store: through, workflows: [four] })
  const worker = await holdfastAt({ store: through, workflows: [four] })
  await worker.work({ lease: '6s', heartbeat: '300ms' })

  const results = new Map<string, readonly string[]>()
  let struck = 0
  let runs = 0
  const next = (): void => {
    // Not always the first that comes: what follows what differs.
    void proxy.strike({ on: 'either', nth: 1 + (struck % 7), how }).then(() => {
      struck += 1
      if (struck < points) next()
    })
  }
  next()
  // Some are started where they are performed, and begin at once; others are claimed.
  const perform = async (starter: typeof worker): Promise<void> => {
    runs += 1
    const run = await starter.start(four)
    results.set(run.id, await run.result({ timeout: '60s' }))
  }
  while (struck < points) {
    await Promise.all([...Array.from({ length: 5 }, () => perform(worker)), perform(holdfast)])
    await setTimeout(1)
  }
  return { struck, runs, violations: await judge() }

  async function judge(): Promise<readonly string[]> {
    const found: string[] = []
    const { rows } = await pool.query<{ run: string; step: string; mark: string }>(`select * from ${schema}.effects`)
    if (results.size !== runs) found.push(`${runs} starts made ${results.size} runs`)
    const stored = await holdfast.count({})
    if (stored.count !== runs) found.push(`${runs} starts stored ${stored.count} runs`)
    for (const [id, output] of results) {
      const journal = await holdfast.journal(id)
      if (journal.some(({ seq }, index) => seq !== index + 1)) found.push(`${id} has a gap in its journal`)
      const ends = journal.filter(({ kind }) => kind === 'succeeded')
      if (ends.length !== 1 || journal.at(-1)?.kind !== 'succeeded') found.push(`${id} ended ${ends.length} times`)
      for (const [index, step] of steps.entries()) {
        const recorded = journal.filter(({ kind, name }) => kind === 'step-succeeded' && name === step)
        const made = rows.filter((row) => row.run === id && row.step === step).map(({ mark }) => mark)
        // The process lived all the time and kept its lease: no body had a reason to run again.
        if (made.length !== 1) found.push(`${id} executed step ${step} ${made.length} times`)
        if (recorded.length !== 1) found.push(`${id} recorded step ${step} ${recorded.length} times`)
        const marks = [recorded[0]?.data, output[index], made[0]]
        if (new Set(marks).size !== 1) found.push(`${id} has several results of step ${step}: ${marks.join(', ')}`)
      }
    }
    for (const { name, offenders } of await holdfast.doctor()) {
      if (offenders.length > 0) found.push(`${name} does not hold for ${offenders.join(', ')}`)
    }
    return found
  }
}
