// A store in virtual time with Holdfasts that know the workflows of a test, and a way to hand inputs and messages to runs.

import type { Holdfast, RunReference } from 'holdfast'
import { jsonCodec } from '../../src/core/payload/codec.ts'
import type { Definition } from '../../src/core/definition/definition.ts'
import type { Entry } from '../../src/core/model/entry.ts'
import { Payloads } from '../../src/core/payload/payload.ts'
import type { Store } from '../../src/store.ts'
import { createSeededRandom, type VirtualClock } from 'holdfast/testing'
import type { WorkOptions } from '../../src/worker/work-options.ts'
import { virtualWorld, type VirtualWorld } from '../holdfast/virtual-world.ts'
import type { Access } from './leave.ts'

export interface SpikeWorld extends VirtualWorld {
  readonly access: Access
  /** Another process that performs runs. */
  readonly work: (definition: Definition, options?: WorkOptions) => Promise<Holdfast>
}

export function accessTo(store: Store, clock: VirtualClock): Access {
  return { store, payloads: new Payloads(jsonCodec()), ports: { clock, random: createSeededRandom(1) } }
}

export function spikeWorld(): SpikeWorld {
  const world = virtualWorld()
  return {
    ...world,
    access: accessTo(world.store, world.clock),
    work: async (definition, options) => {
      const holdfast = await world.open({ workflows: [definition] })
      await holdfast.work({ signals: false, ...options })
      return holdfast
    },
  }
}

/** The journal as the store has it. */
export async function entriesOf(store: Store, { id }: { readonly id: string }): Promise<readonly Entry[]> {
  const [loaded] = await store.load([{ runId: id, after: 0, limit: 10_000 }])
  return loaded?.entries ?? []
}

/** The kinds and names of a journal, in the transitions in which they were committed. */
export async function transitionsOf(store: Store, run: { readonly id: string }): Promise<readonly string[]> {
  const lines: string[] = []
  for (const { kind, name, transition } of await entriesOf(store, run)) {
    const line = name === null ? kind : `${kind} ${name}`
    if (transition === null && lines.length > 0) lines.push(`${lines.pop() ?? ''}, ${line}`)
    else lines.push(line)
  }
  return lines
}

export const namesOf = async (
  holdfast: Holdfast,
  run: RunReference,
  kind: Entry['kind'],
): Promise<readonly unknown[]> =>
  (await holdfast.journal(run)).filter((entry) => entry.kind === kind).map(({ name }) => name)
