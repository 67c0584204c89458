// Programs as data: what the runs of a simulation do. A program has a computable answer (interpreter.ts); this file holds
// what it consists of, and the body that performs it on the real engine.
//
// What a step returns carries a number that no other attempt of any step has, so that every reader of a result can say
// which attempt made it.

import type { Context } from '../../src/functions/api/context.ts'
import { isHoldfastError } from '../../src/core/errors/error.ts'
import type { StepTools } from '../../src/core/runtime/attempt.ts'
import type { Wait } from '../../src/functions/waits/wait.ts'
import { workflow, type Workflow } from '../../src/functions/api/workflow.ts'

import {
  topics,
  type ChildNode,
  type EarlyNode,
  type Node,
  type Payload,
  type SendNode,
  type StepNode,
  type WaitNode,
} from './node.ts'

export interface Program {
  readonly nodes: readonly Node[]
  /** How often it begins anew before it returns. */
  readonly again: number
  /** Runs of the second type have a lease of their own. */
  readonly type: 'plain' | 'leased'
  /** Only other programs start it. */
  readonly isChild: boolean
}

export interface ProgramInput {
  readonly program: number
  readonly round: number
  /** The run whose end it waits for, of one in a crowd. */
  readonly of?: string
}

/** What a step returns. */
export interface StepResult {
  readonly s: string
  readonly n: number
}

/** What the body lends from the process that it runs in. */
export interface Stagehand {
  program(index: number): Program
  /** Waits in the process's own time; rejects when the signal aborts. */
  pause(ms: number, signal: AbortSignal | null): Promise<void>
  /** Ends the process. Nothing comes back from this. */
  die(): Promise<never>
  /** How often this step of this run has begun before. */
  begun(runId: string, step: string): number
  /** An effect on the world outside begins; the number is its own. */
  begins(effect: Beginning): number
  ends(effect: number, isDone: boolean): void
  /** The body got this far. */
  saw(what: Seen): void
  /** The body took a value: `place` says where. */
  took(what: Taken): void
}

export interface Beginning {
  readonly runId: string
  readonly round: number
  readonly step: string
  readonly kind: 'do' | 'undo'
  readonly attempt: number
  readonly key: string
  /** What the body had seen when it asked for this. */
  readonly seen: readonly number[]
  /** The step can be undone. */
  readonly isUndoable: boolean
  /** What an undo was given. */
  readonly result: number | null
}

export interface Seen {
  readonly runId: string
  readonly round: number
  readonly step: string
  readonly n: number
}

export interface Taken {
  readonly runId: string
  readonly round: number
  readonly place: string
  readonly value: string
}

const leasedMs = 2_500

/** The definitions of one process. */
export function programWorkflows(hand: Stagehand): readonly Workflow<ProgramInput, unknown>[] {
  const retry = { maxAttempts: 2, initial: 40, jitter: { mode: 'none' } } as const
  const body = (ctx: Context, input: ProgramInput): Promise<unknown> =>
    new Performance(hand, workflows, ctx, input).run()
  const workflows: Workflows = {
    plain: workflow<ProgramInput, Promise<unknown>>('sim.plain', { retry, feed: true }, body),
    leased: workflow<ProgramInput, Promise<unknown>>('sim.leased', { retry, lease: leasedMs }, body),
  }
  return Object.values(workflows)
}

type Workflows = Readonly<Record<Program['type'], Workflow<ProgramInput, unknown>>>

/** One execution of a program's body. */
class Performance {
  private readonly hand: Stagehand
  private readonly workflows: Workflows
  private readonly ctx: Context
  private readonly input: ProgramInput
  /** The numbers of the results that the body has seen. */
  private readonly seen: number[] = []

  constructor(hand: Stagehand, workflows: Workflows, ctx: Context, input: ProgramInput) {
    this.hand = hand
    this.workflows = workflows
    this.ctx = ctx
    this.input = input
  }

  async run(): Promise<unknown> {
    const { ctx, input, hand } = this
    const { nodes, again } = hand.program(input.program)
    const values = await this.sequence(nodes, ctx)
    if (input.round < again) return ctx.continueAsNew({ program: input.program, round: input.round + 1 })
    return { round: input.round, values }
  }

  private async sequence(nodes: readonly Node[], ctx: Context): Promise<unknown[]> {
    const values: unknown[] = []
    for (const node of nodes) values.push(await this.perform(node, ctx))
    return values
  }

  private async perform(node: Node, ctx: Context): Promise<unknown> {
    switch (node.do) {
      case 'step':
        return node.asks ? this.asking(node, ctx) : this.step(node, ctx)
      case 'sleep':
        await ctx.sleep(node.ms)
        return 'slept'
      case 'value':
        return { v: node.of === 'now' ? ctx.now().getTime() : node.of === 'random' ? ctx.random() : ctx.uuid() }
      case 'note':
        if (node.of === 'log') ctx.log('noted')
        else ctx.progress(0.5)
        return 'noted'
      case 'patched':
        return { p: ctx.patched(node.name) }
      case 'together':
        return Promise.all(
          node.parts.map((part, index) => ctx.branch(`b${index}`, (inner) => this.sequence(part, inner))),
        )
      case 'try':
        try {
          return await this.sequence(node.part, ctx)
        } catch {
          return ['caught', ...(await this.sequence(node.caught, ctx))]
        }
      case 'throw':
        throw new Error(node.message)
      case 'wait':
        return this.wait(node, ctx)
      case 'child':
        return this.child(node, ctx)
      case 'early':
        return this.early(node, ctx)
      case 'many':
        return this.many(node.count, ctx)
      case 'crowd':
        for (const { program, onParentEnd } of node.members) {
          const input = { program, round: 0, of: ctx.run.id }
          ctx.child(this.workflows[this.hand.program(program).type], input, { onParentEnd })
        }
        return 'crowded'
      case 'watch':
        return this.watch(ctx)
      case 'send':
        return this.send(node, ctx)
    }
  }

  private async wait({ on, ms }: WaitNode, ctx: Context): Promise<unknown> {
    const signal = on === 'news' || on === 'jobs' ? ctx.receive(topics[on]) : ctx.receive<Payload>(on)
    if (ms === null) return { w: (await signal).sent }
    const first = await ctx.race({ got: signal, late: ctx.sleep(ms) })
    return { w: first.tag === 'got' ? first.value.sent : 'late' }
  }

  private child(node: ChildNode, ctx: Context): Promise<unknown> {
    return this.endOf(this.makeChild(node, ctx), node.ms, ctx)
  }

  private makeChild({ program, onParentEnd }: ChildNode, ctx: Context): Wait<unknown> {
    const { type } = this.hand.program(program)
    return ctx.child(this.workflows[type], { program, round: 0 }, { onParentEnd })
  }

  private async endOf(child: Wait<unknown>, ms: number | null, ctx: Context): Promise<unknown> {
    if (ms === null) return { c: await child }
    try {
      return { r: (await ctx.race({ child, late: ctx.sleep(ms) })).tag }
    } catch (error) {
      if (isHoldfastError(error, 'CHILD_FAILED') || isHoldfastError(error, 'CHILD_CANCELLED')) return { r: error.code }
      throw error
    }
  }

  private async early({ wait, part, fate }: EarlyNode, ctx: Context): Promise<unknown> {
    const made = wait.do === 'sleep' ? ctx.sleep(wait.ms) : this.makeChild(wait, ctx)
    const first = await this.sequence(part, ctx)
    if (fate === 'left') return { first, fate }
    const lateMs = fate === 'raced' ? (wait.ms ?? 300) : null
    if (wait.do === 'child') return { first, later: await this.endOf(made, lateMs, ctx) }
    if (lateMs !== null) return { first, later: { r: (await ctx.race({ made, late: ctx.sleep(lateMs) })).tag } }
    await made
    return { first, later: 'slept' }
  }

  private async watch(ctx: Context): Promise<unknown> {
    try {
      return { r: (await ctx.waitFor(this.input.of ?? '')).status }
    } catch (error) {
      // An operator has removed it.
      if (isHoldfastError(error, 'RUN_NOT_FOUND')) return { r: error.code }
      throw error
    }
  }

  private async send({ to }: SendNode, ctx: Context): Promise<unknown> {
    const payload: Payload = { sent: `${ctx.run.id} ${to}` }
    if (to === 'news' || to === 'jobs') await ctx.broadcast(topics[to], payload)
    else await ctx.signal(to === 'self' ? ctx.run.id : (this.input.of ?? ''), 'mine', payload)
    return { w: to === 'self' ? (await ctx.receive<Payload>('mine')).sent : 'sent' }
  }

  private async many(count: number, ctx: Context): Promise<unknown> {
    const values = Array.from({ length: count }, (_, index) => index)
    for (const _ of values) ctx.random()
    const done = await Promise.all(values.map((index) => ctx.step(`m${index}`, () => ({ m: index }))))
    return { m: done.filter(({ m }, index) => m === index).length }
  }

  private async asking(node: StepNode, ctx: Context): Promise<unknown> {
    const before = this.take(`${node.name} before`, ctx)
    const result = await this.step(node, ctx)
    return [before, result, this.take(`${node.name} after`, ctx)]
  }

  private take(place: string, ctx: Context): { readonly v: string } {
    const value = ctx.uuid()
    this.hand.took({ runId: ctx.run.id, round: this.input.round, place, value })
    return { v: value }
  }

  private async step(node: StepNode, ctx: Context): Promise<StepResult> {
    const { hand, input, seen } = this
    const runId = ctx.run.id
    const seenBefore = [...seen]
    const retry = {
      maxAttempts: node.attempts,
      initial: node.retryMs,
      kind: 'constant',
      max: node.retryMs,
      jitter: { mode: 'none' },
    } as const
    const undo = { undo: (given: StepResult | undefined, tools: StepTools) => this.undo(node, runId, given, tools) }
    const result = await ctx.step<StepResult>(node.name, (tools) => this.attempt(node, ctx, tools, seenBefore), {
      retry,
      ...(node.timeoutMs === null ? {} : { timeout: node.timeoutMs }),
      ...(node.undo === 'none' ? {} : undo),
    })
    seen.push(result.n)
    hand.saw({ runId, round: input.round, step: node.name, n: result.n })
    return result
  }

  private async attempt(node: StepNode, ctx: Context, tools: StepTools, seen: readonly number[]): Promise<StepResult> {
    const { hand, input } = this
    const runId = ctx.run.id
    const { attempt, idempotencyKey: key } = tools
    const of = { runId, round: input.round, step: node.name, kind: 'do', result: null } as const
    const isDeadly = node.kills > 0 && hand.begun(runId, node.name) < node.kills
    const n = hand.begins({ ...of, attempt, key, seen, isUndoable: node.undo !== 'none' })
    let isDone = false
    try {
      await this.pause(node, tools)
      if (node.asks) await askInside(ctx)
      if (isDeadly) await hand.die()
      if (attempt <= node.fails) throw new Error(`${node.name} fails`)
      isDone = true
      return { s: node.name, n }
    } finally {
      hand.ends(n, isDone)
    }
  }

  /** Takes as long as the step says. Under a lease of its own it says now and then that it is alive. */
  private async pause({ ms, heeds }: StepNode, tools: StepTools): Promise<void> {
    const signal = heeds ? tools.abortSignal : null
    for (let left = ms; left > 0; left -= leasedMs / 3) {
      await this.hand.pause(Math.min(left, leasedMs / 3), signal)
      if (left > leasedMs / 3) this.beat(tools, heeds)
    }
  }

  private beat(tools: StepTools, heeds: boolean): void {
    try {
      tools.heartbeat()
    } catch (error) {
      if (heeds) throw error
    }
  }

  private async undo(node: StepNode, runId: string, given: StepResult | undefined, tools: StepTools): Promise<void> {
    const { hand, input } = this
    const { attempt, idempotencyKey: key } = tools
    const of = { runId, round: input.round, step: node.name, kind: 'undo', seen: [], isUndoable: true } as const
    const n = hand.begins({ ...of, attempt, key, result: given?.n ?? null })
    let isDone = false
    try {
      await this.pause(node, tools)
      if (node.undo === 'badly' || (node.undo === 'second try' && attempt === 1)) {
        throw new Error(`${node.name} cannot be undone`)
      }
      isDone = true
    } finally {
      hand.ends(n, isDone)
    }
  }
}

/** What no step may do, and what its author does not notice: the refusal is caught. */
async function askInside(ctx: Context): Promise<void> {
  await Promise.resolve()
  try {
    ctx.uuid()
  } catch {
    // It goes on without.
  }
}
