// One batch: inputs decided in order, with the timers that are due among them, as one transition. Whatever goes wrong with an
// input is taken back and harms that input alone.
//
//   a call that fails, or a first input that is rejected   nothing of it is recorded: the caller has the answer
//   a message that fails                                   recorded as failed: it leaves the mailbox
//   the result of an effect that fails                     nothing of it is recorded: the attempt of the effect has failed
//   a timer that fails                                     recorded as a failed attempt, and due again later, until it gives up
//   a dead letter whose input fails                        recorded as failed, after the outcome that it reports
//   the input that the run was started with                rejected or failed: the run is over

import type { Answer, Decided, Failed, Offer } from '../../core/definition/decider-model.ts'
import { afterFailure } from '../../core/definition/retry.ts'
import { HoldfastError } from '../../core/errors/error.ts'
import type { InputSource } from '../../core/model/entry.ts'
import type { Random } from '../../core/runtime/ports.ts'
import { callPure } from '../../core/runtime/pure-call.ts'
import { quotedText } from '../../core/text/printable.ts'
import type { Typed } from '../api/decision.ts'
import { typedInput } from '../api/identity.ts'
import type { Fold } from '../fold/fold.ts'
import { unkeyed, type Moment, type Timer } from '../fold/timers.ts'
import { callDecide } from './call-decide.ts'
import { decideFailed, tooMuch } from './decide-failed.ts'
import { beginNext, placeInOrder, recordDecision } from './record-decision.ts'
import type { Asking } from './run-requests.ts'
import { Full, TransitionDraft } from './transition-draft.ts'

export interface BatchOptions {
  readonly fold: Fold
  readonly random: Random
  readonly now: number
  /** The answers to the commands that are pending, by the numbers of their inputs. */
  readonly pendingAnswers: Map<number, Answer>
  readonly asking: Asking
}

/** An input on its way to `decide`. */
interface Given {
  readonly from: InputSource
  readonly command: string | null
  /** The input as it is recorded; undefined if its first entry has it. */
  readonly recorded: unknown
  readonly input: unknown
}

type Outcome = Extract<Answer, { outcome: 'accepted' | 'rejected' | 'already-completed' }>

export class Batch {
  readonly since: Moment = { at: null }
  readonly draft: TransitionDraft
  private readonly options: BatchOptions
  private readonly fold: Fold
  private readonly fired: Decided['fired'][number][] = []
  private begun: Answer | null = null
  private isCut = false
  /** The input that is being decided; undefined if it is not known. */
  private current: unknown

  constructor(options: BatchOptions) {
    this.options = options
    this.fold = options.fold
    this.draft = new TransitionDraft(options.fold, this.since)
  }

  decide(offers: readonly Offer[]): Omit<Decided, 'due' | 'snapshotAt'> {
    const { now } = this.options
    const answers: Answer[] = []
    this.decideStart()
    for (const offer of offers) {
      // What became due before a message came is decided before it.
      const by = offer.kind === 'message' ? Math.min(offer.at, now) : now
      if (this.isCut || !this.fireTimers(by)) break
      const answer = this.fitted(() => this.answerTo(offer))
      if (answer === null) break
      answers.push(answer)
    }
    if (answers.length < offers.length) this.isCut = true
    if (!this.isCut) this.isCut = !this.fireTimers(now)
    this.endIfOver()
    const { append, takes, settles, effects, starts, signals, end } = this.draft
    const { begun, fired, isCut } = this
    return { answers, begun, fired, isCut, append, takes, settles, effects, starts, signals, end }
  }

  /** Whether the instance is over; not if that cannot be known, which every input then fails with. */
  private get isOver(): boolean {
    try {
      return this.fold.isOver
    } catch {
      return false
    }
  }

  /** The result of some work, or null if the batch has no room for it and has to be committed first. */
  private fitted<Result extends Answer | 'done'>(work: () => Result): Result | null {
    const mark = this.draft.mark()
    try {
      return work()
    } catch (error) {
      this.draft.back(mark)
      if (!(error instanceof Full)) throw error
      return null
    }
  }

  /** Decides the input that the run was started with, if there is one that is not decided. */
  private decideStart(): void {
    const { first } = this.fold
    if (first === null || first.isDecided || this.fold.hasEnded) return
    const from = { kind: 'start' } as const
    this.begun = this.attempt(
      () => this.record({ from, command: null, recorded: undefined, input: first.read() }),
      (error) => {
        this.draft.add({ kind: 'input', name: null, meta: { from, outcome: 'failed' } })
        this.draft.add({ kind: 'input-failed', name: null, meta: null, error })
        this.fail(error)
      },
    )
    if (this.begun.outcome === 'rejected') this.fail(this.rejectedStart(this.begun.rejection))
  }

  private rejectedStart(rejection: unknown): HoldfastError {
    const { rules, id } = this.fold.options
    return new HoldfastError(
      'INPUT_REJECTED',
      `Decider "${rules.type}" rejected the input that instance ${quotedText(id)} was started with.`,
      { details: { type: rules.type, id, rejection } },
    )
  }

  private fail(error: unknown): void {
    this.draft.add({ kind: 'failed', name: null, meta: null, error })
    this.draft.end = 'failed'
  }

  private answerTo(offer: Offer): Answer {
    switch (offer.kind) {
      case 'call':
        return this.call(offer)
      case 'message':
        return this.message(offer)
      case 'performed':
      case 'gave-up':
        return this.settle(offer)
    }
  }

  private call({ input, command }: Extract<Offer, { kind: 'call' }>): Answer {
    const duplicate = this.duplicateOf(command, input)
    if (duplicate !== null) return duplicate
    const isNew = this.fold.seq === 0
    const mark = this.draft.mark()
    const answer = this.attempt(() => {
      this.current = input
      if (!isNew) return this.record({ from: { kind: 'call' }, command, recorded: input, input })
      this.draft.add({ kind: 'started', name: null, meta: null, value: input })
      return this.record({ from: { kind: 'start' }, command, recorded: undefined, input })
    })
    // Nobody can ask for the first outcome again, or there is no instance yet: the rejection leaves nothing behind.
    const isForgotten = isNew || (command === null && this.fold.options.contentOf === null)
    if (answer.outcome === 'rejected' && isForgotten) this.draft.back(mark)
    // The initial state is terminal already: no instance begins.
    if (answer.outcome === 'already-completed' && isNew) this.draft.back(mark)
    return answer
  }

  private message({ id, read }: Extract<Offer, { kind: 'message' }>): Answer {
    // The end is the last entry: it settles what is left in the mailbox.
    if (this.fold.hasEnded) return { outcome: 'already-completed' }
    const from = { kind: 'message', id } as const
    let input: unknown
    const answer =
      this.duplicateOf(id, undefined) ??
      this.attempt(
        () => {
          input = read()
          return this.duplicateOf(null, input) ?? this.record({ from, command: null, recorded: input, input })
        },
        (error) => this.recordFailed(from, input, error),
      )
    if (answer.outcome === 'duplicate' || answer.outcome === 'already-completed') {
      this.draft.add({ kind: 'input', name: null, meta: { from, outcome: answer.outcome } })
    }
    this.draft.takes.push(id)
    return answer
  }

  private settle(offer: Extract<Offer, { kind: 'performed' | 'gave-up' }>): Answer {
    const { name, meta, message } = offer
    const from = { kind: 'effect', name } as const
    if (this.fold.hasEnded) return { outcome: 'already-completed' }
    const effect = this.fold.effects.get(name) ?? this.fold.dead.get(name)
    if (effect === undefined) {
      if (message !== undefined) this.takeRepeated(from, message)
      return { outcome: 'unknown-effect' }
    }
    const isDone = offer.kind === 'performed'
    let place: ReturnType<typeof placeInOrder> = null
    try {
      place = placeInOrder(this.fold, name)
    } catch (cause) {
      // Its orderBy has changed, and throws. An effect that was performed is reported again, to code that may know better.
      if (isDone) return { outcome: 'failed', error: decideFailed(this.fold.options, undefined, cause) }
    }
    const answer = isDone
      ? this.attempt(() => {
          this.draft.add({ kind: 'effect-succeeded', name, meta })
          return this.follow(from, () => offer.result)
        })
      : this.deadLetter(from, { kind: 'effect-failed', name, meta, error: offer.error }, (onDead) =>
          onDead.onDeadLetter?.(effect.read(), offer.error),
        )
    if (isDone && answer.outcome === 'failed') return answer
    this.draft.settles.push(name)
    if (message !== undefined) this.draft.takes.push(message)
    if (this.draft.end === null) beginNext({ fold: this.fold, draft: this.draft }, place)
    return answer
  }

  /** The message leaves the mailbox, and with an entry: nothing else does. */
  private takeRepeated(from: InputSource, message: string): void {
    this.draft.add({ kind: 'input', name: null, meta: { from, outcome: 'duplicate' } })
    this.draft.takes.push(message)
  }

  /** Records that something gave up, and decides the input that reports it. */
  private deadLetter(
    from: InputSource,
    outcome: Parameters<TransitionDraft['add']>[0],
    inputOf: (rules: Fold['options']['rules']) => unknown,
  ): Answer {
    const { rules } = this.fold.options
    const isAlone = this.draft.append.length === 0
    this.draft.add(outcome)
    return this.attempt(
      () => this.follow(from, () => callPure(`the dead letter of decider "${rules.type}"`, () => inputOf(rules))),
      (error) => this.recordFailed(from, undefined, error),
      isAlone,
    )
  }

  /** Decides the input that follows from something, if one does. */
  private follow(from: InputSource, inputOf: () => unknown): Answer {
    const input = inputOf()
    if (input === undefined) return { outcome: 'settled' }
    return this.record({ from, command: null, recorded: input, input })
  }

  /** False if there is no room for the next one. */
  private fireTimers(by: number): boolean {
    for (;;) {
      const timer = this.isOver ? null : this.fold.timers.firstDue(by)
      if (timer === null) return true
      const answer = this.fitted(() => this.fire(timer))
      if (answer === null) return false
      this.fired.push({ name: timer.name, answer })
    }
  }

  private fire(timer: Timer & { readonly dueAt: number }): Answer {
    const { name, dueAt, failures } = timer
    const { rules } = this.fold.options
    const from = { kind: 'timer', name, dueAt } as const
    const answer = this.attempt(() => {
      const input = timer.input()
      return this.record({ from, command: null, recorded: input, input })
    })
    if (answer.outcome !== 'failed') return answer
    const { error } = answer
    const meta = { attempt: failures + 1, ms: 0 }
    const after = afterFailure(rules.policy, meta.attempt, error, this.options.random)
    if (after.retry) {
      this.draft.add({ kind: 'attempt-failed', name, meta: { ...meta, delayMs: after.delayMs }, error })
      return answer
    }
    const key = name.startsWith(unkeyed) ? null : name
    this.deadLetter(from, { kind: 'timer-failed', name, meta, error }, ({ onDeadTimer }) =>
      onDeadTimer?.({ key, input: timer.input() }, error),
    )
    return answer
  }

  /** The input and what follows from it. Throws if it cannot be decided. */
  private record({ from, command, recorded, input }: Given): Outcome {
    const { fold, draft } = this
    const { now } = this.options
    this.current = input
    if (fold.isOver) return { outcome: 'already-completed' }
    const typed = typedInput(input, fold.options.rules.type)
    const decided = callDecide(fold.options.rules, fold.state, typed, now)
    const outcome = decided.kind === 'decision' ? 'accepted' : 'rejected'
    const seq = draft.next
    const meta = { from, outcome, ...(command === null ? {} : { command }) } as const
    draft.add({ kind: 'input', name: typed.type, meta, value: recorded })
    const answer = decided.kind === 'decision' ? this.accept(decided) : this.reject(decided.rejection)
    const isRepeatable = command !== null || from.kind === 'message' || fold.options.contentOf !== null
    if (isRepeatable) this.options.pendingAnswers.set(seq, answer)
    return answer
  }

  private accept(decided: Extract<ReturnType<typeof callDecide>, { kind: 'decision' }>): Outcome {
    const { now, asking } = this.options
    const events = recordDecision({ fold: this.fold, draft: this.draft, now, asking }, decided)
    return { outcome: 'accepted', events, state: this.fold.state }
  }

  private reject(rejection: unknown): Outcome {
    this.draft.add({ kind: 'input-rejected', name: null, meta: null, value: rejection })
    return { outcome: 'rejected', rejection }
  }

  /**
   * Takes back what an input did before it failed; `recordFailure` records that instead. `isAlone`: nothing of another input is
   * in the batch, so what does not fit now never will.
   */
  private attempt<Result extends Answer>(
    work: () => Result,
    recordFailure: (error: HoldfastError) => void = () => undefined,
    isAlone = this.draft.append.length === 0,
  ): Result | Failed {
    const mark = this.draft.mark()
    this.current = undefined
    try {
      return work()
    } catch (cause) {
      this.draft.back(mark)
      if (cause instanceof Full && !isAlone) throw cause
      const error = decideFailed(this.fold.options, this.current, cause instanceof Full ? tooMuch() : cause)
      recordFailure(error)
      return { outcome: 'failed', error }
    }
  }

  private recordFailed(from: InputSource, input: unknown, error: HoldfastError): void {
    const name = (input as Partial<Typed> | undefined)?.type
    const meta = { from, outcome: 'failed' } as const
    const mark = this.draft.mark()
    try {
      this.draft.add({ kind: 'input', name: typeof name === 'string' ? name : null, meta, value: input })
    } catch (cause) {
      if (cause instanceof Full && mark.append > 0) throw cause
      this.draft.back(mark)
      this.draft.add({ kind: 'input', name: null, meta })
    }
    this.draft.add({ kind: 'input-failed', name: null, meta: null, error })
  }

  private duplicateOf(command: string | null, input: unknown): Extract<Answer, { outcome: 'duplicate' }> | null {
    const { contentOf } = this.fold.options
    const content = input === undefined ? null : (contentOf?.(input) ?? null)
    const of = this.fold.commands.find(command, content, this.options.now)
    if (of === null) return null
    const first = this.options.pendingAnswers.get(of.seq) ?? null
    const isKnown = first?.outcome === 'accepted' || first?.outcome === 'rejected' || first?.outcome === 'failed'
    return { outcome: 'duplicate', of, first: isKnown ? first : null }
  }

  /** An instance that other code has called over now: its end is recorded with whatever else is. */
  private endIfOver(): void {
    if (this.draft.append.length === 0 || this.fold.hasEnded || !this.isOver) return
    this.fitted(() => {
      this.draft.add({ kind: 'succeeded', name: null, meta: null, value: this.fold.state })
      this.draft.end = 'succeeded'
      return 'done'
    })
  }
}
