// A data subject is erased: its events are folded as erased, its instance goes on, and the others are unharmed, on every store.

import { randomBytes } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { decider, decision, workflow } from 'holdfast'
import { encryptingCodec, type SubjectKeys } from 'holdfast/encryption'
import { everyStore } from '../stores.ts'
import { until } from '../../support/until.ts'

interface State {
  readonly status: 'new' | 'active' | 'closed'
  readonly mail: string | null
  readonly erased: number
}
type In =
  | { readonly type: 'Sign'; readonly customer: string; readonly mail: string }
  | { readonly type: 'Visit' | 'Close'; readonly id: string }
type Event =
  | { readonly type: 'Signed'; readonly customer: string; readonly mail: string }
  | { readonly type: 'Visited' | 'Closed' }

const member = decider('member', {
  initial: (): State => ({ status: 'new', mail: null, erased: 0 }),
  evolve: (state, event: Event) => {
    if (event.type === 'Signed') return { ...state, status: 'active', mail: event.mail }
    return event.type === 'Closed' ? { ...state, status: 'closed' } : state
  },
  decide: (_state, input: In) => {
    if (input.type === 'Sign') return decision({ type: 'Signed', customer: input.customer, mail: input.mail })
    return decision({ type: input.type === 'Visit' ? 'Visited' : 'Closed' })
  },
  id: { '*': 'id', Sign: 'customer' },
  isTerminal: ({ status }) => status === 'closed',
  onErased: (state, { type }) => ({
    ...state,
    status: type === 'Signed' ? 'active' : state.status,
    erased: state.erased + 1,
  }),
  snapshotEvery: 4,
})

function codecWith(subjectKeys: SubjectKeys, current = 'a') {
  const of = (value: unknown): string | null => {
    const { customer, mail } = (value ?? {}) as { customer?: string; mail?: string | null }
    return customer ?? (typeof mail === 'string' ? (mail.split('@')[0] ?? null) : null)
  }
  return encryptingCodec({
    keys: { a: Buffer.alloc(32, 1), b: Buffer.alloc(32, 2) },
    current,
    subjects: { of, keys: subjectKeys },
  })
}

function subjectKeys() {
  const known = new Map<string, Uint8Array | null>()
  return {
    forSubject(id: string) {
      if (!known.has(id)) known.set(id, randomBytes(32))
      return known.get(id) ?? null
    },
    destroy: (id: string) => void known.set(id, null),
  }
}

const sign = (customer: string) => ({ type: 'Sign', customer, mail: `${customer}@example.com` }) as const
const visit = (id: string) => ({ type: 'Visit', id }) as const

describe.each(everyStore)('erasing a data subject on $name', ({ make }) => {
  it('IF-V2 leaves the types of its events, folds on, and harms no other subject', async () => {
    const { open } = await make()
    const keys = subjectKeys()
    const before = await open({ workflows: [member], codec: codecWith(keys) })
    for (const id of ['ada', 'bob']) {
      await before.execute(member, sign(id), { commandId: 'sign' })
      for (let times = 0; times < 3; times += 1) await before.execute(member, visit(id))
    }
    const run = await before.instance(member, 'ada')
    expect((await before.journal(run)).some(({ kind }) => kind === 'snapshot')).toBe(true)
    await before.close()

    keys.destroy('ada')
    const holdfast = await open({ workflows: [member], codec: codecWith(keys) })
    expect(await holdfast.state(member, 'ada')).toEqual({ status: 'active', mail: null, erased: 1 })
    expect(await holdfast.state(member, 'bob')).toEqual({ status: 'active', mail: 'bob@example.com', erased: 0 })
    expect((await holdfast.events(member, 'ada'))[0]).toEqual({ type: 'Signed', erased: true })
    expect((await holdfast.history(member, 'ada')).map(({ event }) => event.type)).toEqual([
      'Signed',
      'Visited',
      'Visited',
      'Visited',
    ])
    expect(await holdfast.execute(member, sign('ada'), { commandId: 'sign' })).toMatchObject({
      outcome: 'accepted',
      events: [{ type: 'Signed', erased: true }],
    })
    expect(await holdfast.inspect(member, 'ada')).toMatchObject({ state: { erased: 1 }, unreadable: null })
    // It goes on, but nothing more of the subject is written.
    expect(await holdfast.execute(member, visit('ada'))).toMatchObject({ outcome: 'accepted' })
    await expect(holdfast.execute(member, sign('ada'))).rejects.toMatchObject({
      code: 'DECIDE_FAILED',
      message: expect.stringContaining('its data subject was erased') as string,
    })
    expect(await holdfast.replay(run)).toEqual({ outcome: 'same' })
    expect(await holdfast.execute(member, { type: 'Close', id: 'ada' })).toMatchObject({ outcome: 'accepted' })
    expect(await (await holdfast.instance(member, 'ada')).status()).toBe('succeeded')
  })

  it('IF-V2 passes erased events over if the decider says nothing of them, and encrypts anew what is left', async () => {
    const { open } = await make()
    const keys = subjectKeys()
    const silent = decider('member', {
      initial: () => 0,
      evolve: (count, _event: Event) => count + 1,
      decide: (_count, input: In) =>
        input.type === 'Sign'
          ? decision({ type: 'Signed', customer: input.customer, mail: input.mail })
          : decision({ type: 'Visited' }),
      id: { '*': 'id', Sign: 'customer' },
    })
    const before = await open({ workflows: [silent], codec: codecWith(keys) })
    await before.execute(silent, sign('ada'))
    await before.execute(silent, visit('ada'))
    await before.close()
    keys.destroy('ada')
    const holdfast = await open({ workflows: [silent], codec: codecWith(keys, 'b') })
    expect(await holdfast.state(silent, 'ada')).toBe(1)
    expect(await holdfast.rekey()).toMatchObject({ unreadable: 0 })
    await holdfast.close()
    const onlyB = encryptingCodec({
      keys: { b: Buffer.alloc(32, 2) },
      current: 'b',
      subjects: { of: () => null, keys },
    })
    const later = await open({ workflows: [silent], codec: onlyB })
    expect(await later.state(silent, 'ada')).toBe(1)
  })

  it('IF-V2 performs no effect about it, fires no such timer, and pauses a function that needs its data', async () => {
    const { open } = await make()
    const keys = subjectKeys()
    const performed: unknown[] = []
    const caller = decider('caller', {
      initial: () => 0,
      evolve: (count, _event: { type: 'Rung' }) => count + 1,
      decide: (_count, input: { type: 'Ring'; id: string } | { type: 'Again'; customer: string }) =>
        input.type === 'Again'
          ? decision({ type: 'Rung' })
          : decision({ type: 'Rung' })
              .effect({ type: 'call', customer: 'ada' })
              .timer('again', { after: 1 }, { type: 'Again', customer: 'ada' }),
      id: { Ring: 'id', Again: null },
      effects: { call: (effect) => void performed.push(effect) },
      retry: { maxAttempts: 2, kind: 'constant', initial: 0 },
    })
    const letter = workflow('letter', async (ctx, _id: string) => {
      const written = await ctx.step('write', () => ({ customer: 'ada', text: 'Dear Ada' }))
      await ctx.receive('go')
      return written.text
    })
    const before = await open({ workflows: [caller, letter], codec: codecWith(keys) })
    await before.execute(caller, { type: 'Ring', id: '1' })
    await before.close()
    const written = await open({ workflows: [letter], codec: codecWith(keys) })
    await written.work()
    const run = await written.start(letter, '1')
    await until('it waits', async () => (await run.status()) === 'waiting')
    await written.close()
    keys.destroy('ada')
    const holdfast = await open({ workflows: [caller, letter], codec: codecWith(keys) })
    await holdfast.work()
    const effect = async () => (await holdfast.find({ type: 'caller/call' })).runs[0]
    await until('the effect gives up', async () => (await effect())?.status === 'failed')
    await until('the timer gives up', async () => (await holdfast.deadTimers(caller, '1')).length === 1)
    expect(performed).toEqual([])
    expect((await effect())?.lastError).toContain('its data subject was erased')
    expect(await holdfast.state(caller, '1')).toBe(1)
    await holdfast.signal(run.id, 'go')
    await until('it is paused', async () => (await holdfast.get(run.id))?.status === 'paused')
    expect((await holdfast.get(run.id))?.pause).toMatchObject({ reason: 'unreadable' })
  })
})
