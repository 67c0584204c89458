// Programs as data: bodies of durable functions (function-programs.ts draws them), and what runs them.
// A body notes everything that it sees, in order; two executions are the same if their notes are.

import type { StepTools } from '../../src/core/runtime/attempt.ts'
import type { Context } from '../../src/functions/api/context.ts'
import { topic } from '../../src/core/definition/declared-topic.ts'
import { workflow, type Workflow } from '../../src/functions/api/workflow.ts'
import { stepOf, type FunctionRig, type Held } from './function-rig.ts'

export type Program =
  | { readonly do: 'step'; readonly name: string; readonly ends: Ends; readonly undo: Undoes | null }
  | { readonly do: 'value'; readonly of: 'now' | 'random' | 'uuid' | 'log' | 'progress' }
  | { readonly do: 'sleep'; readonly ms: number; readonly until: boolean }
  /** A sleep that is made before a part; after it, it is awaited, races with another one, or is left. */
  | { readonly do: 'early'; readonly ms: number; readonly part: Program; readonly fate: 'awaited' | 'raced' | 'left' }
  | { readonly do: 'sequence'; readonly parts: readonly Program[] }
  | { readonly do: 'together'; readonly how: 'all' | 'allSettled' | 'race' | 'any'; readonly parts: readonly Program[] }
  | { readonly do: 'branch'; readonly name: string; readonly part: Program }
  | { readonly do: 'loop'; readonly times: number; readonly part: Program }
  | { readonly do: 'try'; readonly part: Program; readonly caught: Program; readonly at: 'catch' | 'finally' }
  | { readonly do: 'resource'; readonly part: Program }
  /** Several who await one step, each going on after some more awaits. */
  | { readonly do: 'share'; readonly name: string; readonly waits: readonly number[]; readonly part: Program }
  /** A signal to the run itself, or to a run that is looked up by its key and not there. */
  | { readonly do: 'send'; readonly to: 'itself' | 'a key' | 'a topic' }
  /** A step that nobody awaits. */
  | { readonly do: 'unawaited'; readonly name: string }

/** `at once` and `throws at once` are not gated: the order in which they end is not the test's to choose. */
export type Ends =
  'well' | 'badly' | 'second try' | 'late second try' | 'at once' | 'throws at once' | 'throws twice at once'

/** How a step is undone: at its first attempt, at its second after a short or a long delay, or not at all. */
export type Undoes = 'well' | 'second try' | 'late second try' | 'badly'

/** Something that the body saw. `chance` marks what is made anew unless it is recorded. */
export interface Seen {
  readonly what: string
  readonly value: string
  readonly chance: boolean
  /** The turn in which it was seen. */
  readonly turn: number
}

/** A program that can be run, and what its executions leave behind besides the journal. */
export class Play {
  readonly definition: Workflow<unknown, unknown>
  /** What each execution of the body saw; the last is the one that ended, or got furthest. */
  readonly bodies: Seen[][] = []
  /** Attempts that were executed, as `name@attempt`. */
  readonly executed: string[] = []
  /** What a step's function found wrong with the moment at which it was called. */
  readonly broken: string[] = []
  /** Calls of the body that settled, and the turn in which they did; the name only of steps that were executed here. */
  readonly settled: { readonly call: string | null; readonly turn: number }[] = []
  held: Held | null = null
  resourcesHeld = 0
  private readonly rig: FunctionRig
  private readonly swallow: boolean
  private readonly eager: boolean
  private readonly gatesUndo: boolean
  private undoing: StepTools | null = null

  /**
   * `swallow`: every call of the context stands in a try with an empty catch. `eager`: no step waits for its gate.
   * `gatesUndo`: undos wait for theirs.
   */
  constructor(
    rig: FunctionRig,
    program: Program,
    options: { readonly swallow?: boolean; readonly eager?: boolean; readonly gatesUndo?: boolean } = {},
  ) {
    this.rig = rig
    this.eager = options.eager ?? false
    this.swallow = options.swallow ?? false
    this.gatesUndo = options.gatesUndo ?? false
    const retry = { maxAttempts: 2, initial: 50, jitter: { mode: 'none' } } as const
    this.definition = workflow<unknown>('replay.program', { retry }, async (ctx) => {
      const seen: Seen[] = []
      this.bodies.push(seen)
      let ended = false
      const note = (what: string, value: unknown, chance = false): void => {
        if (!ended) seen.push({ what, value: String(value), chance, turn: rig.turns })
      }
      try {
        return await this.perform(program, ctx, note, '')
      } finally {
        ended = true
      }
    })
  }

  get seen(): readonly Seen[] {
    return this.bodies.at(-1) ?? []
  }

  private async perform(program: Program, ctx: Context, note: Note, path: string): Promise<unknown> {
    switch (program.do) {
      case 'step':
        return this.note(note, `${path} step ${program.name}`, () => this.step(program, ctx))
      case 'value':
        return this.value(program.of, ctx, note, path)
      case 'sleep': {
        const at = program.until ? ctx.now() : null
        if (at !== null) note(`${path} now`, at.getTime(), true)
        return this.note(note, `${path} sleep`, async () => {
          await this.wrapped(at === null ? ctx.sleep(program.ms) : ctx.sleepUntil(at.getTime() + program.ms))
          return 'slept'
        })
      }
      case 'early':
        return this.early(program, ctx, note, path)
      case 'sequence': {
        const values: unknown[] = []
        for (const [index, part] of program.parts.entries()) {
          values.push(await this.perform(part, ctx, note, `${path}.${index}`))
        }
        return values
      }
      case 'together':
        return this.note(note, `${path} ${program.how}`, () => {
          const parts = program.parts.map((part, index) => this.perform(part, ctx, note, `${path}.${index}`))
          return together[program.how](parts)
        })
      case 'branch':
        return this.wrapped(ctx.branch(program.name, (inner) => this.perform(program.part, inner, note, `${path}/`)))
      case 'loop':
        for (let time = 0; time < program.times; time += 1) {
          await this.perform(program.part, ctx, note, `${path}*${time}`)
        }
        return program.times
      case 'try':
        return this.attempt(program, ctx, note, path)
      case 'resource':
        return this.wrapped(
          ctx.withResource(
            async () => {
              for (let turn = 0; turn < 2; turn += 1) await this.rig.turn()
              this.resourcesHeld += 1
            },
            async () => {
              await this.rig.turn()
              this.resourcesHeld -= 1
            },
            () => this.perform(program.part, ctx, note, `${path}r`),
          ),
        )
      case 'share':
        return this.share(program, ctx, note, path)
      case 'send':
        return this.note(note, `${path} send to ${program.to}`, async () => {
          await this.wrapped(sendTo(ctx, program.to))
          return 'sent'
        })
      case 'unawaited':
        this.step({ name: program.name, ends: 'well', undo: null }, ctx).catch(() => undefined)
        return 'unawaited'
    }
  }

  private async attempt(
    program: Extract<Program, { do: 'try' }>,
    ctx: Context,
    note: Note,
    path: string,
  ): Promise<unknown> {
    if (program.at === 'finally') {
      try {
        return await this.perform(program.part, ctx, note, `${path}t`)
      } finally {
        await this.perform(program.caught, ctx, note, `${path}f`)
      }
    }
    try {
      return await this.perform(program.part, ctx, note, `${path}t`)
    } catch {
      return this.perform(program.caught, ctx, note, `${path}c`)
    }
  }

  private async early(
    { ms, part, fate }: Extract<Program, { do: 'early' }>,
    ctx: Context,
    note: Note,
    path: string,
  ): Promise<unknown> {
    const made = ctx.sleep(ms)
    await this.perform(part, ctx, note, `${path}e`)
    if (fate === 'left') return fate
    return this.note(note, `${path} ${fate}`, async () => {
      if (fate === 'awaited') return (await this.wrapped(made)) ?? 'slept'
      const won = await this.wrapped(ctx.race({ made, other: ctx.sleep(20) }))
      return (won as { readonly tag: string }).tag
    })
  }

  private share(program: Extract<Program, { do: 'share' }>, ctx: Context, note: Note, path: string): Promise<unknown> {
    const shared = this.step({ name: program.name, ends: 'well', undo: null }, ctx)
    return Promise.all(
      program.waits.map(async (waits, index) => {
        await this.note(note, `${path} awaiter ${index}`, () => shared)
        for (let wait = 0; wait < waits; wait += 1) await Promise.resolve()
        return this.perform(program.part, ctx, note, `${path}s${index}`)
      }),
    )
  }

  private value(of: Extract<Program, { do: 'value' }>['of'], ctx: Context, note: Note, path: string): unknown {
    switch (of) {
      case 'now':
        return note(`${path} now`, ctx.now().getTime(), true)
      case 'random':
        return note(`${path} random`, ctx.random(), true)
      case 'uuid':
        return note(`${path} uuid`, ctx.uuid(), true)
      case 'log':
        return ctx.log(`at ${path}`)
      case 'progress':
        return ctx.progress(0.5)
    }
  }

  private async step({ name, ends, undo }: Omit<StepProgram, 'do'>, ctx: Context): Promise<unknown> {
    const calledAt = this.appended
    const isTwice = ends === 'throws twice at once' || ends === 'second try' || ends === 'late second try'
    const isLate = ends === 'late second try' || undo === 'late second try'
    const maxAttempts = isTwice || undo === 'second try' || undo === 'late second try' ? 2 : 1
    let identity: string | null = null
    const result = ctx.step(
      name,
      (tools) => {
        identity = this.begins(tools, calledAt)
        const fails = ends === 'badly' || ends.startsWith('throws') || (isTwice && tools.attempt === 1)
        const end = (): unknown => {
          if (fails) throw new TypeError(`${name} is bad`)
          return { step: name, attempt: tools.attempt }
        }
        const hasty = this.eager || ends === 'at once' || ends.startsWith('throws')
        return hasty ? end() : this.rig.gated(tools).then(end)
      },
      {
        retry: { maxAttempts, initial: isLate ? 60_000 : 20, kind: 'constant', jitter: { mode: 'none' } },
        ...(undo === null ? {} : { undo: (of: unknown, tools: StepTools) => this.undo(undo, of, tools) }),
      },
    )
    const settled = (): void => void this.settled.push({ call: identity, turn: this.rig.turns })
    result.then(settled, settled)
    return this.wrapped(result)
  }

  private undo(how: Undoes, of: unknown, tools: StepTools): unknown {
    this.beginsUndo(of, tools)
    const over = (): void => {
      if (this.undoing === tools) this.undoing = null
    }
    const end = (): void => {
      if (how === 'badly' || (how !== 'well' && tools.attempt === 1)) throw new TypeError('This cannot be undone')
    }
    if (this.gatesUndo) return this.rig.gated(tools).finally(over).then(end)
    over()
    return end()
  }

  /** The process that ran the undos died. */
  crashed(): void {
    this.undoing = null
  }

  private beginsUndo(of: unknown, tools: StepTools): void {
    const undo = stepOf(tools)
    const name = undo.slice('undo '.length)
    this.executed.push(`${undo}@${tools.attempt}`)
    if (this.undoing !== null) this.broken.push(`${undo} began while ${stepOf(this.undoing)} ran`)
    this.undoing = tools
    if (this.held === null) return
    const { runId } = this.held
    const entries = this.rig.store.journal(runId).filter((entry) => entry.name === name)
    const step = entries.find(({ kind }) => kind === 'step-succeeded')
    if (step?.data !== JSON.stringify(of)) this.broken.push(`${undo} got what the step did not return`)
    if (entries.some(({ kind }) => kind === 'undone' || kind === 'undo-failed')) this.broken.push(`${undo} came again`)
    if (this.rig.committedSeq(runId) < this.appended) this.broken.push(`${undo} began before all was durable`)
  }

  /** A try around a call of the context, with a catch that is empty or throws on. Both take the same microtasks. */
  private async wrapped(call: PromiseLike<unknown>): Promise<unknown> {
    try {
      return await call
    } catch (error) {
      if (!this.swallow) throw error
    }
    return undefined
  }

  private begins(tools: StepTools, calledAt: number): string {
    const step = stepOf(tools)
    this.executed.push(`${step}@${tools.attempt}`)
    if (this.held === null) return step
    const durable = this.rig.committedSeq(this.held.runId)
    // What was under way when a process died is attempted once more.
    const { runId } = this.held
    const found = this.rig.store.journal(runId).slice(0, this.rig.claimedAt.get(runId))
    const wasBegun = found.some(({ kind, name }) => kind === 'begun' && name === step)
    if (this.rig.heard.has(runId) && !wasBegun) this.broken.push(`${step} began in a run that is being cancelled`)
    if (durable < calledAt) this.broken.push(`${step} began at ${durable}, was called at ${calledAt}`)
    return step
  }

  /** How far the frame has written, durable or not. */
  private get appended(): number {
    const frame = this.held?.frame as { readonly writer?: { readonly seq: number } } | undefined
    return frame?.writer?.seq ?? 1
  }

  private async note(note: Note, what: string, work: () => Promise<unknown>): Promise<unknown> {
    try {
      const value = await work()
      note(what, JSON.stringify(value))
      return value
    } catch (error) {
      note(what, `threw ${(error as Error).name}: ${(error as Error).message}`)
      throw error
    }
  }
}

const together = {
  all: (parts: readonly Promise<unknown>[]): Promise<unknown> => Promise.all(parts),
  allSettled: (parts: readonly Promise<unknown>[]): Promise<unknown> => Promise.allSettled(parts),
  race: (parts: readonly Promise<unknown>[]): Promise<unknown> => Promise.race(parts),
  any: (parts: readonly Promise<unknown>[]): Promise<unknown> => Promise.any(parts),
}

type Note = (what: string, value: unknown, chance?: boolean) => void
type StepProgram = Extract<Program, { do: 'step' }>

const news = topic<string>('news')

function sendTo(ctx: Context, to: Extract<Program, { do: 'send' }>['to']): Promise<void> {
  if (to === 'a topic') return ctx.broadcast(news, 'news')
  return ctx.signal(to === 'itself' ? ctx.run.id : { type: 'nobody', key: 'k' }, 'mine', 1)
}
