// A backlog drained by a crowd: 1 to 16 worker processes of the same number of slots together, in turns with what others do
// on the same server. What matters is the shares: what is left of the speed of one worker, and how it compares with a peer
// in the same minute.

import { drain, type Crowd, type Drained } from '../crowd/drain.ts'
import { queueNames, type Queue, type QueueName } from '../crowd/queue.ts'
import { queueNamed } from '../crowd/queues.ts'
import type { Case, Goals, Reading, Scenario, Settings } from '../scenario.ts'

const slotsOfAll = 80
const widths = [1, 2, 4, 8, 16] as const
const slotsOfOne = 1_000

/** What must be left of the speed of one worker. */
const shares: Readonly<Record<number, number>> = { 4: 0.8, 8: 0.6, 16: 0.4 }

interface Shape {
  readonly types: number
  readonly isHeld: boolean
}

export const crowd: Scenario = {
  name: 'crowd',
  about: 'a backlog drained by 1 to 16 processes of 80 slots together, beside graphile-worker and pg-boss',
  onlyOn: ['postgres'],
  timesStatements: true,
  cases(settings) {
    const shapes = [1, 100].flatMap((types) => [false, true].map((isHeld): Shape => ({ types, isHeld })))
    return [
      ...shapes.map((shape): Case => ({ ...single, name: nameOf(shape), sample: () => measure(shape, settings) })),
      ...[1, slotsOfOne].map((slots): Case => ({
        ...single,
        name: `one worker of ${slots}`,
        sample: () => measureOne(slots, settings),
      })),
    ]
  },
}

/** Its processes are fresh ones anyway. */
const single = { isolated: true, samples: 3 } as const

function nameOf({ types, isHeld }: Shape): string {
  return `${types === 1 ? '1 type' : `${types} types`}${isHeld ? ', a snapshot held' : ''}`
}

function jobsOf({ quick }: Settings): number {
  return quick ? 10_000 : 40_000
}

/** Peers are measured once, where nothing is made hard: they are the measure of what is usual. */
async function measure(shape: Shape, settings: Settings): Promise<readonly Reading[]> {
  const readings: Reading[] = []
  let alone: number | null = null
  for (const workers of widths) {
    const slots = slotsOfAll / workers
    const at = `${workers} of ${slots}`
    const rates = new Map<QueueName, number>()
    for (const queue of queuesFor(shape)) {
      const drained = await drain(settings.store, { ...shape, queue, workers, slots, jobs: jobsOf(settings) })
      rates.set(queue.name, drained.perSecond)
      if (queue.name === 'holdfast') readings.push(...readingsOf(at, drained, settings))
    }
    const ours = rates.get('holdfast') as number
    alone ??= ours
    readings.push(share(`${at}: of one worker`, ours / alone, shares[workers]))
    readings.push(...compared(at, ours, rates))
  }
  return readings
}

async function measureOne(slots: number, settings: Settings): Promise<readonly Reading[]> {
  const jobs = slots === 1 ? Math.round(jobsOf(settings) / 10) : 2 * jobsOf(settings)
  const rates = new Map<QueueName, number>()
  const enqueued = new Map<QueueName, number>()
  const readings: Reading[] = []
  for (const queue of queuesFor({ types: 1, isHeld: false })) {
    const one: Crowd = { queue, workers: 1, slots, types: 1, jobs, isHeld: false }
    const drained = await drain(settings.store, one)
    rates.set(queue.name, drained.perSecond)
    enqueued.set(queue.name, drained.enqueuedPerSecond)
    if (queue.name === 'holdfast') readings.push(...readingsOf('', drained, settings, jobs))
  }
  const ours = (of: ReadonlyMap<QueueName, number>): number => of.get('holdfast') as number
  return [
    ...readings,
    ...compared('', ours(rates), rates),
    { metric: 'enqueued', unit: 'runs/s', value: ours(enqueued) },
    ...compared('enqueued', ours(enqueued), enqueued, 1.2),
  ]
}

function queuesFor({ types, isHeld }: Shape): readonly Queue[] {
  const wanted = types === 1 && !isHeld ? queueNames : (['holdfast'] as const)
  return wanted.flatMap((name) => queueNamed(name) ?? [])
}

function readingsOf(
  at: string,
  { perSecond, claims, cpuUs, pages }: Drained,
  settings: Settings,
  jobs = jobsOf(settings),
): readonly Reading[] {
  const named = (metric: string): string => (at === '' ? metric : `${at}: ${metric}`)
  const empty = claims === null ? Number.NaN : (100 * claims.empty) / claims.all
  return [
    { metric: named('throughput'), unit: 'runs/s', value: perSecond },
    { metric: named('CPU per run (node)'), unit: 'µs', value: cpuUs },
    { metric: named('claims'), unit: 'a run', value: (claims?.all ?? Number.NaN) / jobs },
    { metric: named('empty claims'), unit: '%', value: empty },
    ...(pages === null ? [] : [{ metric: named('pages'), unit: 'a claim', value: pages }]),
  ]
}

function compared(at: string, ours: number, rates: ReadonlyMap<QueueName, number>, least = 1): readonly Reading[] {
  return Array.from(rates).flatMap(([name, rate]) => {
    if (name === 'holdfast') return []
    return [
      { metric: `${at === '' ? '' : `${at}: `}${name}`, unit: 'jobs/s', value: rate },
      share(`${at === '' ? '' : `${at}: `}times ${name}`, ours / rate, least),
    ]
  })
}

function share(metric: string, value: number, least: number | undefined): Reading {
  const goals: Goals = least === undefined ? {} : { postgres: { is: 'at least', value: least } }
  return { metric, unit: '×', value, goals, better: 'higher' }
}
