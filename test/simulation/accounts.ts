// Real deciders in real Holdfasts beside the programs: clients send inputs under command ids until they are answered, and some
// of them once more. What the journals say at the end must be what was asked for, and what callers were answered.
//
// They are in the seeds from `firstAccountSeed` on, so that the seeds before stay what they are.

import { effectRunId } from '../../src/core/deciding/effect-run.ts'
import { isTerminal } from '../../src/core/model/run.ts'
import type { EffectTools, Executed } from '../../src/index.ts'
import { systemDigest } from '../../src/system.ts'
import { accountOf, accountType, isOfAccounts, type Account, type Accounts, type Act, type Ask } from './account.ts'
import { checkAccount, eventsOf, foldOf } from './account-journal.ts'
import type { Checker, Known } from './checker.ts'
import { Draw } from './draw.ts'
import type { Effects } from './effects.ts'
import type { Incarnation, SimProcess } from './process.ts'
import type { Stagehand } from './program.ts'
import type { Scenario } from './scenario.ts'
import type { World } from './world.ts'

export const firstAccountSeed = 2_000_000

const inputs = 30
const retryMs = 2_500
const keys = ['a', 'a', 'b', 'c'] as const

/** A command of a client, and its answers. */
interface Command {
  readonly id: string
  readonly key: string
  readonly ask: Ask
  readonly how: 'execute' | 'enqueue'
  /** How often a client asks: each time until it is answered. */
  left: number
  readonly replies: Reply[]
}

interface Reply {
  readonly outcome: string
  readonly said: unknown
}

export class SimAccounts {
  private readonly draw: Draw
  private readonly world: World
  private readonly processes: readonly SimProcess[]
  private readonly checker: Checker
  private readonly effects: Effects
  private readonly commands: readonly Command[]
  private readonly definitions = new WeakMap<Incarnation, Accounts>()

  constructor(
    { seed, chaosMs }: Scenario,
    world: World,
    processes: readonly SimProcess[],
    checker: Checker,
    effects: Effects,
  ) {
    this.draw = Draw.of(seed, 'instances')
    this.world = world
    this.processes = processes
    this.checker = checker
    this.effects = effects
    this.commands = Array.from({ length: inputs }, (_, index) => this.drawn(index, chaosMs))
  }

  private drawn(index: number, chaosMs: number): Command {
    const { draw } = this
    const command: Command = {
      id: `c${index}`,
      key: draw.pick(keys),
      ask: drawnAsk(draw),
      how: draw.chance(0.3) ? 'enqueue' : 'execute',
      left: draw.pick([1, 1, 2, 3]),
      replies: [],
    }
    const at = draw.between(0, 0.9 * chaosMs)
    this.world.after(at, null, 'input', () => this.ask(command))
    return command
  }

  /** The decider of one process. */
  definition(of: Incarnation, hand: Stagehand): Accounts {
    const known = this.definitions.get(of) ?? accountOf((effect, tools) => this.act(hand, effect, tools))
    this.definitions.set(of, known)
    return known
  }

  private async act(hand: Stagehand, { ms }: Act, tools: EffectTools): Promise<void> {
    const { attempt, idempotencyKey: key, effectId, workflow, abortSignal } = tools
    const instance = [...this.own()].find(({ run }) => run.type === accountType && run.idempotencyKey === workflow.id)
    const runId = effectRunId(systemDigest, instance?.run.id ?? '', Number(effectId))
    const n = hand.begins({
      runId,
      round: 0,
      step: 'act',
      kind: 'do',
      attempt,
      key,
      seen: [],
      isUndoable: false,
      result: null,
    })
    let isDone = false
    try {
      await hand.pause(ms, abortSignal)
      isDone = true
    } finally {
      hand.ends(n, isDone)
    }
  }

  /** A client asks until it is answered, each time another process; some ask again then. */
  private ask(command: Command): void {
    if (command.left === 0) return
    const { current } = this.draw.pick(this.processes)
    const holdfast = current?.isAlive === true ? current.holdfast : null
    if (current !== null && holdfast !== null) {
      const { id, key, ask, how } = command
      const input = { type: 'Do', id: key, command: id, ask } as const
      const definition = this.definitions.get(current) as Accounts
      const before = command.left
      holdfast[how](definition, input, { commandId: id }).then(
        (answer) => {
          command.replies.push(replyOf(answer))
          if (command.left === before) command.left -= 1
        },
        (error: unknown) => this.world.trace.add(() => `${id} of ${key} is not answered: ${String(error)}`),
      )
    }
    this.world.after(this.draw.between(0.2, 1) * retryMs, null, 'input', () => this.ask(command))
  }

  private *own(): Iterable<Known> {
    for (const known of this.checker.runs.values()) if (isOfAccounts(known.run.type)) yield known
  }

  /** Everything was answered, every effect is over, and no instance has anything to decide or to wait for. */
  get isAtRest(): boolean {
    if (this.commands.some(({ left }) => left > 0)) return false
    for (const { run, messages } of this.own()) {
      const isIdle = run.status === 'waiting' && run.readiness === 'idle' && messages.length === 0
      if (!isTerminal(run.status) && !(isIdle && run.type === accountType)) return false
    }
    return true
  }

  async checkEnd(): Promise<void> {
    if (!this.isAtRest) return this.fail('rests_after_heal', null, this.unrest())
    const byKey = new Map([...this.own()].map((known) => [known.run.idempotencyKey, known]))
    for (const command of this.commands) this.checkReplies(command, byKey.get(command.key))
    for (const known of this.own()) {
      if (known.run.type !== accountType) continue
      for (const [name, message] of checkAccount(known, this.checker, this.effects)) {
        this.fail(name, known.run.id, message)
      }
      await this.checkState(known)
    }
  }

  private unrest(): string {
    const open = this.commands.filter(({ left }) => left > 0).map(({ id, key }) => `${id} of ${key}`)
    const busy = [...this.own()].flatMap(({ run }) =>
      isTerminal(run.status) ? [] : [`${run.type} ${run.idempotencyKey} is ${run.status} and ${run.readiness}`],
    )
    return [...open, ...busy].join('; ')
  }

  /** All answers to one command are the first one, and the journal has what they say. */
  private checkReplies({ id, key, ask, replies }: Command, known: Known | undefined): void {
    const decided = replies.filter(({ outcome }) => outcome !== 'queued')
    // Nothing is left of the rejection of a first input: the same command may find the instance over.
    const kinds = new Set(
      decided.map(({ outcome, said }) =>
        ask.kind === 'refuse' && outcome !== 'accepted' ? 'not accepted' : JSON.stringify([outcome, said]),
      ),
    )
    if (kinds.size > 1) this.fail('same_answer', known?.run.id ?? null, `${id} of ${key}: ${[...kinds].join(' and ')}`)
    const wasAccepted = decided.some(({ outcome }) => outcome === 'accepted')
    const isRecorded = eventsOf(known?.entries ?? []).some((event) => event.type === 'Done' && event.command === id)
    if (wasAccepted && !isRecorded)
      this.fail('accepted_is_durable', known?.run.id ?? null, `${id} of ${key} is nowhere`)
    const isOver = known !== undefined && isTerminal(known.run.status)
    const isNowhere = ask.kind !== 'refuse' && !isRecorded && !isOver
    if (isNowhere) this.fail('input_not_lost', known?.run.id ?? null, `${id} of ${key} is nowhere`)
  }

  /** Every process has the fold of the journal, whatever it has kept in memory. */
  private async checkState({ run, entries }: Known): Promise<void> {
    const folded = JSON.stringify(foldOf(entries))
    for (const { holdfast, current } of this.processes) {
      const definition = current === null ? undefined : this.definitions.get(current)
      if (holdfast === null || definition === undefined) continue
      const read: { state: Account | null | undefined } = { state: null }
      holdfast.state(definition, run.idempotencyKey ?? '').then(
        (state) => (read.state = state),
        (error: unknown) => this.fail('state_is_fold', run.id, String(error)),
      )
      await this.world.run(() => read.state !== null || this.checker.violations.length > 0, this.world.now + 60_000)
      const shown = JSON.stringify(read.state)
      if (shown !== folded)
        this.fail('state_is_fold', run.id, `${current?.label} has ${shown}, and its events ${folded}`)
    }
  }

  private fail(name: string, runId: string | null, message: string): void {
    this.checker.report({ name, runId, message })
  }
}

/** Only some seeds have them. */
export function accountsOf(scenario: Scenario, ...around: AroundAccounts): SimAccounts | null {
  return scenario.seed < firstAccountSeed ? null : new SimAccounts(scenario, ...around)
}

type AroundAccounts = ConstructorParameters<typeof SimAccounts> extends [unknown, ...infer Around] ? Around : never

function drawnAsk(draw: Draw): Ask {
  const roll = draw.fraction()
  if (roll < 0.2) return { kind: 'note' }
  if (roll < 0.45) return { kind: 'act', fails: draw.pick([0, 0, 0, 1, 2]), ms: draw.pick([0, 20, 300, 1_500]) }
  if (roll < 0.75) return { kind: 'set', key: draw.pick(['k', 'k', 'm', null]), ms: draw.pick([0, 50, 700, 3_000]) }
  if (roll < 0.85) return { kind: 'unset', key: draw.pick(['k', 'm']) }
  return { kind: roll < 0.97 ? 'refuse' : 'end' }
}

function replyOf(answer: Executed | { readonly outcome: 'queued' }): Reply {
  switch (answer.outcome) {
    case 'accepted':
      return { outcome: 'accepted', said: answer.events }
    case 'rejected':
      return { outcome: 'rejected', said: answer.rejection }
    default:
      return { outcome: answer.outcome, said: null }
  }
}
