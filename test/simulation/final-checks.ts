// What must be true when everything has healed and come to rest: every run has ended as its program says, or as an operator
// wanted; what it returned is what was recorded; what was to be undone was; and every caller was answered with the truth.

import { jsonCodec } from '../../src/core/payload/codec.ts'
import type { Entry } from '../../src/core/model/entry.ts'
import { nowhere } from '../../src/core/payload/place.ts'
import { isTerminal } from '../../src/core/model/run.ts'
import type { Checker, Known } from './checker.ts'
import { isOf, type Effects } from './effects.ts'
import { isOfInstances } from './instance-journal.ts'
import { interpret, shapeOf, stepsOf } from './interpreter.ts'
import type { Operator } from './operator.ts'
import type { Program, ProgramInput } from './program.ts'
import type { StepNode } from './node.ts'
import type { Scenario } from './scenario.ts'

const codec = jsonCodec()
/** As in the rescuer: a run whose holders died so many times in a row is given up. */
const maxCrashes = 5

export function checkEnd(scenario: Scenario, checker: Checker, effects: Effects, operator: Operator): void {
  if (!operator.isDone) checker.report({ name: 'start_eventually', runId: null, message: 'a start was never answered' })
  for (const { runId } of operator.acknowledged) {
    if (!checker.runs.has(runId))
      checker.report({ name: 'start_is_durable', runId, message: 'it is not there any more' })
  }
  for (const known of checker.runs.values()) {
    if (!isOfInstances(known.run.type)) new End(scenario, checker, effects, operator, known).check()
  }
  for (const { kind, target } of checker.choresLeft) {
    checker.report({ name: 'chores_done', runId: null, message: `something is left to do for ${kind} ${target}` })
  }
  checkAnswers(checker, operator)
  checkAccepted(checker, operator)
  checkSent(checker)
  checker.checkFleet()
}

/** Every message that a run has got of another is that of an entry: it was sent once. */
function checkSent(checker: Checker): void {
  for (const { run, messages, taken = [] } of checker.runs.values()) {
    for (const { id } of [...messages, ...taken]) {
      const [, senderId = '', seq = ''] = /^sent:([^:]+):(.*)$/.exec(id) ?? []
      if (senderId === '') continue
      const entry = checker.runs.get(senderId)?.entries[Number(seq) - 1]
      const isSo = entry?.kind === 'signal-sent' && entry.meta?.to === run.id
      if (!isSo) checker.report({ name: 'sent_once', runId: run.id, message: `it got ${id}, which no entry has sent` })
    }
  }
}

function checkAnswers(checker: Checker, { results }: Operator): void {
  for (const { runId, result } of results) {
    const known = checker.runs.get(runId)
    // An operator may have let a failed run go on after its end was answered.
    if (known === undefined || known.entries.some(({ kind }) => kind === 'retried')) continue
    const { status } = known.run
    const last = known.entries.at(-1)
    const data = last?.kind === 'succeeded' ? JSON.stringify(decode(last)) : null
    const isSo = status === result.status && (result.status !== 'succeeded' || JSON.stringify(result.value) === data)
    if (!isSo) checker.report({ name: 'told_the_truth', runId, message: `${result.status}, but it is ${status}` })
  }
}

/** Every signal that was accepted was read, or was there when its run ended. */
function checkAccepted(checker: Checker, { accepted }: Operator): void {
  for (const { runId, id } of accepted) {
    const known = checker.runs.get(runId)
    const isKnown =
      known?.messages.some((message) => message.id === id) === true ||
      known?.taken?.some((message) => message.id === id) === true
    if (!isKnown) checker.report({ name: 'signal_not_lost', runId, message: `${id} is nowhere` })
  }
}

function decode({ data }: Entry): unknown {
  return codec.decode(data ?? 'null', nowhere)
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
    this.asked = operator.controlled.get(known.run.id) ?? new Set()
    this.entries = known.entries.slice(known.run.base - 1)
  }

  check(): void {
    const { run } = this.known
    this.checkSteps()
    if (run.deletedAt !== null) return
    if (!isTerminal(run.status)) return this.fail('ends_after_heal', `it is ${run.status} and ${run.readiness}`)
    const [first] = this.entries
    if (first === undefined) return
    const { program: index } = decode(first) as ProgramInput
    const program = this.scenario.programs[index]
    if (program === undefined) return this.fail('input_is_kept', `program ${index}`)
    if (run.status === 'succeeded') this.checkSuccess(program)
    else if (run.status === 'failed') this.checkFailure(program)
    else if (!this.asked.has('cancel') && !this.hasOutlivedItsParent) this.fail('nobody_cancelled', 'it was cancelled')
    if (run.status !== 'succeeded') this.checkUndone(program)
    if (run.status !== 'succeeded') this.checkNothingDropped(program)
    this.checkEarly(program)
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
    const output = decode(this.last)
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
    if (data.includes('RUN_CRASHED')) this.fail('gives_up_rightly', 'nothing here wants to fail for its crashes')
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
      const { s, n } = decode(entry) as { readonly s: string; readonly n?: number }
      // The many have no effect.
      if (n === undefined) continue
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

  /** Where it stands that a step happened, or that nobody knows. */
  private outcomeOf(name: string | null): number {
    return this.entries.findLast((entry) => mayHaveHappened(entry) && entry.name === name)?.seq ?? 0
  }

  private checkUndone(program: Program): void {
    const { run } = this.known
    // A cancellation at once and a run that gives up undo nothing.
    if (this.isGivenUp || (run.status === 'cancelled' && this.asked.has('now'))) return
    const undoable = new Map<string, StepNode>(stepsOf(program.nodes).map((step) => [step.name, step]))
    const { last } = this
    const notUndone = last.kind === 'failed' || last.kind === 'cancelled' ? (last.meta?.notUndone ?? []) : []
    for (const entry of this.entries) {
      if (!mayHaveHappened(entry) || entry.name === null) continue
      const s = entry.name.slice(entry.name.lastIndexOf('/') + 1)
      const how = undoable.get(s)?.undo ?? 'none'
      if (how === 'none') continue
      const end = this.entries.find(
        ({ kind, name }) => (kind === 'undone' || kind === 'undo-failed') && name === entry.name,
      )
      const isHopeless = cannotBeUndone(undoable.get(s) as StepNode)
      const isRight = end?.kind === (isHopeless ? 'undo-failed' : 'undone')
      if (!isRight) this.fail('everything_is_undone', `${entry.name} (${how}) has ${end?.kind ?? 'nothing'}`)
      if ((end?.kind === 'undo-failed') !== notUndone.includes(entry.name)) {
        this.fail('tells_what_is_not_undone', `${entry.name} among [${notUndone.join()}], ${end?.kind}`)
      }
    }
  }

  /** What a step that can be undone did to the world is known to the journal of a run that failed or was cancelled. */
  private checkNothingDropped(program: Program): void {
    const { run } = this.known
    if (this.isGivenUp || this.asked.has('now')) return
    const round = (decode(this.entries[0] as Entry) as ProgramInput).round
    const undoable = new Set(stepsOf(program.nodes).flatMap(({ name, undo }) => (undo === 'none' ? [] : [name])))
    for (const { runId, round: of, step, kind, isDone, n } of this.effects.all) {
      const happened = runId === run.id && of === round && kind === 'do' && isDone && undoable.has(step)
      if (!happened) continue
      const isKnown = this.entries.some((entry) => isOutcome(entry) && isOf(entry.name ?? '', step))
      if (!isKnown) this.fail('nothing_is_dropped', `${step} happened (${n}), and nothing is recorded of it`)
    }
  }

  /** What is made early begins then: its entry is committed no later than what came after it; and a child is started once. */
  private checkEarly({ nodes, again }: Program): void {
    const { run } = this.known
    for (const node of nodes) {
      if (node.do !== 'early') continue
      const [first] = node.part
      const outcome = this.entries.find(
        (entry) => isOutcome(entry) && first?.do === 'step' && entry.name === first.name,
      )
      if (outcome === undefined) continue
      const isMade = this.entries.some(
        (entry) => entry.kind === 'waiting' && entry.meta.unawaited === true && entry.at <= outcome.at,
      )
      if (!isMade) this.fail('wait_begins_when_made', `${outcome.name} came before the wait that was made before it`)
      if (node.wait.do !== 'child') continue
      const { program } = node.wait
      const count = [...this.checker.runs.values()].filter(
        ({ run: { parentId }, entries: [start] }) =>
          parentId === run.id && start?.data?.includes(`"program":${program},`) === true,
      ).length
      // A retry of a run that failed with its child drops the end of that child, and so starts another one.
      const most =
        again + 1 + this.known.entries.filter((entry) => entry.kind === 'amended' && entry.meta.dropped).length
      const isRight = count <= most && count >= (run.status === 'succeeded' ? again + 1 : 1)
      if (!isRight) this.fail('child_started_once', `program ${program} was started ${count} times`)
    }
  }

  private get isGivenUp(): boolean {
    const crashes = this.known.entries.findLast((entry) => entry.kind === 'crashed')
    return crashes?.kind === 'crashed' && crashes.meta.crashes >= maxCrashes
  }

  private fail(name: string, message: string): void {
    this.checker.report({ name, runId: this.known.run.id, message: message })
  }
}

function mayHaveHappened(entry: Entry): boolean {
  if (entry.kind === 'step-failed' || entry.kind === 'abandoned') return entry.meta.undo === true
  return entry.kind === 'step-succeeded'
}

/** An undo is tried as often as its step, and may take as long. */
function cannotBeUndone({ undo, attempts, ms, timeoutMs }: StepNode): boolean {
  const isSlow = timeoutMs !== null && ms > timeoutMs
  return isSlow || undo === 'badly' || (undo === 'second try' && attempts === 1)
}

/** Whether it says what became of a step. */
function isOutcome({ kind }: Entry): boolean {
  return kind === 'step-succeeded' || kind === 'step-failed' || kind === 'abandoned' || kind === 'undone'
}

function names(entries: readonly Entry[]): string {
  return entries.map(({ name }) => name).join(', ')
}
