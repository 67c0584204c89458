// What a run of the workload must have answered: computed from its input and, where others decide, from what its journal
// says that it took. Whether it may have taken that is judged elsewhere.

import { entries, inputOf, isPoisoned, type FinalRun } from './evidence.ts'
import type { Sent } from './workload.ts'

export type Answer =
  | { readonly status: 'succeeded'; readonly output: readonly string[] | string }
  | { readonly status: 'failed'; readonly message: string }

const list = (output: readonly string[]): Answer => ({ status: 'succeeded', output })

/** Null if it was given up after too many crashes, of its own or of a child: then anything may be missing. */
export function answerOf(run: FinalRun, children: readonly FinalRun[]): Answer | null {
  if (isPoisoned(run) || children.some(isPoisoned)) return null
  const { n } = inputOf(run, run.kind)
  const of = (step: string): string => `${step} of ${n}`
  switch (run.kind) {
    case 'line': {
      const isChecked = entries(run, 'step-succeeded').some(({ name }) => name === 'check')
      const { length } = inputOf(run, 'line')
      const first = numbers(length).map((number) => `a${number}`)
      return list([...first, 'b', 'c', 'd', ...(isChecked ? ['check'] : [])].map(of))
    }
    case 'nap':
      return list(['before', 'after'].map(of))
    case 'inbox': {
      const { count } = inputOf(run, 'inbox')
      return list(numbers(count).map((order) => `${n}-letter-${order}`))
    }
    case 'offer':
      return list(takenBy(run).length === 0 ? [] : [`${n}-offer`])
    case 'consume':
      return list(takenBy(run))
    case 'read': {
      const { topic, count } = inputOf(run, 'read')
      const issue = topic.slice('chaos.issue-'.length)
      return list(numbers(count).map((line) => `${issue}-line-${line}`))
    }
    case 'parent': {
      const { children: count, failing } = inputOf(run, 'parent')
      return list(numbers(count).map((number) => (number - 1 === failing ? 'failed' : `only of ${n}.${number - 1}`)))
    }
    case 'child': {
      const { fails } = inputOf(run, 'child')
      return fails ? { status: 'failed', message: `${of('only')} fails` } : { status: 'succeeded', output: of('only') }
    }
    case 'saga':
      return { status: 'failed', message: `${n} gives up` }
    case 'retry':
      return list([of('stubborn')])
    case 'rounds': {
      const { rounds } = inputOf(run, 'rounds')
      return list(numbers(rounds).map((round) => of(`round ${round}`)))
    }
  }
}

/** What its step must have recorded. */
export function valueOf(run: FinalRun, step: string): string {
  return `${step} of ${inputOf(run, run.kind).n}`
}

/** The ids of what it has taken out of its mailbox, in order. */
export function takenBy(run: FinalRun): readonly string[] {
  return entries(run, 'woken')
    .filter(({ meta: { by } }) => by?.kind === 'signal' || by?.kind === 'topic-signal' || by?.kind === 'broadcast')
    .map(({ data }) => (data as Sent).id)
}

function numbers(count: number): readonly number[] {
  return Array.from({ length: count }, (_, index) => index + 1)
}
