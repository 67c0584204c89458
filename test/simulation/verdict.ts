// What must be true when everything has healed and come to rest: every run has ended as its program says, or as somebody
// wanted; what it returned is what was recorded; what was to be undone was; and everybody was told the truth.

import { jsonCodec } from '../../src/core/codec.ts'
import type { Entry } from '../../src/core/entry.ts'
import { isTerminal } from '../../src/core/run.ts'
import type { Checker, Known } from './checker.ts'
import { isOf, type Effects } from './effects.ts'
import { interpret, shapeOf, stepsOf } from './interpreter.ts'
import type { Operator } from './operator.ts'
import type { Program, ProgramInput, StepNode } from './program.ts'
import type { Scenario } from './scenario.ts'

const codec = jsonCodec()
/** As in the rescuer: a run whose holders died so many times in a row is given up. */
const maxCrashes = 5

export function checkEnd(scenario: Scenario, checker: Checker, effects: Effects, operator: Operator): void {
  if (!operator.isDone) checker.report({ name: 'start_eventually', runId: null, told: 'a start was never answered' })
  for (const { runId } of operator.acknowledged) {
    if (!checker.runs.has(runId)) checker.report({ name: 'start_is_durable', runId, told: 'it is not there any more' })
  }
  for (const known of checker.runs.values()) new End(scenario, checker, effects, operator, known).check()
  checkTold(checker, operator)
  checkAccepted(checker, operator)
  checker.checkFleet()
}

function checkTold(checker: Checker, { results }: Operator): void {
  for (const { runId, result } of results) {
    const known = checker.runs.get(runId)
    // Somebody may have let a failed run go on after its end was told.
    if (known === undefined || known.entries.some(({ kind }) => kind === 'retried')) continue
    const { status } = known.run
    const last = known.entries.at(-1)
    const data = last?.kind === 'succeeded' ? JSON.stringify(decode(known, last)) : null
    const isSo = status === result.status && (result.status !== 'succeeded' || JSON.stringify(result.value) === data)
    if (!isSo) checker.report({ name: 'told_the_truth', runId, told: `${result.status}, but it is ${status}` })
  }
}

/** Every signal that was accepted was read, or was there when its run ended. */
function checkAccepted(checker: Checker, { accepted }: Operator): void {
  for (const { runId, id } of accepted) {
    const known = checker.runs.get(runId)
    const isKnown =
      known?.messages.some((message) => message.id === id) === true ||
      known?.taken?.some((message) => message.id === id) === true
    if (!isKnown) checker.report({ name: 'signal_not_lost', runId, told: `${id} is nowhere` })
  }
}

function decode({ run }: Known, { data, seq, name }: Entry): unknown {
  return codec.decode(data ?? 'null', { runId: run.id, seq, name })
}

class End {
  private readonly scenario: Scenario
  private readonly checker: Checker
  private readonly effects: Effects
  private readonly asked: ReadonlySet<string>
  private readonly known: Known
  /** Its entries since it last began. */
  private readonly entries: readonly Entry[]

  constructor(scenario: Scenario, checker: Checker, effects: Effects, operator: Operator, known: Known) {
    this.scenario = scenario
    this.checker = checker
    this.effects = effects
    this.known = known
    this.asked = operator.steered.get(known.run.id) ?? new Set()
    this.entries = known.entries.slice(known.run.base - 1)
  }

  check(): void {
    const { run } = this.known
    this.checkSteps()
    if (run.deletedAt !== null) return
    if (!isTerminal(run.status)) return this.fail('ends_after_heal', `it is ${run.status} and ${run.readiness}`)
    const [first] = this.entries
    if (first === undefined) return
    const { program: index } = decode(this.known, first) as ProgramInput
    const program = this.scenario.programs[index]
    if (program === undefined) return this.fail('input_is_kept', `program ${index}`)
    if (run.status === 'succeeded') this.checkSuccess(program)
    else if (run.status === 'failed') this.checkFailure(program)
    else if (!this.asked.has('cancel') && !this.hasOutlivedItsParent) this.fail('nobody_cancelled', 'it was cancelled')
    if (run.status !== 'succeeded') this.checkUndone(program)
  }

  private get last(): Entry {
    return this.known.entries.at(-1) as Entry
  }

  /** Its parent came to an end before it did, if perhaps not for good, or was removed. */
  private get hasOutlivedItsParent(): boolean {
    const { parentId, endedAt } = this.known.run
    const parent = parentId === null ? undefined : this.checker.runs.get(parentId)
    const isEnd = ({ kind, at }: Entry): boolean =>
      (kind === 'succeeded' || kind === 'failed' || kind === 'cancelled') && at <= (endedAt ?? 0)
    return parent !== undefined && (parent.run.deletedAt !== null || parent.entries.some(isEnd))
  }

  /** A run that it started came to an end that its program does not say: it was given up, or cancelled. */
  private get hasUnluckyChild(): boolean {
    for (const { run, entries } of this.checker.runs.values()) {
      if (run.parentId !== this.known.run.id) continue
      const data = entries.at(-1)?.data ?? ''
      if (run.status === 'cancelled' || data.includes('RUN_CRASHED') || data.includes('CHILD_')) return true
    }
    return false
  }

  private checkSuccess(program: Program): void {
    if (this.hasUnluckyChild) return
    const expected = interpret(program, this.scenario.programs)
    const output = decode(this.known, this.last)
    if (expected.status !== 'succeeded')
      return this.fail('right_answer', `it succeeded, expected ${expected.errors.join()}`)
    const [shape, wanted] = [JSON.stringify(shapeOf(output)), JSON.stringify(expected.shape)]
    if (shape !== wanted) this.fail('right_answer', `${shape} instead of ${wanted}`)
    const recorded = this.recorded('step-succeeded', 'woken')
    for (const [text] of (this.last.data ?? '').matchAll(/\{"s":"\w+","n":\d+\}/g)) {
      if (!recorded.includes(text)) this.fail('recorded_is_returned', `${text} was returned and never recorded`)
    }
    const values = this.recorded('recorded', 'woken')
    for (const [, value] of (this.last.data ?? '').matchAll(/\{"v":("[^"]*"|[^}]*)\}/g)) {
      if (!values.includes(value ?? '')) this.fail('recorded_is_returned', `the value ${value} was never recorded`)
    }
  }

  /** What entries of these kinds say. Children hand on what they recorded. */
  private recorded(...kinds: readonly Entry['kind'][]): string {
    return this.entries.map(({ kind, data }) => (kinds.includes(kind) ? data : '')).join('\n')
  }

  private checkFailure(program: Program): void {
    const data = this.last.data ?? ''
    const { run } = this.known
    const expected = interpret(program, this.scenario.programs)
    if (data.includes('RUN_CRASHED')) {
      // Once it is given up, whoever undoes it may die, too: that counts from the beginning.
      const failing = this.known.entries.findLastIndex(({ kind }) => kind === 'failing')
      const before = failing === -1 ? this.known.entries : this.known.entries.slice(0, failing)
      const crashed = before.findLast((entry) => entry.kind === 'crashed')
      if (crashed?.kind !== 'crashed' || crashed.meta.crashes < maxCrashes) this.fail('gives_up_rightly', 'RUN_CRASHED')
      return
    }
    if (data.includes('CHILD_') && this.hasUnluckyChild) return
    const plan = this.scenario.operations.find(
      (operation) => operation.kind === 'start' && this.scenario.programs[operation.program] === program,
    )
    if (plan?.kind !== 'start' && !program.isChild) return
    const aged = this.last.at - run.createdAt
    if (data.includes('RUN_TIMEOUT') && plan?.kind === 'start' && plan.timeoutMs !== null && aged >= plan.timeoutMs)
      return
    if (data.includes('RUN_EXPIRED') && plan?.kind === 'start' && plan.expiresInMs !== null && aged >= plan.expiresInMs)
      return
    if (expected.status === 'failed' && expected.errors.some((text) => data.includes(text))) return
    const wanted = expected.status === 'failed' ? expected.errors.join(' or ') : 'success'
    this.fail('right_answer', `it failed with ${data.slice(0, 200)}, expected ${wanted}`)
  }

  /** Everything that was recorded did happen. */
  private checkSteps(): void {
    for (const entry of this.known.entries) {
      if (entry.kind !== 'step-succeeded') continue
      const { s, n } = decode(this.known, entry) as { readonly s: string; readonly n: number }
      const effect = this.effects.all[n - 1]
      if (effect?.isDone !== true || effect.step !== s || effect.runId !== this.known.run.id || !isOf(entry.name, s)) {
        this.fail('effects_at_least_once', `${entry.name} is recorded with ${entry.data}, which did not happen`)
      }
    }
    const undone = this.entries.filter(({ kind }) => kind === 'undone' || kind === 'undo-failed')
    if (new Set(undone.map(({ name }) => name)).size < undone.length) this.fail('undone_once', names(undone))
    const places = undone.map(({ name }) => this.outcomeOf(name))
    if (places.some((seq, index) => index > 0 && seq > (places[index - 1] ?? 0))) {
      this.fail('undone_in_reverse', names(undone))
    }
  }

  private outcomeOf(name: string | null): number {
    return this.entries.findLast((entry) => entry.kind === 'step-succeeded' && entry.name === name)?.seq ?? 0
  }

  private checkUndone(program: Program): void {
    const { run } = this.known
    const crashes = this.known.entries.findLast((entry) => entry.kind === 'crashed')
    const isGivenUp = crashes?.kind === 'crashed' && crashes.meta.crashes >= maxCrashes
    // Whoever cancels at once, and whoever gives up, undoes nothing.
    if (isGivenUp || (run.status === 'cancelled' && this.asked.has('now'))) return
    const undoable = new Map<string, StepNode>(stepsOf(program.nodes).map((step) => [step.name, step]))
    const { last } = this
    const notUndone = last.kind === 'failed' || last.kind === 'cancelled' ? (last.meta?.notUndone ?? []) : []
    for (const entry of this.entries) {
      if (entry.kind !== 'step-succeeded') continue
      const { s } = decode(this.known, entry) as { readonly s: string }
      const how = undoable.get(s)?.undo ?? 'none'
      if (how === 'none') continue
      const end = this.entries.find(
        ({ kind, name }) => (kind === 'undone' || kind === 'undo-failed') && name === entry.name,
      )
      // An undo is tried as often as its step, so that a second try may not be allowed.
      const isHopeless = how === 'badly' || (how === 'second try' && undoable.get(s)?.attempts === 1)
      const isRight = end?.kind === (isHopeless ? 'undo-failed' : 'undone')
      if (!isRight) this.fail('everything_is_undone', `${entry.name} (${how}) has ${end?.kind ?? 'nothing'}`)
      if ((end?.kind === 'undo-failed') !== notUndone.includes(entry.name)) {
        this.fail('tells_what_is_not_undone', `${entry.name} among [${notUndone.join()}], ${end?.kind}`)
      }
    }
  }

  private fail(name: string, told: string): void {
    this.checker.report({ name, runId: this.known.run.id, told })
  }
}

function names(entries: readonly Entry[]): string {
  return entries.map(({ name }) => name).join(', ')
}
