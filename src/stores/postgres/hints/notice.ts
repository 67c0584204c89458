// The notices between processes: the sender, the types that may be claimed, the runs that have ended, held runs that have got
// messages or control requests, when the time of a run without a holder is over, and that there is a chore. Texts are short,
// because Postgres takes no more than 8,000 bytes, and they are sealed on their way.

import type { Hint } from '../../../store.ts'

interface Notice {
  readonly from: string
  readonly ready: readonly string[]
  readonly ended: readonly string[]
  readonly messages: readonly string[]
  /** Held runs with control requests. */
  readonly control?: readonly string[]
  /** The first of them: a look at that time finds the next one. */
  readonly deadline?: number
  /** There is a chore. */
  readonly chore?: true
}

const mostBytes = 5_200

/** Hints as texts to be sent; each only once. */
export function noticesOf(hints: readonly Hint[], from: string): readonly string[] {
  const ready = new Set<string>()
  const ended = new Set<string>()
  const messages = new Set<string>()
  const control = new Set<string>()
  let deadline = Number.POSITIVE_INFINITY
  let chore = false
  for (const hint of hints) {
    if (hint.kind === 'ready') ready.add(hint.type)
    else if (hint.kind === 'ended') ended.add(hint.runId)
    else if (hint.kind === 'message') messages.add(hint.runId)
    else if (hint.kind === 'control') control.add(hint.runId)
    else if (hint.kind === 'chore') chore = true
    else deadline = Math.min(deadline, hint.at)
  }
  const notices: string[] = []
  let notice = emptyNotice(from)
  let bytes = 0
  const add = (list: 'ready' | 'ended' | 'messages' | 'control', text: string): void => {
    const size = Buffer.byteLength(JSON.stringify(text)) + 1
    if (bytes + size > mostBytes) {
      notices.push(JSON.stringify(notice))
      notice = emptyNotice(from)
      bytes = 0
    }
    notice[list] ??= []
    notice[list].push(text)
    bytes += size
  }
  for (const type of ready) add('ready', type)
  for (const id of ended) add('ended', id)
  for (const id of messages) add('messages', id)
  for (const id of control) add('control', id)
  const rest = { ...(deadline < Number.POSITIVE_INFINITY && { deadline }), ...(chore && { chore }) }
  if (bytes > 0 || Object.keys(rest).length > 0) notices.push(JSON.stringify({ ...notice, ...rest }))
  return notices
}

function emptyNotice(from: string): {
  from: string
  ready: string[]
  ended: string[]
  messages: string[]
  control?: string[]
} {
  return { from, ready: [], ended: [], messages: [] }
}

/** The hints in a text; none if it is our own, or not one of ours: any role may send anything on a channel. */
export function hintsOf(text: string, self: string): readonly Hint[] {
  let notice: Partial<Record<keyof Notice, unknown>> | null
  try {
    notice = JSON.parse(text) as typeof notice
  } catch {
    return []
  }
  if (notice === null || typeof notice.from !== 'string' || notice.from === self) return []
  return [
    ...textsOf(notice.ready).map((type): Hint => ({ kind: 'ready', type })),
    ...textsOf(notice.ended).map((runId): Hint => ({ kind: 'ended', runId })),
    ...textsOf(notice.messages).map((runId): Hint => ({ kind: 'message', runId })),
    ...textsOf(notice.control).map((runId): Hint => ({ kind: 'control', runId })),
    ...(typeof notice.deadline === 'number' ? [{ kind: 'deadline', at: notice.deadline } as const] : []),
    ...(notice.chore === true ? [{ kind: 'chore' } as const] : []),
  ]
}

function textsOf(list: unknown): readonly string[] {
  return Array.isArray(list) ? list.filter((one) => typeof one === 'string') : []
}
