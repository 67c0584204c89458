// One soak, from the first process to the last: finds out how many runs a second the store and the worker can take, lets a share
// of that arrive for the rest of the time, and looks at everything meanwhile.

import { setTimeout } from 'node:timers/promises'
import { createSeededRandom } from 'holdfast/testing'
import { readable } from '../numbers.ts'
import { thisMachine } from '../report.ts'
import { withChild, type Child } from './child-process.ts'
import { withDatabase, type Database } from './database.ts'
import { Doctor } from './doctor.ts'
import type { Diagnosis, DoctorTask } from './doctor-child.ts'
import { Load } from './load.ts'
import type { Options } from './options.ts'
import type { Place } from './place.ts'
import { progressLine } from './progress.ts'
import { Recording } from './recording.ts'
import type { Setting } from './sample.ts'
import { scheduleOf, type Schedule } from './schedule.ts'
import { withSender, type Sender } from './sender.ts'
import type { Outcome } from './summary.ts'
import type { Incidents } from './findings.ts'
import { wallMs } from './wall.ts'
import type { News, Vitals, WorkerTask } from './worker-child.ts'

/** How many runs the worker moves at once, and how many the closed loop keeps open: some of those wait. */
const concurrency = 500
const openAtOnce = 1_000

/** How long runs have to end once nothing arrives any more. */
const settleMs = 30_000

/** How many times as long as he was at work the doctor rests. */
const restPerWork = 4

/** So many seconds' worth of open runs, and at least so many: nobody will catch up with that. */
const mostOpenSeconds = 60
const mostOpenRuns = 20_000

export interface Conducted extends Outcome {
  readonly incidents: Incidents
}

/** Null if it was interrupted before there was a load. */
export async function conduct(
  place: Place,
  options: Options,
  print: (line: string) => void,
  interrupted: AbortSignal,
): Promise<Conducted | null> {
  const forWorker: WorkerTask = { place, concurrency }
  const forDoctor: DoctorTask = { place }
  return withChild<Vitals, News, Conducted | null>('worker', forWorker, (worker) =>
    withChild<Diagnosis, never, Conducted | null>('doctor', forDoctor, (doctor) =>
      withSender(place, worker, (sender) =>
        withDatabase(place, (database) =>
          new Conductor({ place, options, print, interrupted, sender, worker, doctor, database }).perform(),
        ),
      ),
    ),
  )
}

interface Parts {
  readonly place: Place
  readonly options: Options
  readonly print: (line: string) => void
  readonly interrupted: AbortSignal
  readonly sender: Sender
  readonly worker: Child<Vitals, News>
  readonly doctor: Child<Diagnosis, never>
  readonly database: Database
}

class Conductor {
  private readonly parts: Parts
  private readonly load: Load
  private readonly schedule: Schedule
  /** Aborts when nothing more may arrive. */
  private readonly over = new AbortController()
  /** Why it ended before its time. */
  private broken: string | null = null

  constructor(parts: Parts) {
    const { options, sender, worker, doctor, interrupted } = parts
    this.parts = parts
    this.load = new Load(sender, createSeededRandom(options.seed))
    this.schedule = scheduleOf(options.minutes)
    worker.onNews = (news) => this.load.hear(news)
    for (const child of [worker, doctor]) void child.died.then((why) => this.breakOff(why))
    interrupted.addEventListener('abort', () => this.over.abort())
    if (interrupted.aborted) this.over.abort()
  }

  async perform(): Promise<Conducted | null> {
    const silence = new AbortController()
    const broadcasting = this.load.broadcast(silence.signal)
    try {
      const setting = await this.calibrate()
      return setting === null ? null : await this.soak(setting)
    } finally {
      silence.abort()
      await broadcasting
      // He only reads, and may have long to read.
      if (this.parts.interrupted.aborted) this.parts.doctor.kill()
    }
  }

  private async calibrate(): Promise<Setting | null> {
    const { load, schedule, over } = this
    const { place, options, print } = this.parts
    print(`A closed loop of ${readable(openAtOnce)} open runs for ${readable(schedule.calibrateMs / 1_000)} s …`)
    const capacity = await this.whileAttended(() => load.keepOpen(openAtOnce, schedule.calibrateMs, over.signal))
    if (over.signal.aborted) return null
    await load.settle(settleMs)
    if (load.open > 0) this.breakOff(`${load.open} runs of the closed loop did not end within ${settleMs / 1_000} s.`)
    load.forget()
    const rate = capacity * options.share
    const percent = readable(options.share * 100)
    print(`Capacity ${readable(capacity)} runs/s; now ${percent} % of it arrives: ${readable(rate)} runs/s.`)
    return { machine: thisMachine(), store: place.kind, capacity, share: options.share, rate }
  }

  /** He takes his part of the machine when it is soaked, so what there is to share is measured with him at work. */
  private async whileAttended<Result>(work: () => Promise<Result>): Promise<Result> {
    const { doctor } = this.parts
    const enough = new AbortController()
    const attending = new Doctor(doctor, wallMs(), () => undefined).attend(0, 0, enough.signal)
    try {
      return await work()
    } finally {
      enough.abort()
      await Promise.race([attending, doctor.died])
    }
  }

  private async soak(setting: Setting): Promise<Conducted> {
    const { load, schedule, over, parts } = this
    const { rate } = setting
    const recording = new Recording(`${parts.options.out}.ndjson`, setting)
    // What was used before belongs to no sample.
    await Promise.race([parts.worker.ask(), parts.worker.died])
    const beganMs = wallMs()
    const doctor = new Doctor(parts.doctor, beganMs, (visit) => recording.visit(visit))
    const sampling = this.keepSampling(recording, doctor, beganMs)
    const attending = doctor.attend(schedule.doctorMs, restPerWork, over.signal)
    const mostOpen = Math.max(mostOpenRuns, mostOpenSeconds * rate)
    await load.arriveAt(rate, beganMs + schedule.loadMs, mostOpen, over.signal)
    if (load.open >= mostOpen) this.breakOff(`${load.open} runs are open: the worker does not keep up.`)
    over.abort()
    // A process that died will not answer, and performs nothing any more.
    await Promise.race([sampling, parts.worker.died])
    if (this.broken === null) await load.settle(settleMs)
    if (this.broken === null && !parts.interrupted.aborted) {
      parts.print('Everything has ended; the doctor comes for the last time …')
      await Promise.race([attending.then(() => doctor.visit()), parts.doctor.died])
    }
    const { mishaps, firstMishap } = load
    return {
      soak: recording.soak,
      kinds: load.kindTimes(),
      tables: await parts.database.tables(),
      // Of one that was broken off nobody waited for the rest.
      incidents: { unended: this.broken === null ? load.open : 0, mishaps, firstMishap, broken: this.broken },
    }
  }

  private async keepSampling(recording: Recording, doctor: Doctor, beganMs: number): Promise<void> {
    const { load, schedule } = this
    const { signal } = this.over
    const { worker, database, print } = this.parts
    let lastMs = beganMs
    let printedMs = beganMs
    while (!signal.aborted) {
      await setTimeout(schedule.sampleMs, undefined, { signal }).catch(() => undefined)
      const [vitals, size] = await Promise.all([worker.ask(), database.size()])
      const now = wallMs()
      const { arrived, ended, ...times } = load.take()
      const { cpuMs, ...memory } = vitals
      const ms = now - lastMs
      const sample = {
        seconds: (now - beganMs) / 1_000,
        arrived: (arrived / ms) * 1_000,
        ended: (ended / ms) * 1_000,
        open: load.open,
        ...times,
        ...memory,
        cores: cpuMs / ms,
        ...size,
        isChecking: doctor.wasAtWork(lastMs),
      }
      // What is left of the last interval may be too short to say anything.
      if (!signal.aborted || ms >= schedule.sampleMs / 2) recording.sample(sample)
      if (now - printedMs >= schedule.progressMs - schedule.sampleMs / 2) {
        print(progressLine(sample))
        printedMs = now
      }
      lastMs = now
    }
  }

  private breakOff(why: string): void {
    this.broken ??= why
    this.over.abort()
  }
}
