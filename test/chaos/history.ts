// What the driver asked for and what it was answered, line by line, as Jepsen writes it: `invoke`, and then `ok`, `fail` (it has
// not happened and never will) or `info` (nobody knows: it may have happened, or may yet). What happens to processes is
// written between, as `info` of the nemesis. The checker reads nothing else of the driver.

import { closeSync, openSync, writeSync } from 'node:fs'
import type { RunStatus } from '../../src/index.ts'
import type { TestbedEvent } from './testbed.ts'
import type { Kind } from './workload.ts'

/** The operations of the driver: what each is asked with, and what it answers. */
export interface Calls {
  readonly start: {
    readonly args: {
      readonly kind: Kind
      readonly input: unknown
      readonly idempotencyKey: string
      /** The run carries it, so that one that was made is found. */
      readonly tag: string
    }
    readonly value: { readonly run: string }
  }
  readonly signal: {
    readonly args: {
      readonly run: string
      readonly name: string
      readonly id: string
      /** Its place among what this sender sends to this run. */
      readonly order: number
    }
    readonly value: { readonly outcome: string }
  }
  readonly broadcast: {
    readonly args: { readonly topic: string; readonly id: string }
    readonly value: { readonly outcome: string }
  }
  readonly cancel: { readonly args: { readonly run: string }; readonly value: { readonly outcome: string } }
  readonly pause: { readonly args: { readonly run: string }; readonly value: { readonly outcome: string } }
  readonly resume: { readonly args: { readonly run: string }; readonly value: { readonly status: RunStatus } }
  readonly query: { readonly args: { readonly run: string; readonly name: string }; readonly value: unknown }
  readonly result: {
    readonly args: { readonly run: string }
    readonly value: { readonly status: RunStatus; readonly output: unknown }
  }
}

export type Call = keyof Calls

export interface HistoryEvent {
  /** An operation and its outcome have the same. */
  readonly id: number
  readonly proc: string
  readonly type: 'invoke' | 'ok' | 'fail' | 'info'
  readonly f: string
  readonly args: unknown
  readonly value: unknown
  readonly at: number
}

/** An operation together with its outcome. One that has none yet is of unknown outcome. */
export type Operation = {
  [F in Call]: { readonly f: F; readonly args: Calls[F]['args'] } & Outcome<Calls[F]['value']> & {
      readonly id: number
      readonly proc: string
      readonly invokedAt: number
      readonly at: number
    }
}[Call]

export type OperationOf<F extends Call> = Extract<Operation, { readonly f: F }>

type Outcome<Value> =
  { readonly type: 'ok'; readonly value: Value } | { readonly type: 'fail' | 'info'; readonly value: unknown }

export class History {
  readonly events: HistoryEvent[] = []
  private file: number | null
  private readonly now: () => number
  private ids = 0

  /** Without a path it is kept in memory only. */
  constructor(path: string | null = null, now: () => number = Date.now) {
    this.file = path === null ? null : openSync(path, 'a')
    this.now = now
  }

  /** An operation begins; what it returns writes how it came out, once. */
  invoke<F extends Call>(proc: string, f: F, args: Calls[F]['args']): (outcome: Outcome<Calls[F]['value']>) => void {
    this.ids += 1
    const id = this.ids
    this.write({ id, proc, type: 'invoke', f, args, value: null, at: this.now() })
    return ({ type, value }) => this.write({ id, proc, type, f, args, value, at: this.now() })
  }

  /** Something happened to processes, or to the server. */
  happened({ at, kind, text, details = {} }: TestbedEvent): void {
    this.ids += 1
    this.write({ id: this.ids, proc: kind, type: 'info', f: text, args: details, value: null, at })
  }

  /** What comes later, from a call that was left behind, is not written down any more. */
  close(): void {
    if (this.file !== null) closeSync(this.file)
    this.file = null
  }

  private write(event: HistoryEvent): void {
    this.events.push(event)
    if (this.file !== null) writeSync(this.file, `${JSON.stringify(event)}\n`)
  }
}

/** The operations of a history, in the order in which they were asked for. */
export function operationsOf(events: readonly HistoryEvent[]): readonly Operation[] {
  const outcomes = new Map<number, HistoryEvent>()
  for (const event of events) if (event.type !== 'invoke') outcomes.set(event.id, event)
  return events
    .filter(({ type }) => type === 'invoke')
    .map(({ id, proc, f, args, at: invokedAt }) => {
      const { type = 'info', value = null, at = Infinity } = outcomes.get(id) ?? {}
      return { id, proc, f, args, type, value, invokedAt, at } as Operation
    })
}

/** What may or may not have happened. A read that got no answer is none of them: it has failed. */
export function unknownOutcomes(operations: readonly Operation[]): readonly Operation[] {
  return operations.filter(({ type }) => type === 'info')
}
