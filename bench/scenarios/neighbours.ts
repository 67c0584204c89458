// What the trouble of another run costs the runs beside it. Two runs end with very many unread messages while others go on in the same
// process: how much longer does the slowest hundredth of those take? And another process writes to the SQLite file for three seconds:
// for how long does the event loop stand still meanwhile?

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { createInterface } from 'node:readline'
import { setTimeout } from 'node:timers/promises'
import { isHoldfastError, workflow, type Holdfast, type RunHandle, type Store } from 'holdfast'
import { quantile } from '../numbers.ts'
import { withHoldfast, type Case, type Goal, type Reading, type Scenario } from '../scenario.ts'
import { storeKindOf, withPostgresStore, withSqliteFile } from '../stores.ts'

const oneStep = workflow('bench.one-step', (ctx, order: number) => ctx.step('charge', async () => order))
const mailbox = workflow('bench.mailbox', (ctx) => ctx.receive('end'))

const unreadOfEach = { usual: 60_000, quick: 6_000 }
const writesMs = 3_000
/** So few that the store answers each of them well within its timeout. */
const sentAtOnce = 500
/** Of Postgres: an end that settled all its messages at once would exceed it, and be sent again and again. */
const storageTimeout = '1s'

export const neighbours: Scenario = {
  name: 'neighbours',
  about: 'runs beside two that end with full mailboxes, and beside a process that writes for 3 s',
  onlyOn: ['sqlite', 'postgres'],
  cases({ store, quick }) {
    const ends: Case = {
      name: 'two ends with unread messages',
      isolated: true,
      sample: () => {
        const unread = quick ? unreadOfEach.quick : unreadOfEach.usual
        const measure = (opened: string | Store): Promise<readonly Reading[]> =>
          withHoldfast(opened, [oneStep, mailbox], (holdfast) => measureEnds(holdfast, unread))
        if (storeKindOf(store) !== 'postgres') return measure(store)
        return withPostgresStore(store, measure, { storageTimeout })
      },
    }
    const writes: Case = {
      name: 'another process writes',
      isolated: true,
      sample: () => withSqliteFile(store, measureStalls),
    }
    return storeKindOf(store) === 'sqlite' ? [ends, writes] : [ends]
  },
}

async function measureEnds(holdfast: Holdfast, unread: number): Promise<readonly Reading[]> {
  await holdfast.work()
  const boxes = await Promise.all([holdfast.start(mailbox), holdfast.start(mailbox)])
  for (let sent = 0; sent < unread; sent += sentAtOnce) {
    const count = Math.min(sentAtOnce, unread - sent)
    const send = (box: RunHandle<unknown>): Promise<unknown> => answered((again) => box.signal('unread', null, again))
    await Promise.all(boxes.flatMap((box) => Array.from({ length: count }, () => send(box))))
  }
  const before = await performUntil(holdfast, setTimeout(writesMs))
  const ends = Promise.all(
    boxes.map(async (box) => answered((again) => box.signal('end', null, again)).then(() => box.result())),
  )
  // What is left unread is settled after the end, page by page.
  const beside = await performUntil(holdfast, Promise.all([ends, setTimeout(writesMs)]))
  const [without, among] = [quantile(before, 0.99), quantile(beside, 0.99)]
  const most: Goal = { is: 'at most', value: 250 }
  return [
    { metric: 'p99 without', unit: 'ms', value: without },
    { metric: 'p99 more', unit: 'ms', value: Math.max(0, among - without), goals: { sqlite: most, postgres: most } },
  ]
}

/** Repeats a call that a busy machine did not answer within the storage timeout, by the id that its error names. */
async function answered<Answer>(call: (again: { readonly id?: string }) => Promise<Answer>): Promise<Answer> {
  for (let again = {}; ;) {
    try {
      return await call(again)
    } catch (error) {
      if (!isHoldfastError(error, 'STORE_UNAVAILABLE')) throw error
      again = { id: error.details['signalId'] ?? error.details['runId'] }
    }
  }
}

/** How long each run took, one at a time, in ms: the time of calls that were repeated counts. */
async function performUntil(holdfast: Holdfast, end: Promise<unknown>): Promise<readonly number[]> {
  const times: number[] = []
  let isOver = false
  const over = end.finally(() => (isOver = true))
  while (!isOver) {
    const began = performance.now()
    await (await answered((again) => holdfast.start(oneStep, times.length, again))).result()
    times.push(performance.now() - began)
  }
  await over
  return times
}

async function measureStalls(path: string): Promise<readonly Reading[]> {
  return withHoldfast(`sqlite:${path}`, [oneStep], async (holdfast) => {
    await holdfast.work()
    await performUntil(holdfast, setTimeout(500))
    const before = setTimeout(writesMs)
    const [without] = await Promise.all([stallUntil(before), performUntil(holdfast, before)])
    const writer = holdingTheLock(path)
    await writer.begun
    // What the machine itself keeps a process waiting for is in both: a process that waits for the lock is as good as idle.
    const idle = idling()
    await idle.begun
    const held = setTimeout(writesMs)
    const runs = performUntil(holdfast, writer.ended)
    const beside = await stallUntil(held)
    const ofIdle = Number(await idle.end())
    await writer.end()
    await runs
    return [
      { metric: 'longest stall without', unit: 'ms', value: without },
      { metric: 'longest stall of an idle process', unit: 'ms', value: ofIdle },
      { metric: 'longest stall', unit: 'ms', value: beside, goals: { sqlite: { is: 'at most', value: 50 } } },
    ] as const
  })
}

/** How long the event loop of this process stood still at most, in ms. */
async function stallUntil(end: Promise<unknown>): Promise<number> {
  const resolution = 1
  const delays = monitorEventLoopDelay({ resolution })
  delays.enable()
  await end
  delays.disable()
  return Math.max(0, delays.max / 1e6 - resolution)
}

/** Another process, which has the lock of a writer until it is asked to end. Like us, it may have to wait for that lock. */
function holdingTheLock(path: string): Neighbour {
  return neighbour(`
    const db = new (require('libsql'))(${JSON.stringify(path)})
    db.exec('pragma busy_timeout = 10000')
    db.exec('begin immediate; create table if not exists neighbour (n integer); insert into neighbour values (1)')
    console.log('begun')
    process.stdin.once('data', () => { db.exec('commit'); db.close(); process.exit() })`)
}

/** Another process, which does nothing, and says at its end for how many ms its event loop stood still at most. */
function idling(): Neighbour {
  return neighbour(`
    const delays = require('node:perf_hooks').monitorEventLoopDelay({ resolution: 1 })
    delays.enable()
    console.log('begun')
    process.stdin.once('data', () => { console.log(Math.max(0, delays.max / 1e6 - 1)); process.exit() })`)
}

interface Neighbour {
  readonly begun: Promise<unknown>
  /** Rejects if it ended with an error. */
  readonly ended: Promise<unknown>
  /** Asks it to end; gives back the last line that it wrote. */
  readonly end: () => Promise<string>
}

function neighbour(code: string): Neighbour {
  const child = spawn(process.execPath, ['--input-type=commonjs', '-e', code], { stdio: ['pipe', 'pipe', 'inherit'] })
  const lines: string[] = []
  const output = createInterface(child.stdout)
  output.on('line', (line) => lines.push(line))
  const ended = new Promise<void>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (status) =>
      status === 0 ? resolve() : reject(new Error(`A neighbour exited with ${status}.`)),
    )
  })
  const end = async (): Promise<string> => {
    child.stdin.end('end\n')
    await ended
    return lines.at(-1) ?? ''
  }
  return { begun: Promise.race([once(output, 'line'), ended]), ended, end }
}
