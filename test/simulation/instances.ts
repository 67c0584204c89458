// Instances of a decider beside the programs, at the port: inputs are decided by the process that has them, without a lease; effects are
// child runs, leased with the transition that asks for them or claimed; what is not decided at once comes through the mailbox.
// They are in the seeds from `firstSeed` on, so that the seeds before stay what they are.

import { createRunIds } from '../../src/core/model/run-id.ts'
import { isTerminal, type Run } from '../../src/core/model/run.ts'
import type { Transition } from '../../src/core/model/transition.ts'
import type { Committed, NewRun, RunStart, Store } from '../../src/store.ts'
import type { Checker, Known } from './checker.ts'
import { Draw } from './draw.ts'
import {
  decided,
  effectsOf,
  isKnown,
  isOfInstances,
  outcome,
  selectors,
  type Journal,
  type PlannedEffect,
} from './instance-journal.ts'
import { firstAccountSeed } from './accounts.ts'
import { epoch, type Incarnation, type SimProcess } from './process.ts'
import type { Scenario } from './scenario.ts'
import type { World } from './world.ts'

export const firstSeed = 1_000_000

const sessionMs = 3_000
const inputs = 24
const retryMs = 2_500

export class Instances {
  private readonly draw: Draw
  private readonly world: World
  private readonly processes: readonly SimProcess[]
  private readonly checker: Checker
  private readonly runIds: ReturnType<typeof createRunIds>
  /** Commands without an answer, and those that were accepted, with the key of their instance. */
  private readonly open = new Map<string, string>()
  private readonly accepted = new Map<string, string>()
  private count = 0

  constructor(seed: number, world: World, processes: readonly SimProcess[], checker: Checker) {
    this.draw = Draw.of(seed, 'instances')
    this.world = world
    this.processes = processes
    this.checker = checker
    const now = (): number => epoch + Math.floor(world.now)
    this.runIds = createRunIds({ clock: { now, monotonic: now, after: () => () => undefined }, random: this.draw })
  }

  schedule(chaosMs: number): void {
    const { draw, world } = this
    for (let index = 0; index < inputs; index += 1) {
      const [command, key] = [`c${index}`, draw.pick(['a', 'a', 'b', 'c'])]
      this.open.set(command, key)
      world.after(draw.between(0, 0.9 * chaosMs), null, 'input', () => this.offer(command, key))
    }
    for (const process of this.processes) this.work(process, null)
  }

  /** Everything was answered, nobody has anything to do, and every effect is over. */
  get isAtRest(): boolean {
    if (this.open.size > 0) return false
    for (const { run, messages } of this.own()) {
      const isIdle = run.status === 'waiting' && run.readiness === 'idle' && messages.length === 0
      if (!isTerminal(run.status) && !(isIdle && run.type === selectors[0].type)) return false
    }
    return true
  }

  /** What must be true at any time: an outcome in the journal of an instance is the end of its effect. */
  check(): void {
    for (const { run, entries } of this.own()) {
      for (const { child, name, outcomes } of effectsOf(entries)) {
        if (outcomes > 1) this.fail('outcome_once', run, `${name} has ${outcomes} outcomes`)
        const ended = this.checker.run(child)?.run.status
        const isOver = ended !== undefined && isTerminal(ended)
        if (outcomes > 0 && !isOver) this.fail('outcome_has_its_end', run, `${name} is ${ended}`)
      }
    }
  }

  checkEnd(): void {
    this.check()
    const byKey = new Map([...this.own()].map((one) => [one.run.idempotencyKey, one]))
    for (const [command, key] of this.accepted) {
      const known = byKey.get(key)
      const isThere = known !== undefined && (isKnown(known.entries, command) || isTerminal(known.run.status))
      if (!isThere) this.fail('input_not_lost', { id: known?.run.id ?? '', status: 'waiting' }, `${command} of ${key}`)
    }
    for (const { run, entries } of this.own()) {
      if (run.type !== selectors[0].type || run.status !== 'waiting') continue
      for (const { name, outcomes } of effectsOf(entries)) {
        if (outcomes !== 1) this.fail('outcome_not_lost', run, `${name} has ${outcomes} outcomes`)
      }
    }
  }

  private *own(): Iterable<Known> {
    for (const known of this.checker.runs.values()) if (isOfInstances(known.run.type)) yield known
  }

  private fail(name: string, { id, status }: Pick<Run, 'id' | 'status'>, message: string): void {
    this.checker.report({ name, runId: id, message: `${message} (${status})` })
  }

  /** A client offers an input until it is answered, each time to another process. */
  private offer(command: string, key: string): void {
    if (!this.open.has(command)) return
    const { current } = this.draw.pick(this.processes)
    if (current?.isAlive === true && current.line !== null) {
      this.execute(current, current.line, command, key).then(
        (isAccepted) => {
          this.open.delete(command)
          if (isAccepted) this.accepted.set(command, key)
        },
        () => undefined,
      )
    }
    this.world.after(retryMs, null, 'input', () => this.offer(command, key))
  }

  /** Whether an input is decided, or lies in the mailbox; false if its instance is over. */
  private async execute(by: Incarnation, line: Store, command: string, key: string): Promise<boolean> {
    const [started] = await line.start([this.first(by, command, key)])
    if (started === undefined || started.taken === 'busy') throw new Error('busy')
    for (const run of started.created ? (started.leased ?? []) : []) void this.perform(by, line, run)
    if (started.created) return true
    const runId = started.run.id
    for (let tries = 0; tries < 2; tries += 1) {
      const journal = await read(line, runId)
      if (journal.run.status !== undefined && isTerminal(journal.run.status)) return isKnown(journal.entries, command)
      if (isKnown(journal.entries, command)) return true
      const answer = await this.send(line, this.decide(by, journal, command))
      if (answer.outcome === 'committed') {
        for (const run of answer.leased ?? []) void this.perform(by, line, run)
        return true
      }
      if (answer.reason === 'ended') return false
      if (answer.reason !== 'stale') break
    }
    const message = { id: command, runId, kind: 'signal', name: 'input', data: '1', policy: null } as const
    const [delivered] = await line.deliver([message])
    if (delivered?.outcome === 'busy') throw new Error('busy')
    return delivered?.outcome === 'delivered' || delivered?.outcome === 'queued'
  }

  private first(by: Incarnation, command: string, key: string): RunStart {
    const run = { ...this.newRun(selectors[0]), idempotencyKey: key }
    const journal = { run: { id: run.id, seq: 1 }, entries: [] }
    return { ...run, decided: this.decide(by, journal, command) }
  }

  private decide(by: Incarnation, journal: Journal, command: string): Transition {
    const { draw } = this
    const effect = draw.chance(0.6) ? this.effect(by, journal.run.id) : null
    const isOver = effect === null && journal.run.seq > 12 && draw.chance(0.1)
    return decided(journal, { id: this.unique(), commands: [command], effect, isOver })
  }

  /** An effect, mostly for the process that asks for it. */
  private effect(by: Incarnation, parentId: string): PlannedEffect {
    const lease = this.draw.chance(0.6) ? { session: this.sessionOf(by), token: 1 } : null
    return { ...this.newRun(selectors[1]), parentId, lease }
  }

  private newRun(kind: { readonly type: string; readonly version: number }): NewRun {
    const keys = { key: null, keyScope: 'workflow', idempotencyKey: null, parentId: null, keyId: null } as const
    const labels = { tags: [], metadata: null, feed: false, priority: 0 } as const
    const times = { due: null, timeoutMs: null, expiresInMs: null, lease: null, leaseMs: null } as const
    const first = { kind: 'started', name: null, meta: null, data: '{}' } as const
    const id = this.runIds.next(0)
    return { id, shard: 0, ...kind, ...keys, ...labels, ...times, transition: this.unique(), first }
  }

  private unique(): string {
    return `i${(this.count += 1)}`
  }

  /** The same again, until it is answered. */
  private async send(line: Store, transition: Transition): Promise<Committed> {
    for (let tries = 0; ; tries += 1) {
      try {
        const [answer] = await line.commit([transition])
        return answer as Committed
      } catch (error) {
        if (tries === 4) throw error
      }
    }
  }

  /** A process that lives beats for its session, claims what is due, and gives back what it holds and does not know of. */
  private work(process: SimProcess, before: Incarnation | null): void {
    const { current } = process
    if (current !== null && current !== before && current.isAlive && current.line !== null) {
      this.tick(current, current.line, new Map())
      return void this.world.after(500, null, 'worker', () => this.work(process, current))
    }
    this.world.after(500, null, 'worker', () => this.work(process, before))
  }

  private tick(by: Incarnation, line: Store, strange: ReadonlyMap<string, number>): void {
    this.turn(by, line, strange)
      .catch(() => strange)
      .then((next) => void this.world.after(this.draw.between(100, 400), by, 'worker', () => this.tick(by, line, next)))
      .catch(() => undefined)
  }

  private readonly held = new WeakMap<Incarnation, Map<string, number>>()
  /** How many sessions of a process have ended. */
  private readonly ended = new WeakMap<Incarnation, number>()

  private sessionOf(by: Incarnation): string {
    return `instances.${by.label}.${this.ended.get(by) ?? 0}`
  }

  private async turn(
    by: Incarnation,
    line: Store,
    strange: ReadonlyMap<string, number>,
  ): Promise<ReadonlyMap<string, number>> {
    const session = this.sessionOf(by)
    const held = this.heldBy(by)
    const listed = Array.from(held, ([runId, token]) => ({ runId, token, extendMs: null }))
    const beat = await line.beat({ session, leaseMs: sessionMs, held: listed })
    for (const runId of beat.lost) held.delete(runId)
    // An ended session never comes back.
    if (!beat.alive) {
      this.ended.set(by, (this.ended.get(by) ?? 0) + 1)
      held.clear()
      return new Map()
    }
    const unknown = new Map(beat.unknownLeases.map(({ runId, token }) => [runId, token]))
    const forgotten = [...unknown].filter(([runId, token]) => !held.has(runId) && strange.get(runId) === token)
    if (forgotten.length > 0) {
      await line.release(forgotten.map(([runId, token]) => ({ runId, token, session })))
    }
    const isolated = this.draw.chance(0.2)
    const { runs } = await line.claim({
      session,
      selectors: [...selectors],
      limit: 3,
      ...(isolated ? { isolated } : {}),
    })
    for (const run of runs)
      void (run.type === selectors[0].type ? this.drain(by, line, run) : this.perform(by, line, run))
    return unknown
  }

  private heldBy(by: Incarnation): Map<string, number> {
    const known = this.held.get(by) ?? new Map<string, number>()
    this.held.set(by, known)
    return known
  }

  /** Does it under the lease of the run, and gives the run back if it cannot be done. */
  private async holding(
    by: Incarnation,
    line: Store,
    { id: runId, token, session: holder }: Run,
    work: () => Promise<void>,
  ): Promise<void> {
    const session = holder ?? ''
    this.heldBy(by).set(runId, token)
    try {
      await work()
    } catch {
      await line.release([{ runId, session, token }]).catch(() => undefined)
    } finally {
      this.heldBy(by).delete(runId)
    }
  }

  private pause(by: Incarnation): Promise<void> {
    return new Promise((resolve) => this.world.after(this.draw.between(20, 600), by, 'effect', resolve))
  }

  /** Performs an effect, and settles it with its instance if that can be read. */
  private perform(by: Incarnation, line: Store, run: Run): Promise<void> {
    return this.holding(by, line, run, async () => {
      const lease = { session: run.session ?? '', token: run.token }
      if (run.status === 'running') await this.pause(by)
      const isCancelled = run.status === 'cancelling'
      const instance = run.parentId === null || isCancelled ? null : await read(line, run.parentId)
      const kind = isCancelled ? 'cancelled' : this.draw.pick(['succeeded', 'succeeded', 'failed'] as const)
      const settles =
        instance === null || kind === 'cancelled' || this.draw.chance(0.2)
          ? null
          : outcome(instance, { id: this.unique(), child: run.id, kind })
      const plain = { due: null, parkIf: null, undo: null, continues: null, takes: [] } as const
      const end = { id: this.unique(), runId: run.id, guard: { seq: run.seq, lease }, ...plain }
      if (kind === 'cancelled') {
        const meta = { reason: null, notUndone: [] }
        await this.send(line, { ...end, append: [{ kind, name: null, meta, data: null }], status: kind })
      } else {
        const ended = { ...end, append: [{ kind, name: null, meta: null, data: '1' }], status: kind } as const
        const answer = await this.send(line, { ...ended, settles })
        if (answer.outcome === 'refused') throw new Error(answer.reason)
      }
    })
  }

  /** Reads the mailbox of an instance, decides all of it, and parks the instance. */
  private drain(by: Incarnation, line: Store, run: Run): Promise<void> {
    return this.holding(by, line, run, async () => {
      const lease = { session: run.session ?? '', token: run.token }
      let known = run.inbox
      for (;;) {
        const journal = await read(line, run.id)
        const messages = journal.messages ?? []
        const commands = messages.filter(({ kind }) => kind === 'signal').map(({ id }) => id)
        const ended = messages.filter(({ kind }) => kind === 'ended').map(({ name }) => name)
        const inbox = Math.max(known, ...messages.map(({ position }) => position))
        const takes = messages.map(({ id }) => id)
        const made = decided(journal, { id: this.unique(), commands, ended, effect: null, isOver: false })
        const answer = await this.send(line, {
          ...made,
          guard: { ...made.guard, lease },
          ...(takes.length === 0 ? { append: [] } : {}),
          parkIf: { inbox },
          takes,
        })
        if (answer.outcome === 'refused') throw new Error(answer.reason)
        if (answer.released) return
        // What has come by then is read next.
        known = answer.inbox
      }
    })
  }
}

/** Only some seeds have them. */
export function instancesOf(
  { seed }: Scenario,
  world: World,
  processes: readonly SimProcess[],
  checker: Checker,
): Instances | null {
  return seed < firstSeed || seed >= firstAccountSeed ? null : new Instances(seed, world, processes, checker)
}

async function read(line: Store, runId: string): Promise<Journal> {
  const [loaded] = await line.load([{ runId, after: 0, limit: 100_000 }])
  const [run] = await line.get([runId])
  if (run === undefined || loaded === undefined) throw new Error('there is no such run')
  const { entries, messages } = loaded
  return { run: { id: runId, seq: entries.length, status: run.status }, entries, messages }
}
