// A decider as a user writes one, on the kernel: nothing of what it decides is lost, doubled or half done.

import { randomBytes } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import type { Offload } from 'holdfast'
import { encryptingCodec } from 'holdfast/encryption'
import { Payloads } from '../../src/core/payload/payload.ts'
import { gate } from '../holdfast/gate.ts'
import { changed } from '../holdfast/virtual-world.ts'
import { decider, decision } from './decider.ts'
import { enqueue, execute } from './execute.ts'
import { orderWorld, type OrderInput } from './order.ts'
import { accessTo, entriesOf, namesOf, spikeWorld, transitionsOf } from './world.ts'

const create: OrderInput = { type: 'Create', to: 'ada' }
const pay: OrderInput = { type: 'Pay', amount: 5 }

describe('an input', () => {
  it('is one transition with its events, effects and timers, and so is the result of an effect', async () => {
    const { store, access, after, clock, work } = spikeWorld()
    const holdfast = await work(orderWorld().order)
    const run = await holdfast.start('order', create)
    await clock.advance('1s')
    expect(await run.status()).toBe('waiting')
    await after(execute(access, run.id, pay, 'pay'))
    expect(await after(run.result())).toEqual({ status: 'shipped', isConfirmed: true, notes: [] })
    expect(await transitionsOf(store, run)).toEqual([
      'started',
      'input Create, event Created, effect sendMail, timer payment',
      'effect-succeeded sendMail, input MailSent, event Confirmed',
      'input Pay, event Paid, effect ship, timer-cancelled payment',
      'effect-succeeded ship, input Shipped, event Shipped, succeeded',
    ])
    const [loaded] = await store.load([{ runId: run.id, after: 0, limit: 0 }])
    expect(loaded?.messages).toEqual([])
  })

  it('is answered with its outcome, and the same id again with the first one, also after the end', async () => {
    const { store, access, after, work } = spikeWorld()
    const holdfast = await work(orderWorld().order)
    const run = await holdfast.start('order', create)
    const ask = (input: OrderInput, id: string) => after(execute(access, run.id, input, id))
    const again = await ask(create, 'again')
    expect(again).toEqual({ outcome: 'rejected', reason: 'It exists.', events: [] })
    const paid = { outcome: 'accepted', reason: null, events: [{ type: 'Paid', amount: 5 }] }
    expect(await ask(pay, 'pay')).toEqual(paid)
    expect(await ask({ type: 'Pay', amount: 7 }, 'pay')).toEqual(paid)
    await after(run.result())
    const length = (await entriesOf(store, run)).length
    expect(await ask(pay, 'pay')).toEqual(paid)
    expect(await ask(create, 'again')).toEqual(again)
    expect(await ask(pay, 'late')).toEqual({ outcome: 'already-completed', reason: null, events: [] })
    expect(await entriesOf(store, run)).toHaveLength(length)
  })

  it('that makes the decider throw, or cannot be read, harms itself and no other', async () => {
    const { store, access, after, work } = spikeWorld()
    const holdfast = await work(orderWorld().order)
    const run = await holdfast.start('order', create)
    const thrown = await after(execute(access, run.id, { type: 'Pay', amount: -1 }, 'bad'))
    expect(thrown).toEqual({ outcome: 'rejected', reason: 'An amount cannot be negative', events: [] })
    await store.deliver([{ id: 'poison', runId: run.id, kind: 'signal', name: 'input', data: '{"$what', policy: null }])
    expect(await after(execute(access, run.id, pay, 'pay'))).toMatchObject({ outcome: 'accepted' })
    await after(run.result())
    const inputs = (await entriesOf(store, run)).filter(({ kind }) => kind === 'input')
    const poison = inputs.find(({ meta }) => JSON.stringify(meta).includes('poison'))
    expect(poison).toMatchObject({ name: null, data: null, meta: { outcome: 'rejected' } })
  })

  it('that a run was started with and that is rejected leaves no run that waits for ever', async () => {
    const { after, work } = spikeWorld()
    const holdfast = await work(orderWorld().order)
    const run = await holdfast.start('order', pay)
    await expect(after(run.result())).rejects.toThrow('There is no such order.')
  })

  it('is decided while an effect is being performed, and does not wait for its end', async () => {
    const { access, after, work, until } = spikeWorld()
    const { passed, open: letGo } = gate()
    const { order, performed } = orderWorld({ sendMail: () => passed })
    const holdfast = await work(order)
    const run = await holdfast.start('order', create)
    await until(() => performed.length === 1)
    const answer = await after(execute(access, run.id, { type: 'Note', text: 'hurry' }, 'note'))
    expect(answer).toMatchObject({ outcome: 'accepted' })
    expect(await namesOf(holdfast, run, 'effect-succeeded')).toEqual([])
    letGo()
    await after(execute(access, run.id, pay, 'pay'))
    expect(await after(run.result())).toMatchObject({ isConfirmed: true, notes: ['hurry'] })
  })

  it('that is read again while its transition is on its way is not decided again', async () => {
    const { store, access, after, clock, open, until } = spikeWorld()
    const [commit, mail] = [gate(), gate()]
    let taken = 0
    const slow = changed(store, {
      commit: async (transitions) => {
        if (transitions.some(({ takes }) => takes.length > 0)) {
          taken += 1
          await commit.passed
        }
        return store.commit(transitions)
      },
    })
    const { order, performed } = orderWorld({ sendMail: () => mail.passed })
    const holdfast = await open({ store: slow, workflows: [order] })
    await holdfast.work({ signals: false })
    const run = await holdfast.start('order', create)
    await until(() => performed.length === 1)
    await enqueue(access, run.id, { type: 'Note', text: 'once' }, 'note')
    await until(() => taken === 1)
    await clock.advance('5s')
    commit.open()
    mail.open()
    await after(execute(access, run.id, pay, 'pay'))
    expect(await after(run.result())).toMatchObject({ notes: ['once'] })
  })

  it('of 200 that two clients send at once is never lost, doubled or overtaken by a later one of its sender', async () => {
    const { store, access, after, work, open } = spikeWorld()
    const { order } = orderWorld()
    const holdfast = await work(order)
    await open({ workflows: [order] }).then((second) => second.work({ signals: false }))
    const run = await holdfast.start('order', create)
    const send = async (who: string) => {
      for (let count = 0; count < 100; count += 1) {
        await enqueue(access, run.id, { type: 'Note', text: `${who}${count}` }, `${who}${count}`)
      }
    }
    await after(Promise.all([send('a'), send('b'), execute(access, run.id, { type: 'Extend' }, 'extend')]))
    await after(execute(access, run.id, pay, 'pay'))
    const { notes } = (await after(run.result())) as { readonly notes: readonly string[] }
    const expected = Array.from({ length: 100 }, (_, count) => count)
    for (const who of ['a', 'b']) {
      expect(notes.filter((note) => note.startsWith(who))).toEqual(expected.map((count) => `${who}${count}`))
    }
    expect(notes).toHaveLength(200)
    const inputs = (await entriesOf(store, run)).filter(({ kind, name }) => kind === 'input' && name === 'Note')
    expect(inputs).toHaveLength(200)
  })
})

describe('an effect', () => {
  it('is tried again with the same key, soon in memory and later by another claim, until it succeeds', async () => {
    const { store, access, after, work } = spikeWorld()
    let fails = 4
    const { order, performed } = orderWorld({
      sendMail: () => {
        fails -= 1
        if (fails >= 0) throw new Error('The mail server is down')
      },
      options: { retry: { maxAttempts: 5, initial: '500ms', factor: 10, jitter: { mode: 'none' } } },
    })
    const holdfast = await work(order)
    const run = await holdfast.start('order', create)
    await after(execute(access, run.id, { type: 'Forgive' }, 'forgive'))
    await after(execute(access, run.id, pay, 'pay'))
    await after(run.result())
    const mails = performed.filter(({ effect }) => effect === 'sendMail')
    expect(mails.map(({ attempt }) => attempt)).toEqual([1, 2, 3, 4, 5])
    expect(new Set(mails.map(({ key }) => key)).size).toBe(1)
    const entries = await entriesOf(store, run)
    const failed = entries.filter(({ kind }) => kind === 'attempt-failed')
    expect(failed.map(({ meta }) => (meta as { delayMs: number }).delayMs)).toEqual([500, 5_000, 50_000, 300_000])
    const done = entries.find(({ kind, name }) => kind === 'effect-succeeded' && name === 'sendMail')
    expect((done?.at ?? 0) - (entries[0]?.at ?? 0)).toBeGreaterThanOrEqual(355_500)
  })

  it('that gives up is reported to the decider in the transition that says so', async () => {
    const { store, access, after, work, clock } = spikeWorld()
    const { order } = orderWorld({
      sendMail: () => Promise.reject(new Error('No such address')),
      options: { retry: { maxAttempts: 2 }, onGivenUp: () => ({ type: 'MailLost' }) },
    })
    const holdfast = await work(order)
    const run = await holdfast.start('order', create)
    await clock.advance('1 min')
    await after(execute(access, run.id, pay, 'pay'))
    expect(await after(run.result())).toMatchObject({ status: 'shipped', isConfirmed: false })
    expect(await transitionsOf(store, run)).toContain('effect-failed sendMail, input MailLost, event Unconfirmed')
  })

  it('that was asked for before the end is still performed, and inputs that come meanwhile change nothing', async () => {
    const { store, access, after, clock, work, until } = spikeWorld()
    const { passed, open: letGo } = gate()
    const { order, performed } = orderWorld({ ship: () => passed, payWithin: '2 min' })
    const holdfast = await work(order)
    const run = await holdfast.start('order', create)
    await after(execute(access, run.id, { type: 'Abandon' }, 'abandon'))
    await until(() => performed.some(({ effect }) => effect === 'ship'))
    // Its timer is gone with it.
    await clock.advance('3 min')
    expect(await namesOf(holdfast, run, 'input')).not.toContain('Late')
    expect(await after(execute(access, run.id, pay, 'pay'))).toMatchObject({ outcome: 'already-completed' })
    expect(await run.status()).toBe('running')
    letGo()
    expect(await after(run.result())).toMatchObject({ status: 'expired' })
    expect(await transitionsOf(store, run).then((all) => all.at(-1))).toBe('effect-succeeded ship, succeeded')
  })

  it('never begins before its input is durable', async () => {
    const { store, open, until, clock } = spikeWorld()
    const { order, performed } = orderWorld()
    const { passed, open: letGo } = gate()
    let commits = 0
    const slow = changed(store, {
      commit: async (transitions) => {
        commits += 1
        await passed
        return store.commit(transitions)
      },
    })
    const holdfast = await open({ store: slow, workflows: [order] })
    await holdfast.work({ signals: false })
    await holdfast.start('order', create)
    await until(() => commits === 1)
    await clock.advance('1s')
    expect(performed).toEqual([])
    letGo()
    await until(() => performed.length === 1)
  })
})

describe('a timer', () => {
  it('fires when it is due and not before, whichever worker holds the run then', async () => {
    const { store, after, clock, work } = spikeWorld()
    const { order } = orderWorld()
    const first = await work(order)
    const run = await first.start('order', create)
    await clock.advance('30 min')
    await after(first.close())
    const second = await work(order)
    await clock.advance('29 min')
    expect(await second.run(run).status()).toBe('waiting')
    expect(await after(second.run(run).result())).toMatchObject({ status: 'expired' })
    const entries = await entriesOf(store, run)
    const set = entries.find(({ kind }) => kind === 'timer')
    const fired = entries.find(({ kind, name }) => kind === 'input' && name === 'Late')
    const dueAt = (set?.at ?? 0) + 3_600_000
    expect(fired?.meta).toEqual({ from: { kind: 'timer', name: 'payment', dueAt }, outcome: 'accepted' })
    expect(fired?.at).toBeGreaterThanOrEqual(dueAt)
  })

  it('of a key replaces the one that has it, and one that is cancelled does not fire', async () => {
    const { access, after, clock, work } = spikeWorld()
    const holdfast = await work(orderWorld().order)
    const extended = await holdfast.start('order', create)
    const forgiven = await holdfast.start('order', create)
    await clock.advance('59 min')
    await after(execute(access, extended.id, { type: 'Extend' }, 'extend'))
    await after(execute(access, forgiven.id, { type: 'Forgive' }, 'forgive'))
    await clock.advance('170 min')
    expect([await extended.status(), await forgiven.status()]).toEqual(['waiting', 'waiting'])
    await clock.advance('20 min')
    expect([await extended.status(), await forgiven.status()]).toEqual(['succeeded', 'waiting'])
    expect((await holdfast.get(forgiven)).dueAt).toBeNull()
  })

  it('that its own input sets again fires each time, and no more once it is not', async () => {
    const { clock, work } = spikeWorld()
    const metronome = decider<number, { type: 'Tick' }, { type: 'Ticked' }, never>('metronome', {
      initial: () => 0,
      evolve: (ticks) => ticks + 1,
      decide: (ticks) => {
        const ticked = decision({ type: 'Ticked' } as const)
        return ticks < 3 ? ticked.timer('tick', { after: '10s' }, { type: 'Tick' }) : ticked
      },
      isTerminal: () => false,
      effects: {},
    })
    const holdfast = await work(metronome)
    const run = await holdfast.start('metronome', { type: 'Tick' })
    await clock.advance('10 min')
    expect(await namesOf(holdfast, run, 'event')).toHaveLength(4)
    expect(await run.status()).toBe('waiting')
  })

  it('that came due before a message was left is decided first', async () => {
    const { store, access, after, clock, work } = spikeWorld()
    const { order } = orderWorld()
    const first = await work(order)
    const run = await first.start('order', create)
    await clock.advance('1 min')
    await after(first.close())
    await clock.advance('2h')
    await enqueue(access, run.id, pay, 'pay')
    const second = await work(order)
    expect(await after(second.run(run).result())).toMatchObject({ status: 'expired' })
    expect(await after(execute(access, run.id, pay, 'pay'))).toMatchObject({ outcome: 'already-completed' })
    expect((await transitionsOf(store, run)).at(-1)).toBe('input Late, event Expired, succeeded')
  })
})

describe('a decider that waits', () => {
  it('goes on without folding its journal again where it was parked, and folds it where it was not', async () => {
    const { access, after, work } = spikeWorld()
    const { order, folds } = orderWorld()
    const holdfast = await work(order)
    const run = await holdfast.start('order', create)
    for (let count = 0; count < 10; count += 1) {
      await after(execute(access, run.id, { type: 'Note', text: `${count}` }, `${count}`))
    }
    // Each event is folded once to try it and once for good.
    expect(folds.count).toBe(2 * 12)
    await after(holdfast.close())
    const other = await work(order, { cachedRuns: 0 })
    await after(execute(access, run.id, { type: 'Note', text: 'last' }, 'last'))
    await after(execute(access, run.id, pay, 'pay'))
    await after(other.run(run).result())
    expect(folds.count).toBe(2 * 15 + 12 + 13)
  })
})

describe('an input to nobody', () => {
  it('is refused', async () => {
    const { access } = spikeWorld()
    await expect(enqueue(access, '01890a5d-ac96-774b-bcce-b302099a8057', pay, 'x')).rejects.toThrow('There is no run')
  })
})

describe('payloads of a decider', () => {
  it('that are encrypted for their place, or lie elsewhere, are read where they were written and moved with the rest', async () => {
    const { store, clock, open, after } = spikeWorld()
    const codec = encryptingCodec({ keys: { only: randomBytes(32) }, current: 'only' })
    const elsewhere = new Map<string, string>()
    const offload: Offload = {
      thresholdBytes: 300,
      put: async (text, { runId, seq, kind, name, id }) => {
        const reference = Buffer.from(JSON.stringify([runId, seq, kind, name, id])).toString('base64url')
        elsewhere.set(reference, text)
        return reference
      },
      get: async (reference) => elsewhere.get(reference) ?? '',
    }
    const access = { ...accessTo(store, clock), payloads: new Payloads(codec, offload) }
    const { order } = orderWorld()
    const long = 'long '.repeat(100)
    const first = await open({ workflows: [order], codec, offload })
    await first.work({ signals: false })
    const run = await first.start('order', create)
    await after(execute(access, run.id, { type: 'Note', text: long }, 'note'))
    await after(first.close())
    const second = await open({ workflows: [order], codec, offload })
    await second.work({ signals: false })
    await after(execute(access, run.id, pay, 'pay'))
    expect(await after(second.run(run).result())).toMatchObject({ status: 'shipped', notes: [long] })
    expect(JSON.stringify(await entriesOf(store, run))).not.toMatch(/long|ada/)
    // The message, the input, the event and the output.
    expect(elsewhere.size).toBe(4)
  })
})
