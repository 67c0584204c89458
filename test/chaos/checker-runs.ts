// Judges runs by what their clients were answered: a run that was acknowledged is there, once, ended as it must, and shows the same to
// every client.

import { isDeepStrictEqual } from 'node:util'
import { entries, grouped, inputOf, isPoisoned, type Evidence, type FinalRun, type Violation } from './evidence.ts'
import type { Call, Operation, OperationOf } from './history.ts'
import { answerOf } from './workload-answers.ts'

export function calls<F extends Call>(operations: readonly Operation[], f: F): readonly OperationOf<F>[] {
  return operations.filter((one): one is OperationOf<F> => one.f === f)
}

/** What was acknowledged is there; what was refused is not; and nothing is there that nobody asked for. */
export function* started({ operations, runs }: Evidence): Iterable<Violation> {
  const starts = calls(operations, 'start')
  const byId = new Map(runs.map((run) => [run.id, run]))
  const byTag = new Map(runs.flatMap((run) => run.tags.map((tag) => [tag, run] as const)))
  for (const { type, value, args } of starts) {
    if (type === 'ok') {
      const { run: id } = value
      const run = byId.get(id)
      if (run === undefined) yield { name: 'start_not_lost', text: `${id} was acknowledged, and is gone`, runs: [id] }
      else if (!isDeepStrictEqual(run.journal[0]?.data, args.input)) {
        yield { name: 'start_same_input', text: `${id} was acknowledged with another input`, runs: [id] }
      }
    } else if (type === 'fail') {
      const run = byTag.get(args.tag)
      if (run === undefined) continue
      yield { name: 'start_not_made_up', text: `${run.id} was refused, and is there`, runs: [run.id] }
    }
  }
  const asked = new Set(starts.map(({ args }) => args.tag))
  for (const { id, tags, parentId } of runs) {
    if (parentId !== null ? byId.has(parentId) : tags.some((tag) => asked.has(tag))) continue
    yield { name: 'start_not_made_up', text: `${id} is there, and nobody asked for it`, runs: [id] }
  }
  for (const { type, f, args, value } of operations) {
    const isMissed = type === 'ok' && f === 'signal' && value.outcome === 'target-not-found'
    if (!isMissed && !(type === 'fail' && value === 'RUN_NOT_FOUND' && 'run' in args)) continue
    const { run } = args as { readonly run: string }
    yield { name: 'start_not_lost', text: `${run} was acknowledged, and not found by ${f}`, runs: [run] }
  }
}

/** However often and from however many sides a key was used, there is one run of it. */
export function* keyedOnce({ operations, runs }: Evidence): Iterable<Violation> {
  const ids = new Map<string, Set<string>>()
  const note = (key: string, id: string): void => void ids.set(key, (ids.get(key) ?? new Set()).add(id))
  for (const { type, args, value } of calls(operations, 'start'))
    if (type === 'ok') note(args.idempotencyKey, value.run)
  for (const { idempotencyKey, id } of runs) if (idempotencyKey !== null) note(idempotencyKey, id)
  for (const [key, found] of ids) {
    if (found.size === 1) continue
    yield { name: 'one_key_one_run', text: `key ${key} has the runs ${[...found].join(', ')}`, runs: [...found] }
  }
}

/** After the heal everything ends, as it must, and with the answer that can be computed. */
export function* answered({ operations, runs }: Evidence): Iterable<Violation> {
  const asked = new Set(calls(operations, 'cancel').map(({ args }) => args.run))
  const children = grouped(
    runs.filter(({ parentId }) => parentId !== null),
    ({ parentId }) => parentId ?? '',
  )
  const byId = new Map(runs.map((run) => [run.id, run]))
  for (const run of runs) {
    const { id, status, kind } = run
    if (status === 'cancelled') {
      const parent = byId.get(run.parentId ?? '')
      if (asked.has(id) || (parent !== undefined && parent.status !== 'succeeded')) continue
      yield { name: 'cancelled_was_asked', text: `${id} was cancelled, and nobody wanted that`, runs: [id] }
      continue
    }
    const expected = answerOf(run, children.get(id) ?? [])
    if (expected === null) continue
    const wrong = difference(run, expected)
    if (wrong === null) continue
    const name = status === 'succeeded' || status === 'failed' ? 'answer_is_computed' : 'ends_after_heal'
    yield { name, text: `${id} (${kind}) ${wrong}`, runs: [id] }
  }
  for (const [parent, found] of children) yield* familyOf(byId.get(parent), found)
}

function difference({ status, journal }: FinalRun, expected: NonNullable<ReturnType<typeof answerOf>>): string | null {
  const last = journal.at(-1)
  if (status !== expected.status) return `is ${status}, and should be ${expected.status}: ${messageOf(last?.data)}`
  if (expected.status === 'failed') {
    const message = messageOf(last?.data)
    return message.includes(expected.message) ? null : `failed with ${message}, and not with ${expected.message}`
  }
  if (isDeepStrictEqual(last?.data, expected.output)) return null
  return `answered ${JSON.stringify(last?.data)}, and not ${JSON.stringify(expected.output)}`
}

/** A parent that ended well has each of its children once. */
function* familyOf(parent: FinalRun | undefined, children: readonly FinalRun[]): Iterable<Violation> {
  if (parent?.status !== 'succeeded') return
  const { children: count } = inputOf(parent, 'parent')
  if (children.length === count) return
  const text = `${parent.id} has ${children.length} children, and asked for ${count}`
  yield { name: 'child_once', text, runs: [parent.id] }
}

/** A client that was answered that a run is cancelled, or will be, finds it so; and nothing follows an end. */
export function* cancelled({ operations, runs }: Evidence): Iterable<Violation> {
  const byId = new Map(runs.map((run) => [run.id, run]))
  for (const { type, args, value } of calls(operations, 'cancel')) {
    if (type !== 'ok' || value.outcome === 'already-ended') continue
    const status = byId.get(args.run)?.status
    if (status === 'cancelled') continue
    yield {
      name: 'cancel_is_kept',
      text: `${args.run} was answered ${value.outcome}, and is ${status ?? 'gone'}`,
      runs: [args.run],
    }
  }
  for (const { id, journal } of runs) {
    const end = journal.findIndex(({ kind }) => kind === 'succeeded' || kind === 'failed' || kind === 'cancelled')
    if (end === -1 || end === journal.length - 1) continue
    yield { name: 'ends_once', text: `${id} went on after its end`, runs: [id] }
  }
}

/** What a client was answered about an end stands in the journal. */
export function* reported({ operations, runs }: Evidence): Iterable<Violation> {
  const byId = new Map(runs.map((run) => [run.id, run]))
  for (const { type, args, value } of calls(operations, 'result')) {
    if (type !== 'ok') continue
    const run = byId.get(args.run)
    if (run?.status === value.status) {
      if (value.status !== 'succeeded' || isDeepStrictEqual(run.journal.at(-1)?.data, value.output)) continue
    }
    yield { name: 'result_is_recorded', text: `${args.run} answered a client with another end`, runs: [args.run] }
  }
}

/** What a run shows grows; a client that looks again after an answer never sees less. */
export function* growing({ operations }: Evidence): Iterable<Violation> {
  const seen = new Map<string, { readonly at: number; readonly value: number }[]>()
  for (const { type, args, value, invokedAt, at } of calls(operations, 'query')) {
    if (type !== 'ok') continue
    const shown = (value as number | undefined) ?? 0
    const before = seen.get(args.run) ?? []
    if (before.some((one) => one.at < invokedAt && one.value > shown)) {
      yield { name: 'query_never_goes_back', text: `${args.run} showed less than before`, runs: [args.run] }
    }
    seen.set(args.run, [...before, { at, value: shown }])
  }
}

/** A step that was to fail so often failed so often, and each failure stands in the journal once. */
export function* retried({ runs }: Evidence): Iterable<Violation> {
  for (const run of runs) {
    if (run.kind !== 'retry' || run.status !== 'succeeded' || isPoisoned(run)) continue
    const { failures } = inputOf(run, 'retry')
    const found = entries(run, 'attempt-failed').map(({ meta }) => meta.attempt)
    if (found.length === failures && found.every((attempt, index) => attempt === index + 1)) continue
    const text = `${run.id} was to fail ${failures} times, and recorded the attempts ${found.join(', ')}`
    yield { name: 'attempt_recorded_once', text, runs: [run.id] }
  }
}

function messageOf(data: unknown): string {
  if (data instanceof Error) return data.message
  return data === undefined || data === null ? 'nothing' : JSON.stringify(data)
}
