// The plan of a trial: where the process dies, in which order parallel steps finish, and whether runs are replayed whenever
// they continue. A plan holds everything that a trial depends on, so that it can be repeated.

import { HoldfastError } from '../../../core/errors/error.ts'
import { checkOptions, shown } from '../../../core/text/suggest.ts'

/** One trial of `crashEverywhere`. */
export interface TrialPlan {
  /**
   * The process dies at this commit, just before it takes effect or just after, when its answer is lost; or after every
   * commit. @default it does not die
   */
  readonly crash?: { readonly commit: number; readonly when: 'before' | 'after' } | 'every-commit'
  /**
   * Which of the finished parallel steps comes next, whenever there is a choice: 0 is the one that began first.
   * @default always 0
   */
  readonly order?: readonly number[]
  /** No run stays in memory while it waits: each is replayed when it continues. @default false */
  readonly replayed?: boolean
  /** The random seed. @default that of the whole call */
  readonly seed?: number
}

/** A choice that was made in a trial, and the number of alternatives. */
export interface Choice {
  readonly taken: number
  readonly of: number
}

/** The next order in which the same choices could be made; null if there is none. Every order comes up once. */
export function nextOrder(choices: readonly Choice[]): readonly number[] | null {
  const last = choices.findLastIndex(({ taken, of }) => taken + 1 < of)
  if (last === -1) return null
  return [...choices.slice(0, last).map(({ taken }) => taken), (choices[last]?.taken ?? 0) + 1]
}

/** Every crash of one order: each commit, before it takes effect and after. */
export function crashesOf(commits: number, order: readonly number[]): readonly TrialPlan[] {
  const plans: TrialPlan[] = []
  for (let commit = 1; commit <= commits; commit += 1) {
    for (const when of ['before', 'after'] as const) {
      plans.push({ crash: { commit, when }, ...(order.length === 0 ? {} : { order }) })
    }
  }
  return plans
}

export function checkPlan(plan: TrialPlan): TrialPlan {
  checkOptions(plan, ['crash', 'order', 'replayed', 'seed'], 'crashEverywhere({ only })')
  const { crash } = plan
  const isCrash =
    crash === undefined ||
    crash === 'every-commit' ||
    (Number.isInteger(crash.commit) && (crash.when === 'before' || crash.when === 'after'))
  if (isCrash) return plan
  throw new HoldfastError(
    'INVALID_OPTION',
    `crashEverywhere({ only: { crash } }) is { commit: 3, when: 'before' } or 'every-commit'. Got ${shown(crash)}.`,
  )
}
