// One instance of a decider over a journal in memory: what is decided is committed at the time of the rig, or refused.

import { jsonCodec, type Codec } from '../../src/core/payload/codec.ts'
import type { Answer, Decided, DeciderInstance, Offer } from '../../src/core/definition/decider-model.ts'
import type { Entry } from '../../src/core/model/entry.ts'
import { Payloads } from '../../src/core/payload/payload.ts'
import { systemDigest as digest } from '../../src/system.ts'
import type { Decider, DeciderTypes } from '../../src/deciders/index.ts'

export interface DeciderRig {
  now: number
  readonly entries: readonly Entry[]
  readonly instance: DeciderInstance
  /** Decides and commits. */
  offer(...offers: readonly Offer[]): Decided
  /** One input of a client. */
  execute(input: unknown, command?: string): Answer
  /** Decides timers that are due. */
  fire(): Decided
  /** Decides without committing. */
  propose(...offers: readonly Offer[]): Decided
  commit(decided: Decided): void
  /** Another instance over the same journal, from that entry on. */
  reload(from?: number): DeciderInstance
  /** The journal in words: one line for each transition. */
  story(): readonly string[]
}

export interface RigOptions {
  readonly codec?: Codec
  readonly id?: string
  readonly entries?: readonly Entry[]
}

const runId = '01890a5d-ac96-774b-bcce-b302099a8057'

export function deciderRig<Types extends DeciderTypes>(
  { model }: Pick<Decider<Types>, 'model'>,
  { codec = jsonCodec(), id = '1', entries: given = [] }: RigOptions = {},
): DeciderRig {
  const entries: Entry[] = [...given]
  const payloads = new Payloads(codec)
  const random = { uint32: () => 0 }
  const open = () => model.open({ runId, id, payloads, ports: { digest, random } })
  const instance = open()
  if (entries.length > 0) instance.apply(entries)
  const rig: DeciderRig = {
    now: 1_000_000,
    entries,
    instance,
    offer: (...offers) => {
      const decided = rig.propose(...offers)
      rig.commit(decided)
      return decided
    },
    execute: (input, command) => {
      const { answers } = rig.offer({ kind: 'call', input, command: command ?? null })
      const [answer] = answers
      if (answer === undefined) throw new Error('It was not decided')
      return answer
    },
    fire: () => rig.offer(),
    propose: (...offers) => instance.decide(offers, { now: rig.now }),
    commit: ({ append }) => {
      if (append.length === 0) return
      for (const [index, draft] of append.entries()) {
        const transition = index === 0 ? `t${entries.length}` : null
        entries.push({ ...draft, seq: entries.length + 1, at: rig.now, transition })
      }
      instance.committed(rig.now)
    },
    reload: (from = 1) => {
      const other = open()
      other.apply(entries.slice(from - 1))
      return other
    },
    story: () => {
      const lines: string[][] = []
      for (const { kind, name, transition } of entries) {
        if (transition !== null) lines.push([])
        lines.at(-1)?.push(name === null ? kind : `${kind} ${name}`)
      }
      return lines.map((line) => line.join(', '))
    },
  }
  return rig
}

/** All that can be seen of an instance. */
export function seen({ seq, state, isOver, timers, effects }: DeciderInstance): unknown {
  const byName = [...timers].sort((one, other) => one.name.localeCompare(other.name))
  return { seq, state, isOver, timers: byName, effects }
}

/** The answer, without the state and events of an accepted one. */
export function outcomes({ answers }: Pick<Decided, 'answers'>): readonly string[] {
  return answers.map(({ outcome }) => outcome)
}
