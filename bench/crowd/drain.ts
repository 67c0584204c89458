// Has a crowd of processes drain a backlog, and measures from when a fifth of it is performed until nothing is left: before that,
// every process is busy translating its code. Counted from the word to go, 16 processes that share 10,000 jobs are measured by
// how fast they warm up.

import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Client } from 'pg'
import type { CrowdTask, CrowdProgress, CrowdWord } from '../crowd-child.ts'
import { withClient, withSchema } from '../postgres.ts'
import type { Claims, Queue } from './queue.ts'

export interface Crowd {
  readonly queue: Queue
  readonly workers: number
  /** Of every worker. */
  readonly slots: number
  readonly types: number
  readonly jobs: number
  /** A client reads an old snapshot all the time, so that nothing is cleaned up. */
  readonly isHeld: boolean
}

export interface Drained {
  /** How fast the backlog was made. */
  readonly enqueuedPerSecond: number
  readonly perSecond: number
  readonly claims: Claims | null
  /** Processor time of the worker processes for each job, in microseconds, over the same span. */
  readonly cpuUs: number
  /** Pages that a claim touched; null if the server does not say. */
  readonly pages: number | null
}

const child = fileURLToPath(new URL('../crowd-child.js', import.meta.url))
const lookEveryMs = 5
const warmShare = 0.2

export function drain(url: string, crowd: Crowd): Promise<Drained> {
  const { queue, types, jobs, isHeld } = crowd
  return withSchema(url, (schema) =>
    withClient(url, async (client) => {
      const place = { url, schema, types }
      const enqueueMs = await queue.enqueue(place, jobs)
      await client.query('analyze')
      return withSnapshot(url, isHeld, async () => {
        const hands = await Promise.all(Array.from({ length: crowd.workers }, () => hire(crowd, place)))
        try {
          return {
            ...(await measure(hands, client, queue.left(place), jobs)),
            enqueuedPerSecond: (jobs / enqueueMs) * 1_000,
          }
        } finally {
          for (const { process } of hands) process.kill()
        }
      })
    }),
  )
}

interface Hired {
  readonly process: ChildProcess
  progress: CrowdProgress
  /** Settles when it has left. */
  readonly left: Promise<unknown>
}

async function hire({ queue, slots }: Crowd, place: CrowdTask['place']): Promise<Hired> {
  const process = fork(child)
  const left = once(process, 'exit')
  const task: CrowdTask = { queue: queue.name, place, slots }
  process.send(task)
  const [progress] = (await Promise.race([once(process, 'message'), left])) as [CrowdProgress | number]
  if (typeof progress !== 'object' || progress === null)
    throw new Error(`A worker of ${queue.name} did not begin; see above.`)
  const hired: Hired = { process, progress, left }
  process.on('message', (next) => (hired.progress = next as CrowdProgress))
  return hired
}

async function measure(
  hands: readonly Hired[],
  client: Client,
  left: string,
  jobs: number,
): Promise<Omit<Drained, 'enqueuedPerSecond'>> {
  const sum = (count: (progress: CrowdProgress) => number): number =>
    hands.reduce((all, { progress }) => all + count(progress), 0)
  const isCounting = await countAnew(client)
  const performed = (): number => sum((progress) => progress.performed)
  const cpu = (): number => sum((progress) => progress.cpuUs)
  say(hands, 'go')
  while (performed() < warmShare * jobs) await setTimeout(lookEveryMs)
  await ask(hands)
  const began = performance.now()
  const before = performed()
  const cpuBefore = cpu()
  while (performed() < jobs) await setTimeout(lookEveryMs)
  // What was performed last may not be committed yet.
  for (;;) {
    const { rows } = await client.query<{ left: boolean }>(left)
    if (rows[0]?.left === false) break
    await setTimeout(lookEveryMs)
  }
  const perSecond = ((jobs - before) / (performance.now() - began)) * 1_000
  await ask(hands)
  const cpuUs = (cpu() - cpuBefore) / (jobs - before)
  const pages = isCounting ? await pagesPerClaim(client) : null
  say(hands, 'stop')
  await Promise.all(hands.map(({ left: gone }) => gone))
  const isCounted = hands.every(({ progress }) => progress.claims !== null)
  const all = sum(({ claims }) => claims?.all ?? 0)
  const empty = sum(({ claims }) => claims?.empty ?? 0)
  return { perSecond, claims: isCounted ? { all, empty } : null, cpuUs, pages }
}

function say(hands: readonly Hired[], word: CrowdWord): void {
  for (const { process } of hands) process.send(word)
}

/** Waits until all have reported how far they are now. */
async function ask(hands: readonly Hired[]): Promise<void> {
  const answers = hands.map(({ process }) => once(process, 'message'))
  say(hands, 'report')
  await Promise.all(answers)
}

/** Whether the server counts what statements take; from now on. */
async function countAnew(client: Client): Promise<boolean> {
  const known = await client.query("select from pg_extension where extname = 'pg_stat_statements'")
  if (known.rows.length > 0) await client.query('select pg_stat_statements_reset()')
  return known.rows.length > 0
}

/** Of our claims, as the server counted them. */
async function pagesPerClaim(client: Client): Promise<number | null> {
  const { rows } = await client.query<{ pages: number | null }>(
    `select (sum(shared_blks_hit + shared_blks_read) / nullif(sum(calls), 0))::float as pages from pg_stat_statements
    where query like '%leased as (%'`,
  )
  return rows[0]?.pages ?? null
}

async function withSnapshot<Result>(url: string, isHeld: boolean, use: () => Promise<Result>): Promise<Result> {
  if (!isHeld) return use()
  return withClient(url, async (reader) => {
    await reader.query('begin isolation level repeatable read')
    await reader.query('select count(*) from pg_class')
    try {
      return await use()
    } finally {
      await reader.query('rollback')
    }
  })
}
