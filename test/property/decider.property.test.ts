// Random lives of an instance of a decider: whatever is offered, committed, refused or read again, one journal has one fold.

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Offer } from '../../src/core/definition/decider-model.ts'
import { mostBytes, mostEntries, sizeOf } from '../../src/core/model/transition.ts'
import { deciderRig, seen } from '../support/decider-rig.ts'
import { create, note, on, order, pay, type OrderInput } from '../unit/deciders/order.ts'

const anInput: fc.Arbitrary<OrderInput> = fc.oneof(
  fc.constantFrom(create, pay, { ...pay, amount: -1 }, on('Extend'), on('Forgive'), on('Remind'), on('Misspeak')),
  fc.constantFrom('a', 'b', 'c').map(note),
  { arbitrary: fc.constantFrom(on('Abandon'), on('Overreach')), weight: 1 },
)

const anOffer: fc.Arbitrary<Offer> = fc.oneof(
  fc.record({
    kind: fc.constant('call' as const),
    input: anInput,
    command: fc.option(fc.nat(20).map((id) => `c${id}`)),
  }),
  fc.record({ id: fc.nat(20), input: anInput }).map(({ id, input }) => ({
    kind: 'message' as const,
    id: `c${id}`,
    at: 0,
    read: () => input,
  })),
  fc
    .record({ seq: fc.nat(30), type: fc.constantFrom('sendMail', 'ship'), isDone: fc.boolean() })
    .map(({ seq, type, isDone }) => {
      const common = { name: `${type}#${seq}`, meta: { attempt: 1, ms: 1 } }
      return isDone
        ? { kind: 'performed' as const, ...common, result: { type: 'MailSent' } }
        : { kind: 'gave-up' as const, ...common, effect: { type }, error: new Error('No') }
    }),
)

type Act =
  | { readonly kind: 'decide'; readonly offers: readonly Offer[]; readonly isRefused: boolean }
  | { readonly kind: 'wait'; readonly ms: number }

const anAct: fc.Arbitrary<Act> = fc.oneof(
  {
    arbitrary: fc.record({
      kind: fc.constant('decide' as const),
      offers: fc.array(anOffer, { maxLength: 6 }),
      isRefused: fc.boolean(),
    }),
    weight: 4,
  },
  { arbitrary: fc.record({ kind: fc.constant('wait' as const), ms: fc.constantFrom(1, 1000, 3_600_000) }), weight: 1 },
)

describe('an instance', () => {
  it('IF-A1 IF-W5 has the fold of its journal, whole or in parts, and is untouched by what is refused', () => {
    fc.assert(
      fc.property(fc.array(anAct, { maxLength: 25 }), (acts) => {
        const rig = deciderRig(order)
        for (const act of acts) {
          if (act.kind === 'wait') {
            rig.now += act.ms
            continue
          }
          if (rig.instance.seq === 0 && act.offers.some(({ kind }) => kind !== 'call')) continue
          const before = seen(rig.instance)
          const decided = rig.propose(...act.offers)
          expect(decided.append.length).toBeLessThanOrEqual(mostEntries)
          expect(decided.append.reduce((bytes, draft) => bytes + sizeOf(draft), 0)).toBeLessThanOrEqual(mostBytes)
          for (const draft of decided.append) {
            if (draft.kind === 'input' && draft.meta.from.kind === 'timer')
              expect(draft.meta.from.dueAt).toBeLessThanOrEqual(rig.now)
          }
          if (act.isRefused) {
            rig.instance.rollBack()
            expect(seen(rig.instance)).toEqual(before)
          } else rig.commit(decided)
        }
        expect(rig.entries.map(({ seq }) => seq)).toEqual(rig.entries.map((_, at) => at + 1))
        if (rig.entries.length === 0) return
        expect(seen(rig.reload())).toEqual(seen(rig.instance))
        const snapshot = rig.entries.findLastIndex(({ kind }) => kind === 'snapshot')
        if (snapshot !== -1) expect(seen(rig.reload(snapshot + 1))).toEqual(seen(rig.instance))
        expect(rig.entries.filter(({ kind }) => kind === 'started')).toHaveLength(1)
        const end = rig.entries.findIndex(({ kind }) => kind === 'succeeded')
        if (end !== -1) expect(rig.entries).toHaveLength(end + 1)
      }),
      { numRuns: 500 },
    )
  })

  it('IF-U2 decides no command twice', () => {
    fc.assert(
      fc.property(fc.array(anOffer, { minLength: 1, maxLength: 30 }), (offers) => {
        const rig = deciderRig(order)
        rig.execute(create, 'first')
        for (const offer of offers) rig.offer(offer)
        const commands = rig.entries.flatMap(({ kind, meta }) => {
          if (kind !== 'input' || meta.outcome === 'duplicate' || meta.outcome === 'already-completed') return []
          const id = meta.command ?? (meta.from.kind === 'message' ? meta.from.id : undefined)
          return id === undefined ? [] : [id]
        })
        expect(new Set(commands).size).toBe(commands.length)
      }),
    )
  })
})
