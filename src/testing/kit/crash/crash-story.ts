// A trial in words: where the process died, in which order steps finished, which of them ran twice.

import type { Draft } from '../../../core/model/entry.ts'
import type { StepAttempt } from '../attempts.ts'
import type { TrialPlan } from './trial-plan.ts'
import type { CommitNote, Trial } from './trial.ts'

/** What was different about a trial. `usual` is how many commits the run takes when no process dies. */
export function storyOf({ plan, commits, finished }: TrialFacts, usual: number): string {
  const parts: string[] = []
  if (plan.replayed === true) parts.push('no run stayed in memory while it waited: each was replayed when it continued')
  if (isReordered(plan)) parts.push(`steps finished in the order ${finished.map((step) => `"${step}"`).join(', ')}`)
  if (plan.crash === 'every-commit') parts.push('the process died after every single commit')
  else if (plan.crash !== undefined) parts.push(deathStory(plan.crash, commits, usual))
  return parts.length === 0 ? 'nothing went wrong, and no process died' : parts.join(', and ')
}

/** The facts of a story. */
type TrialFacts = Pick<Trial<unknown>, 'plan' | 'commits' | 'finished'>

/** Whether a step other than the one that began first was released first. */
export function isReordered({ order = [] }: TrialPlan): boolean {
  return order.some((taken) => taken > 0)
}

function deathStory(
  { commit, when }: Exclude<TrialPlan['crash'], string | undefined>,
  commits: readonly CommitNote[],
  usual: number,
): string {
  const drafts = (commits[commit - 1]?.transitions ?? []).flatMap(({ append }) => append)
  const place = `at commit ${commit} of ${usual}`
  const what = [...new Set(drafts.map(wordsFor))].filter((words) => words !== '')
  const text = what.length === 0 ? 'the run was released' : what.join(' and ')
  if (when === 'after') return `the process died right after it was recorded that ${text}, ${place}`
  const onlyStep = drafts.find(({ kind }) => kind === 'step-succeeded')
  return onlyStep === undefined
    ? `the process died when ${text} and before that was recorded, ${place}`
    : `the process died after step "${onlyStep.name}" had run and before its result was recorded, ${place}`
}

function wordsFor({ kind, name }: Draft): string {
  switch (kind) {
    case 'begun':
      return `step "${name}" was about to begin`
    case 'step-succeeded':
      return `step "${name}" had succeeded`
    case 'step-failed':
      return `step "${name}" had given up`
    case 'attempt-failed':
      return name === null ? 'the body had failed' : `an attempt of step "${name}" had failed`
    case 'waiting':
      return `the run began to wait ("${name}")`
    case 'woken':
      return `the wait "${name}" was over`
    case 'continued':
      return 'the run continued as new'
    case 'undone':
      return `step "${name}" had been undone`
    case 'succeeded':
    case 'failed':
    case 'cancelled':
      return 'the run had ended'
    case 'failing':
    case 'cancelling':
      return 'the run was about to be undone'
    default:
      return ''
  }
}

/** A step, or the undo of one, whose function did its work more than once. */
export interface Repeated {
  readonly step: string
  readonly isUndo: boolean
  readonly times: number
  /** It has read its idempotency key at least once. */
  readonly hasReadKey: boolean
}

/** Steps whose functions did their work more than once, although one result of each is recorded. */
export function repeatedIn(attempts: readonly StepAttempt[]): readonly Repeated[] {
  const byKey = new Map<string, StepAttempt[]>()
  for (const attempt of attempts) {
    if (!('result' in attempt)) continue
    byKey.set(attempt.idempotencyKey, [...(byKey.get(attempt.idempotencyKey) ?? []), attempt])
  }
  return [...byKey.values()].flatMap((same) => {
    const [first] = same
    if (first === undefined || same.length < 2) return []
    const { step, isUndo } = first
    return [{ step, isUndo, times: same.length, hasReadKey: same.some(({ hasReadKey }) => hasReadKey) }]
  })
}

/** Steps whose key was not the same on every attempt: there are no more keys of a step than times that its run began. */
export function keysThatChanged(attempts: readonly StepAttempt[], continuations: number): readonly string[] {
  const keys = new Map<string, Set<string>>()
  for (const { runId, step, isUndo, idempotencyKey } of attempts) {
    const identity = `${runId} ${step} ${String(isUndo)}`
    keys.set(identity, (keys.get(identity) ?? new Set()).add(idempotencyKey))
  }
  const changed = [...keys].filter(([, all]) => all.size > 1 + continuations)
  return changed.map(([identity]) => identity.split(' ')[1] ?? '')
}
