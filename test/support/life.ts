// One run and everything that can befall it, in a time that the test owns: a world in which an operator cancels, pauses and
// resumes, steps complete and fail, time runs out, processes crash and others take over, in any order. Afterwards the world
// heals, and the run must have come to exactly one end.

import { createHoldfast, fatal, workflow, type Holdfast, type JournalEntry, type RunHandle, type Store } from 'holdfast'
import { createVirtualClock, type VirtualClock } from 'holdfast/testing'

export const fates = ['cancel', 'pause', 'resume', 'complete', 'fail', 'timeout', 'crash', 'takeover'] as const
export type Fate = (typeof fates)[number] | 'cancel now' | 'retry' | 'wait'

export interface LifeOptions {
  readonly makeStore: (clock: VirtualClock) => Promise<Store> | Store
  /** Whether the functions of steps heed their abort signal. */
  readonly heeds: boolean
  /** The number of the step whose undo fails at its first attempt; 0 for none. */
  readonly stubborn?: number
}

const timeoutMs = 20 * 60_000
const heartbeatMs = 10_100
const steps = [1, 2, 3, 4]

/** A process: what it does reaches the store until it crashes. */
interface Process {
  readonly holdfast: Holdfast
  isOver: boolean
}

export class Life {
  readonly clock = createVirtualClock()
  /** Steps that were begun although their worker had been asked to cancel, and when that was. */
  readonly late: string[] = []
  lateFrom = Infinity
  private cancelledAt: number | null = null
  private readonly options: LifeOptions
  private readonly workers: Process[] = []
  private store!: Store
  private operator!: Holdfast
  private run!: RunHandle<unknown>
  /** Functions of steps that wait to be given how they end. */
  private readonly open: ((fails: boolean) => void)[] = []

  private readonly definition = workflow('life', async (ctx) => {
    for (const step of steps) {
      await ctx.step(`s${step}`, ({ abortSignal }) => this.perform(step, abortSignal), {
        undo: (result, { attempt }) => this.undo(step, result ?? 'unknown', attempt),
        retry: { maxAttempts: 2, initial: '1s' },
      })
      if (step === 2) await ctx.sleep('1 min')
    }
    return 'done'
  })

  private constructor(options: LifeOptions) {
    this.options = options
  }

  static async begin(options: LifeOptions): Promise<Life> {
    const life = new Life(options)
    life.store = await options.makeStore(life.clock)
    life.operator = await life.holdfast(life.store)
    await life.takeOver()
    life.run = await life.operator.start(life.definition, undefined, { timeout: timeoutMs })
    await life.clock.advance(100)
    return life
  }

  async suffer(fate: Fate): Promise<void> {
    const ignoreRefusal = (error: unknown): void => {
      if ((error as { code?: unknown }).code !== 'WRONG_STATUS') throw error
    }
    const { operator, run, clock } = this
    switch (fate) {
      case 'cancel': {
        const { outcome } = await operator.cancel(run, { reason: 'asked to' })
        if (outcome !== 'already-ended') this.cancelledAt ??= clock.now()
        break
      }
      case 'cancel now':
        await operator.cancel(run, { mode: 'now' })
        break
      case 'pause':
        await operator.pause(run).catch(ignoreRefusal)
        break
      case 'resume':
        await operator.resume(run).catch(ignoreRefusal)
        break
      case 'retry':
        await operator.retry(run).catch(ignoreRefusal)
        break
      case 'complete':
      case 'fail':
        this.open.shift()?.(fate === 'fail')
        break
      case 'timeout':
        await clock.advance(timeoutMs)
        break
      case 'crash':
        for (const worker of this.workers) worker.isOver = true
        this.open.length = 0
        break
      case 'takeover':
        await this.takeOver()
        await clock.advance('40s')
        break
      case 'wait':
        await clock.advance('70s')
        break
    }
    await clock.advance(3_500)
  }

  /** Everything is well from here on: the run must end. */
  async heal(): Promise<void> {
    if (this.workers.every(({ isOver }) => isOver)) await this.takeOver()
    for (let turn = 0; turn < 60; turn += 1) {
      const status = await this.run.status()
      if (status === 'succeeded' || status === 'failed' || status === 'cancelled') return
      if (status === 'paused') await this.operator.resume(this.run)
      for (const end of this.open.splice(0)) end(false)
      await this.clock.advance('15s')
    }
    throw new Error(`The run did not end after the world had healed: it is ${await this.run.status()}.`)
  }

  journal(): Promise<readonly JournalEntry[]> {
    return this.operator.journal(this.run)
  }

  status(): Promise<string> {
    return this.run.status()
  }

  async close(): Promise<void> {
    for (const worker of this.workers) worker.isOver = true
    await this.store.close()
  }

  private perform(step: number, signal: AbortSignal): Promise<string> {
    // A worker elsewhere learns of it with its next heartbeat.
    if (this.cancelledAt !== null) this.lateFrom = this.cancelledAt + heartbeatMs
    if (this.clock.now() > this.lateFrom) this.late.push(`s${step}`)
    return new Promise((resolve, reject) => {
      this.open.push((fails) => {
        if (fails) reject(fatal('It failed'))
        else resolve(`result ${step}`)
      })
      if (this.options.heeds) signal.addEventListener('abort', () => reject(new Error('Stopped as asked')))
    })
  }

  private undo(step: number, result: string, attempt: number): void {
    if (result !== `result ${step}`) throw new Error('An undo must get the result of its step')
    if (step === this.options.stubborn && attempt === 1) throw new Error('Not at the first attempt')
  }

  private async takeOver(): Promise<void> {
    const state = { isOver: false }
    const outbound = new Proxy(this.store, {
      get(target, key) {
        const value: unknown = Reflect.get(target, key)
        if (typeof value !== 'function') return value
        return (...request: unknown[]): unknown =>
          state.isOver ? new Promise(() => undefined) : value.apply(target, request)
      },
    })
    const worker = Object.assign(state, { holdfast: await this.holdfast(outbound) })
    this.workers.push(worker)
    await worker.holdfast.work({ signals: false })
  }

  private holdfast(store: Store): Promise<Holdfast> {
    const quiet = (): void => undefined
    const logger = { debug: quiet, info: quiet, warn: quiet, error: quiet }
    return createHoldfast({ store, workflows: [this.definition], logger, ports: { clock: this.clock } })
  }
}

function mayHaveHappened({ kind, meta }: JournalEntry): boolean {
  return kind === 'step-succeeded' || ((kind === 'abandoned' || kind === 'step-failed') && meta.undo === true)
}

const terminal = new Set(['succeeded', 'failed', 'cancelled'])

/** What must be so of a run that has ended, whatever befell it. Gives back what is not. */
export function faults(journal: readonly JournalEntry[], status: string, fatesSuffered: readonly Fate[]): string[] {
  const wrong: string[] = []
  const say = (isRight: boolean, what: string): void => void (isRight || wrong.push(what))
  const end = journal.at(-1)
  const ends = journal.filter(({ kind }) => terminal.has(kind))
  const retries = journal.filter(({ kind }) => kind === 'retried').length
  say(end?.kind === status, `the last entry is ${end?.kind}, and the status ${status}`)
  say(ends.length === retries + 1, `${ends.length} terminal entries with ${retries} retries`)
  say(
    journal.every(({ seq }, index) => seq === index + 1),
    'the journal has a gap',
  )
  const undone = journal.filter(({ kind }) => kind === 'undone' || kind === 'undo-failed')
  const names = undone.map(({ name }) => String(name))
  say(new Set(names).size === names.length, `undone more than once: ${names.join()}`)
  const done = journal.filter(({ kind }) => kind === 'step-succeeded').map(({ name }) => String(name))
  say(new Set(done).size === done.length, `done more than once: ${done.join()}`)
  // Each step here says how it is undone. One that was abandoned may have happened, and so may one that failed after its process
  // had died, as far as nobody knows better.
  const last = new Map(journal.filter(mayHaveHappened).map(({ name, seq }) => [String(name), seq]))
  const happened = [...last].toSorted(([, one], [, other]) => one - other).map(([name]) => name)
  for (const { name, seq } of undone) {
    say((last.get(String(name)) ?? seq) < seq, `${name} was undone without having been done`)
  }
  const ways = happened.filter((name) => names.includes(name)).toReversed()
  say(ways.join() === names.join(), `undone in the order ${names.join()}, done in the order ${happened.join()}`)
  if (status === 'succeeded') say(names.length === 0, 'a run that succeeded was undone')
  // A program that does not wait for anything leaves everything as it is; otherwise all that was done is undone.
  const isPatient = !fatesSuffered.includes('cancel now')
  if (status !== 'succeeded' && isPatient)
    say(names.length === happened.length, `${happened.join()} done, ${names.join()} undone`)
  return wrong
}
