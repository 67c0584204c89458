// The tools of a contract case: the store under test, its clock, and helpers that bring a run to where the case begins. They
// assert only that they succeed.

import assert from 'node:assert/strict'
import type { Draft, Entry } from '../../core/model/entry.ts'
import { createRunIds } from '../../core/model/run-id.ts'
import { shardForNew } from '../../core/rules/shard-routing.ts'
import type { Random } from '../../core/runtime/ports.ts'
import type { Lease, Run } from '../../core/model/run.ts'
import type { CrashRule } from '../../core/rules/claims/takeover.ts'
import type { Control } from '../../core/rules/control.ts'
import type { TopicRules } from '../../core/model/topic.ts'
import type { ChildStart, Transition } from '../../core/model/transition.ts'
import type {
  BatchOptions,
  Beat,
  BeatRequest,
  Claimed,
  ClaimRequest,
  Committed,
  Delivered,
  Message,
  NewBroadcast,
  NewMessage,
  NewRun,
  Rescued,
  RescueRequest,
  Selector,
  ControlResult,
  Store,
  StoreAdmin,
} from '../../store.ts'
import { createSeededRandom } from '../seeded-random.ts'
import { started, step } from './drafts.ts'

/** The failures that the bench's `rescue` writes. */
export const failures = { crashed: '"crashed"', 'timed-out': '"timed out"', expired: '"expired"' } as const

/** A topic that delivers to every subscriber and retains nothing. */
export const prices: TopicRules = { name: 'prices', delivery: 'all', retainMs: 0 }

const plainMessage = { kind: 'signal', name: 'approved', data: '{"by":"Ada"}', policy: null } as const
const plainBroadcast = { topic: prices, data: '{"price":12}', policy: null, expiresInMs: null } as const

/** The store's own time. It moves only by `advance`. */
export interface ContractClock {
  now(): number
  advance(ms: number): void | Promise<void>
}

/** The requirements of a case: a store that is empty and migrated, and the clock that it reads. */
export interface ContractSubject {
  readonly store: Store & StoreAdmin
  readonly clock: ContractClock
  /** Runs without keys live in one shard: for cases in which the order of claims matters. @default false */
  readonly near?: boolean
}

/** A run that the case holds, and the `seq` that its holder knows. */
export interface Held {
  readonly runId: string
  readonly lease: Lease
  seq: number
}

export type Success = Extract<Committed, { readonly outcome: 'committed' }>

export interface ContractBench extends ContractSubject {
  /** Runs of the bench have this type and version 1 unless a case says otherwise. */
  readonly selector: Selector
  /** Deterministic: the same cases do the same on every store. */
  readonly random: Random
  /** A unique text. */
  readonly unique: (what: string) => string
  readonly newRun: (changes?: Partial<NewRun>) => NewRun
  /** Starts a run without a lease. */
  readonly start: (changes?: Partial<NewRun>) => Promise<Run>
  /** Starts a run that is leased to the case. */
  readonly hold: (changes?: Partial<NewRun>) => Promise<Held>
  readonly claim: (request?: Partial<ClaimRequest>) => Promise<Claimed>
  /**
   * Whether a full claim says that there is more. With several shards it has not asked all of them, and so may say so although there
   * is nothing more.
   */
  readonly assertMore: (more: boolean, isMore: boolean) => void
  /** Claims, and expects exactly this run. */
  readonly take: (runId: string, session?: string) => Promise<Held>
  /** A checkpoint of a held run, with these changes. */
  readonly transition: (held: Held, changes?: Partial<Transition>) => Transition
  /** Commits for a held run, and expects success. */
  readonly commit: (held: Held, changes?: Partial<Transition>) => Promise<Success>
  /** Commits one transition. */
  readonly send: (transition: Transition) => Promise<Committed>
  /** Parks a held run without a due time, and expects success. */
  readonly park: (held: Held, changes?: Partial<Transition>) => Promise<Success>
  readonly message: (runId: string, changes?: Partial<NewMessage>) => NewMessage
  /** A broadcast; without rules, to a topic that delivers to every subscriber and retains nothing. */
  readonly broadcast: (changes?: Partial<NewBroadcast>) => NewBroadcast
  /** A child that the run awaits, and that is cancelled with it, unless the case says otherwise. */
  readonly child: (parentId: string, changes?: Partial<NewRun>, bond?: Partial<ChildStart>) => ChildStart
  readonly deliver: (message: NewMessage | NewBroadcast) => Promise<Delivered>
  /** Sends one control request. */
  readonly control: (runId: string, request: Control, id?: string) => Promise<ControlResult>
  /** Sends the heartbeat of a session, which lives for 30 s unless the case says otherwise. */
  readonly beat: (session: string, changes?: Partial<BeatRequest>) => Promise<Beat>
  /** Rescues once, with a bound of 5 crashes. */
  readonly rescue: (changes?: Partial<RescueRequest>) => Promise<Rescued>
  /** Does all chores. */
  readonly chores: () => Promise<void>
  readonly run: (runId: string) => Promise<Run>
  readonly journal: (runId: string) => Promise<readonly Entry[]>
  readonly mailbox: (runId: string) => Promise<readonly Message[]>
}

/** Creates the bench for one case. Every case needs its own store. */
export function createContractBench({ store, clock, near = false }: ContractSubject): ContractBench {
  const random = createSeededRandom(1)
  const now = (): number => clock.now()
  const runIds = createRunIds({ clock: { now, monotonic: now, after: () => () => undefined }, random })
  const selector: Selector = { type: 'contract.plain', version: 1 }
  let count = 0
  const unique = (what: string): string => `${what}-${(count += 1)}`

  const shards = store.capabilities.shards ?? 1
  /** The runs that are in the feed: every second one, unless the case says otherwise. */
  const fed = new Set<string>()
  let made = 0

  const newRun = (changes: Partial<NewRun> = {}): NewRun => {
    const { key = null, idempotencyKey = null } = changes
    const shard =
      near && key === null && idempotencyKey === null ? 0 : shardForNew({ key, idempotencyKey }, shards, random)
    const run = newRunOf(runIds.next(shard), shard, changes)
    if (run.feed) fed.add(run.id)
    return run
  }

  const newRunOf = (id: string, shard: number, changes: Partial<NewRun>): NewRun => ({
    id,
    shard,
    ...selector,
    key: null,
    keyScope: 'workflow',
    idempotencyKey: null,
    parentId: null,
    tags: [],
    metadata: null,
    feed: (made += 1) % 2 === 0,
    priority: 0,
    due: null,
    timeoutMs: null,
    expiresInMs: null,
    lease: null,
    leaseMs: null,
    transition: unique('start'),
    first: started(),
    ...changes,
  })

  async function start(changes?: Partial<NewRun>): Promise<Run> {
    const [answer] = await store.start([newRun(changes)])
    assert.ok(answer?.created, 'a run with a new id is created')
    return answer.run
  }

  async function hold(changes: Partial<NewRun> = {}): Promise<Held> {
    const lease = changes.lease ?? { session: unique('session'), token: 1 }
    const run = await start({ ...changes, lease })
    return { runId: run.id, lease, seq: run.seq }
  }

  const claim = (request: Partial<ClaimRequest> = {}): Promise<Claimed> =>
    store.claim({ session: 'claimer', selectors: [selector], limit: 100, ...request })

  async function take(runId: string, session = unique('session')): Promise<Held> {
    const { runs } = await claim({ session })
    assert.deepEqual(ids(runs), [runId], 'exactly this run can be claimed')
    const [run] = runs as [Run]
    return { runId, lease: { session, token: run.token }, seq: run.seq }
  }

  const transition = (held: Held, changes: Partial<Transition> = {}): Transition => ({
    id: unique('transition'),
    runId: held.runId,
    guard: { seq: held.seq, lease: held.lease },
    append: [step()],
    status: null,
    due: null,
    parkIf: null,
    undo: null,
    continues: null,
    takes: [],
    feed: fed.has(held.runId),
    ...changes,
  })

  const send = (given: Transition): Promise<Committed> => commitOne(store, given)

  async function commit(held: Held, changes?: Partial<Transition>): Promise<Success> {
    const answer = succeeded(await send(transition(held, changes)))
    held.seq = answer.seq
    return answer
  }

  const get = async (runId: string): Promise<Run> => {
    const [run] = await store.get([runId])
    assert.ok(run, 'the run exists')
    return run
  }

  return {
    store,
    clock,
    selector,
    random,
    unique,
    newRun,
    start,
    hold,
    claim,
    assertMore: (more, isMore) => {
      if (isMore || shards === 1) assert.equal(more, isMore)
    },
    take,
    transition,
    commit,
    send,
    park: (held, changes) => commit(held, { status: 'waiting', parkIf: { inbox: 0 }, ...changes }),
    message: (runId, changes) => ({ id: unique('message'), runId, ...plainMessage, ...changes }),
    broadcast: (changes) => ({ id: unique('broadcast'), ...plainBroadcast, ...changes }),
    child: (parentId, changes, bond) => ({
      run: newRun({ parentId, ...changes }),
      awaited: true,
      onParentEnd: 'cancel',
      ...bond,
    }),
    deliver: (message) => deliverOne(store, message),
    async control(runId, request, id = unique('request')) {
      const answers = await store.control([{ id, runId, ...request }])
      assert.equal(answers.length, 1, 'one request gets one answer')
      return answers[0] as ControlResult
    },
    beat: (session, changes) => store.beat({ session, leaseMs: 30_000, ...changes }),
    rescue: (changes) => store.rescue({ limit: 100, maxCrashes: 5, failures, ...changes }),
    async chores() {
      while ((await store.doChores()).worked);
    },
    run: get,
    async journal(runId) {
      const [loaded] = await store.load([{ runId, after: 0, limit: 100_000 }])
      return loaded?.entries ?? []
    },
    async mailbox(runId) {
      const [loaded] = await store.load([{ runId, after: 0, limit: 0 }])
      return loaded?.messages ?? []
    },
  }
}

/**
 * Commits one transition. If another transaction has locked one of its rows, the answer is busy, and it is sent again
 * separately, as the engine does.
 */
export async function commitOne(
  store: Pick<Store, 'commit'>,
  given: Transition,
  first: BatchOptions = {},
): Promise<Committed> {
  for (let options = first; ; options = { mayWait: true }) {
    const [answer, ...others] = await store.commit([given], options)
    assert.ok(answer !== undefined && others.length === 0, 'one transition gets one answer')
    if (answer.outcome !== 'refused' || answer.reason !== 'busy') return answer
  }
}

/** Delivers one message, in the same way. */
export async function deliverOne(
  store: Pick<Store, 'deliver'>,
  message: NewMessage | NewBroadcast,
  first: BatchOptions = {},
): Promise<Delivered> {
  for (let options = first; ; options = { mayWait: true }) {
    const [answer, ...others] = await store.deliver([message], options)
    assert.ok(answer !== undefined && others.length === 0, 'one message gets one answer')
    if (answer.outcome !== 'busy') return answer
  }
}

/** The rule of a workflow whose runs fail after this many crashes. */
export function failsAfter(selector: Selector, maxCrashes: number): CrashRule {
  return { ...selector, maxCrashes, onCrashes: 'fail' }
}

export function ids(runs: readonly Run[]): readonly string[] {
  return runs.map(({ id }) => id)
}

/** The answer of a transition that must have been committed. */
export function succeeded(answer: Committed | undefined): Success {
  assert.equal(answer?.outcome, 'committed', `expected a commit, got ${JSON.stringify(answer)}`)
  return answer
}

/** The entry of a draft, without its place and time. */
export function draftOf({ kind, name, meta, data }: Entry): Draft {
  return { kind, name, meta, data } as Draft
}

/** Mutates every mutable part of a value. */
export function spoil(value: unknown): void {
  if (typeof value !== 'object' || value === null) return
  for (const key of Object.keys(value)) {
    spoil(Reflect.get(value, key))
    Reflect.set(value, key, 'spoilt')
  }
  if (Array.isArray(value)) Reflect.set(value, 'length', 0)
}

/** Does it `count` times at once. */
export function atOnce<Result>(count: number, make: (index: number) => Promise<Result>): Promise<Result[]> {
  return Promise.all(Array.from({ length: count }, (_, index) => make(index)))
}

/** Waits, in the machine's time, for an event that may be late. */
export async function eventually<Result>(
  look: () => Promise<Result | null> | Result | null,
  what: string,
): Promise<Result> {
  const deadline = Date.now() + 5_000
  for (;;) {
    const found = await look()
    if (found !== null) return found
    assert.ok(Date.now() < deadline, `${what} within 5 s`)
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
}
