// Everything that a store may answer, by method, and which of it a sequence of operations has met. A comparison of two stores
// proves nothing about answers that never came.

import { isTerminal, type Run } from '../../src/core/model/run.ts'
import type {
  Beat,
  Change,
  Claimed,
  Committed,
  DeadLetter,
  Delivered,
  Loaded,
  NewBroadcast,
  NewMessage,
  Rescued,
  RunStart,
  Started,
  ControlResult,
  ControlCommand,
} from '../../src/store.ts'
import type { Transition } from '../../src/core/model/transition.ts'
import type { Operation } from './operation.ts'

type Method = Exclude<Operation['method'], 'advance'>

/** What is documented. Each must come at least once. */
const documented: Readonly<Record<Method, readonly string[]>> = {
  start: listed(`
    ready | timed | leased | with messages | session has ended | repeated | taken id | taken idempotency-key |
    taken key, scope workflow | taken key, scope version | taken key, scope global |
    decided | decided and woken | decided and over | decided with children`),
  claim: listed(
    'nothing | some | more | next due | one that is being cancelled | session has ended | by name | not that one',
  ),
  load: listed('entries | a page | messages | nothing | by names | latest'),
  commit: listed(`
    checkpoint | undo possible | undo due | continued | continued as another | took a message | repeated |
    to waiting | to pending | to succeeded | to failed | to paused | to cancelled | to cancelling |
    parked with nothing new | parked before | kept for a message | kept for a control request | kept for a cancellation |
    refused stale | refused lease-lost | refused not-found | refused cancelling | refused key-taken |
    refused held | refused ended | without a lease | base moved | leased a child |
    settled committed | settled refused held | settled refused stale | settled refused ended |
    of a removed run | started a child | refused a child | notified at once | ended and notified | ended and cancelled |
    ended with messages | BUG`),
  deliver: listed(`
    delivered | queued | target-terminated | target-not-found | to a removed run | repeated | kept after the end |
    to subscribers | to nobody yet | broadcast repeated`),
  control: listed(`
    cancel done cancelled | cancel done cancelling | cancel requested cancelling | cancel refused ended |
    cancel now done cancelled | cancel now refused ended | cancel not-found | repeated |
    pause done paused | pause requested running | pause refused ended | pause refused cancelling | pause not-found |
    resume done pending | resume done running | resume with repairs | resume refused ended |
    resume refused not-paused | resume refused changed | resume not-found |
    retry done pending | retry with repairs | retry refused not-failed | retry refused undone |
    retry refused changed | retry refused deleted | retry key-taken | retry not-found |
    remove of a held run | remove of one that is over | remove of one that nobody holds | remove again |
    remove not-found | acquit done pending | acquit refused ended | acquit refused changed | acquit not-found`),
  beat: listed('alive | not alive | lost | control requested | timed out | extended | messages'),
  rescue: listed(`
    nothing | sessions ended | taken over | crashed | timed-out | expired | cancelled | to paused | to be undone |
    still cancelling`),
  release: listed('to pending | to paused | to cancelled | to cancelling | passed over'),
  get: listed('found | missing'),
  changes: listed('some | none | a page'),
  find: listed(`
    none | a page | by ids | by types | by typePrefix | by statuses | by key | by idempotencyKey | by tag |
    by version | by parentId | by createdFrom | by createdBefore | removed ones | after another`),
  count: listed('none | all | as many as wanted'),
  deadLetters: listed('none | some | a page | after another'),
  settleDeadLetter: listed('settled | not dead'),
}

function listed(text: string): readonly string[] {
  return text.trim().split(/\s*\|\s*/)
}

/** How runs stood before an operation and stand after it. */
export interface Rows {
  readonly before: (runId: string) => Standing | undefined
  readonly after: (runId: string) => Standing | undefined
}

export interface Standing {
  readonly run: Run
  /** How many messages lie in its mailbox. */
  readonly messages: number
}

/** What an answer was, in the words of the table above; undocumented ones are not named. */
export function outcomesOf(operation: Operation, answer: unknown, rows: Rows): readonly string[] {
  const named = new Set<string>()
  const say = (isSo: boolean, what: string): unknown => isSo && named.add(what)
  if (typeof answer === 'object' && answer !== null && 'error' in answer) return [String(answer.error)]
  const once = <Item extends { readonly runId: string }>(
    items: readonly Item[],
    visit: (item: Item, index: number) => void,
  ): void =>
    // Of two for one run, the state before the second is not known here.
    items.forEach((item, index) => items.filter(({ runId }) => runId === item.runId).length === 1 && visit(item, index))

  switch (operation.method) {
    case 'start': {
      const answers = answer as readonly Started[]
      const given = operation.runs.map((run) => ({ run, runId: run.id }))
      once(given, ({ run, runId }, index) => {
        const answer = answers[index] as Started
        const existed = rows.before(runId) !== undefined
        say(answer.created && !existed && answer.run.inbox > 0, 'with messages')
        named.add(startOutcome(run, answer, existed))
      })
      break
    }
    case 'claim': {
      const { runs, more, nextDue } = answer as Claimed
      const { limit, runId } = operation.request
      if (runId !== undefined) {
        named.add(runs.length > 0 ? 'by name' : 'not that one')
        break
      }
      say(runs.length === 0 && !more, 'nothing')
      say(runs.length > 0, 'some')
      say(runs.length === limit && more, 'more')
      say(runs.length === 0 && limit > 0 && more, 'session has ended')
      say(nextDue !== null, 'next due')
      say(
        runs.some(({ status }) => status === 'cancelling'),
        'one that is being cancelled',
      )
      break
    }
    case 'load':
      ;(answer as readonly Loaded[]).forEach(({ entries, messages }, index) => {
        const { limit = 0, messages: named, latest } = operation.requests[index] ?? {}
        say(named !== undefined && messages.length > 0, 'by names')
        say(latest !== undefined && entries.length > 0, 'latest')
        say(entries.length > 0, 'entries')
        say(entries.length > 0 && entries.length === limit, 'a page')
        say(messages.length > 0, 'messages')
        say(entries.length + messages.length === 0, 'nothing')
      })
      break
    case 'commit': {
      const answers = answer as readonly Committed[]
      operation.transitions.forEach((transition, index) => {
        for (const what of commitOutcomes(transition, answers[index] as Committed, rows)) named.add(what)
      })
      break
    }
    case 'deliver': {
      const answers = answer as readonly Delivered[]
      operation.messages.forEach((message, index) => {
        for (const what of deliverOutcomes(message, answers[index] as Delivered, rows)) named.add(what)
      })
      break
    }
    case 'control': {
      const answers = answer as readonly ControlResult[]
      once(operation.requests, (request, index) => {
        for (const what of controlOutcomes(request, answers[index] as ControlResult, rows)) named.add(what)
      })
      break
    }
    case 'beat': {
      const { alive, lost, controlRequests, messages, timedOut } = answer as Beat
      say(messages.length > 0, 'messages')
      named.add(alive ? 'alive' : 'not alive')
      say(alive && lost.length > 0, 'lost')
      say(controlRequests.length > 0, 'control requested')
      say(timedOut.length > 0, 'timed out')
      const moved = (operation.request.held ?? []).some(
        ({ runId }) => rows.before(runId)?.run.deadline !== rows.after(runId)?.run.deadline,
      )
      say(moved, 'extended')
      break
    }
    case 'rescue':
      for (const what of rescueOutcomes(answer as Rescued & { readonly touched: readonly string[] }, rows)) {
        named.add(what)
      }
      break
    case 'release':
      once(operation.leases, ({ runId }) => {
        const [before, after] = [rows.before(runId)?.run, rows.after(runId)?.run]
        const isGiven = before?.session !== null && after?.session === null
        named.add(isGiven ? `to ${after.status}` : 'passed over')
      })
      break
    case 'get':
      for (const run of answer as readonly (Run | undefined)[]) named.add(run === undefined ? 'missing' : 'found')
      break
    case 'changes': {
      const { length } = answer as readonly Change[]
      named.add(length === 0 ? 'none' : 'some')
      say(length > 0 && length === operation.limit, 'a page')
      break
    }
    case 'find': {
      const { length } = answer as readonly Run[]
      const { filter, page } = operation
      say(length === 0, 'none')
      say(length > 0 && length === page.limit, 'a page')
      say(length > 0 && page.after !== undefined, 'after another')
      if (length > 0) for (const key of Object.keys(filter)) named.add(`by ${key}`)
      say(length > 0 && filter.deleted === true, 'removed ones')
      break
    }
    case 'count':
      say(answer === 0, 'none')
      say(answer !== 0, answer === operation.atMost ? 'as many as wanted' : 'all')
      break
    case 'deadLetters': {
      const { length } = answer as readonly DeadLetter[]
      named.add(length === 0 ? 'none' : 'some')
      say(length > 0 && length === operation.page.limit, 'a page')
      say(length > 0 && operation.page.after !== undefined, 'after another')
      break
    }
    case 'settleDeadLetter':
      named.add(answer === true ? 'settled' : 'not dead')
      break
    case 'advance':
  }
  return [...named]
}

function startOutcome(
  { lease, keyScope, decided = null }: RunStart,
  { created, taken, run }: Started,
  existed: boolean,
): string {
  if (!created) return taken === 'key' ? `taken key, scope ${keyScope}` : `taken ${taken}`
  if (existed) return 'repeated'
  if (decided !== null) {
    if (run.endedAt !== null) return 'decided and over'
    if (run.watched) return 'decided with children'
    return run.inbox > 0 ? 'decided and woken' : 'decided'
  }
  if (run.session !== null) return 'leased'
  if (lease !== null) return 'session has ended'
  return run.readiness === 'timed' ? 'timed' : 'ready'
}

function deliverOutcomes(message: NewMessage | NewBroadcast, answer: Delivered, rows: Rows): readonly string[] {
  const { outcome } = answer
  const isRepeated = 'repeated' in answer
  if ('topic' in message) {
    return [isRepeated ? 'broadcast repeated' : outcome === 'delivered' ? 'to subscribers' : 'to nobody yet']
  }
  if (isRepeated) return ['repeated']
  const [before, after] = [rows.before(message.runId)?.run, rows.after(message.runId)?.run]
  if (outcome === 'target-not-found' && before !== undefined) return ['to a removed run']
  const isKept = outcome === 'target-terminated' && before?.inbox !== after?.inbox
  return isKept ? [outcome, 'kept after the end'] : [outcome]
}

/** What a transition that was committed did to others. */
function reachOutcomes(
  { runId, outbound, status }: Transition,
  { inbox }: { readonly inbox: number },
  rows: Rows,
): string[] {
  const named: string[] = []
  const [before, after] = [rows.before(runId), rows.after(runId)]
  const started = outbound?.starts.filter(({ run }) => rows.after(run.id)?.run.parentId === runId).length ?? 0
  if (started > 0) named.push('started a child')
  if (started < (outbound?.starts.length ?? 0)) named.push('refused a child')
  if (outbound?.watches.length !== 0 && inbox > (before?.run.inbox ?? 0)) named.push('notified at once')
  if (status === null || !isTerminal(status)) return named
  if (before?.run.watched === true) named.push('ended and notified')
  if ((before?.messages ?? 0) > 0 && after?.messages === 0) named.push('ended with messages')
  const children = outbound?.starts.filter(({ run }) => rows.after(run.id)?.run.status === 'cancelling') ?? []
  if (children.length > 0) named.push('ended and cancelled')
  return named
}

function commitOutcomes(transition: Transition, answer: Committed, rows: Rows): readonly string[] {
  if (answer.outcome === 'refused') return [`refused ${answer.reason}`]
  const { runId, append, status, undo, continues } = transition
  const [before, after] = [rows.before(runId), rows.after(runId)]
  if (before === undefined || after === undefined) return []
  if (before.run.seq === after.run.seq) {
    if (append.length > 0) return ['repeated']
    if (before.run.status === 'waiting') return ['parked before']
  }
  const named: string[] = reachOutcomes(transition, answer, rows)
  const { leased = [], settled } = answer
  if (leased.length > 0) named.push('leased a child')
  if (settled !== undefined) {
    named.push(settled.outcome === 'committed' ? 'settled committed' : `settled refused ${settled.reason}`)
  }
  if (transition.guard.lease === null) named.push('without a lease')
  if ((transition.base ?? null) !== null) named.push('base moved')
  if (after.messages < before.messages) named.push('took a message')
  if (before.run.deletedAt !== null) named.push('of a removed run')
  if (status !== null && !answer.released) {
    const called =
      before.run.status === 'cancelling'
        ? 'a cancellation'
        : before.run.controlRequest === null
          ? 'a message'
          : 'a control request'
    named.push(`kept for ${called}`)
  } else if (append.length === 0) named.push('parked with nothing new')
  else if (status !== null) named.push(`to ${status}`)
  else if (continues !== null) named.push(continues.type === before.run.type ? 'continued' : 'continued as another')
  else named.push(undo === null ? 'checkpoint' : `undo ${undo}`)
  return named
}

function controlOutcomes(request: ControlCommand, answer: ControlResult, rows: Rows): readonly string[] {
  const kind = request.kind === 'cancel' && request.mode === 'now' ? 'cancel now' : request.kind
  const [before, after] = [rows.before(request.runId)?.run, rows.after(request.runId)?.run]
  if (answer.outcome === 'refused') return [`${kind} refused ${answer.reason}`]
  if (answer.outcome === 'not-found') return [`${request.kind} not-found`]
  if (answer.outcome === 'key-taken') return [`${kind} key-taken`]
  if (before === undefined || after === undefined) return []
  if (request.kind === 'remove') {
    if (before.deletedAt !== null) return ['remove again']
    const whom = isTerminal(before.status)
      ? 'one that is over'
      : before.session === null
        ? 'one that nobody holds'
        : 'a held run'
    return [`remove of ${whom}`]
  }
  const isWritten = before.seq !== after.seq || before.controlRequest !== after.controlRequest
  const isRepeated = before.seq === after.seq && JSON.stringify(before) === JSON.stringify(after)
  if (isRepeated || !isWritten) return ['repeated']
  const repaired = 'amend' in request && request.amend.length > 0 && before.seq !== after.seq
  return [`${kind} ${answer.outcome} ${after.status}`, ...(repaired ? [`${kind} with repairs`] : [])]
}

function rescueOutcomes(
  { sessionsEnded, takenOver, ended, touched }: Rescued & { readonly touched: readonly string[] },
  rows: Rows,
): readonly string[] {
  const named: string[] = ended.map(({ reason }) => reason)
  if (sessionsEnded > 0) named.push('sessions ended')
  if (takenOver.length > 0) named.push('taken over')
  for (const runId of touched) {
    const [before, after] = [rows.before(runId)?.run, rows.after(runId)?.run]
    if (before === undefined || after === undefined || before.seq === after.seq) continue
    if (after.status === 'paused') named.push('to paused')
    if (after.status === 'pending' && after.undo === 'due' && before.undo !== 'due') named.push('to be undone')
    if (after.status === 'cancelling') named.push('still cancelling')
  }
  return named.length === 0 ? ['nothing'] : named
}

/** Counts what came, by method and outcome. */
export class Coverage {
  private readonly counts = new Map<string, number>()

  note(method: string, outcomes: readonly string[]): void {
    for (const outcome of outcomes) {
      const cell = `${method}: ${outcome}`
      this.counts.set(cell, (this.counts.get(cell) ?? 0) + 1)
    }
  }

  get missing(): readonly string[] {
    return this.cells.filter((cell) => !this.counts.has(cell))
  }

  /** The table, one line a cell, the rarest first. */
  get table(): string {
    const lines = this.cells.map((cell) => [this.counts.get(cell) ?? 0, cell] as const)
    return lines
      .toSorted(([a], [b]) => a - b)
      .map(([count, cell]) => `${String(count).padStart(7)}  ${cell}`)
      .join('\n')
  }

  get cells(): readonly string[] {
    return Object.entries(documented).flatMap(([method, outcomes]) =>
      [...outcomes, 'CLOSED'].map((outcome) => `${method}: ${outcome}`),
    )
  }
}
