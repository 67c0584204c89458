// What somebody else's trouble costs the runs beside it. Two runs end with very many unread messages while others go on in the same
// process: how much longer does the slowest hundredth of those take? And another process writes to the SQLite file for three seconds:
// for how long does the event loop stand still meanwhile?

import { spawn } from 'node:child_process'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout } from 'node:timers/promises'
import { workflow, type Holdfast, type Store } from 'holdfast'
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
    await Promise.all(boxes.flatMap((box) => Array.from({ length: count }, () => box.signal('unread', null))))
  }
  const before = await performUntil(holdfast, setTimeout(writesMs))
  const ends = Promise.all(boxes.map(async (box) => box.signal('end', null).then(() => box.result())))
  // What is left unread is settled after the end, page by page.
  const beside = await performUntil(holdfast, Promise.all([ends, setTimeout(writesMs)]))
  const [without, among] = [quantile(before, 0.99), quantile(beside, 0.99)]
  const most: Goal = { is: 'at most', value: 250 }
  return [
    { metric: 'p99 without', unit: 'ms', value: without },
    { metric: 'p99 more', unit: 'ms', value: Math.max(0, among - without), goals: { sqlite: most, postgres: most } },
  ]
}

/** How long each run took, one at a time, in ms. */
async function performUntil(holdfast: Holdfast, end: Promise<unknown>): Promise<readonly number[]> {
  const times: number[] = []
  let isOver = false
  const over = end.finally(() => (isOver = true))
  while (!isOver) {
    const began = performance.now()
    await (await holdfast.start(oneStep, times.length)).result()
    times.push(performance.now() - began)
  }
  await over
  return times
}

async function measureStalls(path: string): Promise<readonly Reading[]> {
  return withHoldfast(`sqlite:${path}`, [oneStep], async (holdfast) => {
    await holdfast.work()
    await performUntil(holdfast, setTimeout(500))
    // What the machine itself keeps a process waiting for is in both.
    const without = await stallUntil(holdfast, setTimeout(writesMs))
    const writer = writing(path)
    await writer.begun
    const beside = await stallUntil(holdfast, writer.ended)
    return [
      { metric: 'longest stall without', unit: 'ms', value: without },
      { metric: 'longest stall', unit: 'ms', value: beside, goals: { sqlite: { is: 'at most', value: 50 } } },
    ] as const
  })
}

/** How long the event loop stood still at most while runs were started, in ms. */
async function stallUntil(holdfast: Holdfast, end: Promise<unknown>): Promise<number> {
  const resolution = 1
  const delays = monitorEventLoopDelay({ resolution })
  delays.enable()
  await performUntil(holdfast, end)
  delays.disable()
  return Math.max(0, delays.max / 1e6 - resolution)
}

/** Another process, which holds the lock of a writer for so long. */
function writing(path: string): { readonly begun: Promise<void>; readonly ended: Promise<void> } {
  const code = `
    const db = new (require('libsql'))(${JSON.stringify(path)})
    db.exec('begin immediate; create table if not exists neighbour (n integer); insert into neighbour values (1)')
    console.log('begun')
    setTimeout(() => { db.exec('commit'); db.close() }, ${writesMs})`
  const child = spawn(process.execPath, ['--input-type=commonjs', '-e', code], { stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = new Promise<void>((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', (status) => (status === 0 ? resolve() : reject(new Error(`The writer exited with ${status}.`))))
  })
  const begun = new Promise<void>((resolve) => void child.stdout.once('data', () => resolve()))
  return { begun: Promise.race([begun, ended]), ended }
}
