// What runs send to receivers that do not take it now: it waits in the journal of its sender, and holds up nobody.

import assert from 'node:assert/strict'
import { defaultPageLimits } from '../../../core/model/chore.ts'
import { sentMessageId } from '../../../core/model/message.ts'
import type { Store, StoreTransactions } from '../../../store.ts'
import type { ContractBench, Held } from '../bench.ts'
import type { ContractCase } from '../contract-case.ts'
import { broadcastSent, ending, signalSent, step } from '../drafts.ts'
import { expectSound, jobs, messages, subscribed } from '../exchanges.ts'
import { dead } from './unread-messages.ts'

export const over = { append: [ending('succeeded')], status: 'succeeded' } as const

/** The payloads in the mailbox of a run. */
export async function texts(bench: ContractBench, { runId }: Pick<Held, 'runId'>): Promise<readonly unknown[]> {
  return (await messages(bench, runId)).map(([, , text]) => text)
}

/** Sends signals with those texts to a run, with this bound on unread messages. */
export function sentTo({ runId }: Held, data: readonly string[], mostUnread?: number) {
  return data.map((text) => signalSent(runId, `"${text}"`, mostUnread === undefined ? {} : { mostUnread }))
}

/** The message leaves the mailbox. */
async function read(bench: ContractBench, held: Held, count: number): Promise<void> {
  const takes = (await bench.mailbox(held.runId)).slice(0, count).map(({ id }) => id)
  await bench.commit(held, { takes })
}

/** Does all chores that are due by then. */
async function later(bench: ContractBench, ms = 60_000): Promise<void> {
  await bench.clock.advance(ms)
  await bench.chores()
}

export const heldBackCases: readonly ContractCase[] = [
  {
    name: 'a full mailbox keeps no sender waiting: what it does not take comes in its order when there is room',
    async run(bench) {
      const [sender, full, other] = [await bench.hold(), await bench.hold(), await bench.hold()]
      await bench.commit(sender, {
        append: [...sentTo(full, ['1', '2', '3', '4'], 2), ...sentTo(other, ['a'], 2)],
      })
      await bench.commit(sender, { append: [...sentTo(full, ['5']), ...sentTo(other, ['b'], 2)] })
      assert.deepEqual(await texts(bench, full), ['1', '2'])
      assert.deepEqual(await texts(bench, other), ['a', 'b'], 'nothing holds up the other')
      await later(bench)
      assert.deepEqual(await texts(bench, full), ['1', '2'])
      await expectSound(bench)
      await read(bench, full, 1)
      await later(bench)
      assert.deepEqual(await texts(bench, full), ['2', '3'])
      await read(bench, full, 2)
      await bench.commit(sender, { append: sentTo(full, ['6']) })
      await later(bench)
      assert.deepEqual(await texts(bench, full), ['4', '5', '6'], 'without a bound nothing holds back the last two')
      await bench.commit(sender, { append: sentTo(full, ['7']) })
      assert.deepEqual(await texts(bench, full), ['4', '5', '6', '7'])
      assert.deepEqual(await bench.store.doChores(), { worked: false, nextInMs: null })
      await expectSound(bench)
    },
  },
  {
    name: 'what a receiver has not taken when it ends is settled by its policy, also if its sender is over',
    async run(bench) {
      const [sender, full] = [await bench.hold(), await bench.hold()]
      const sent = ['1', '2', '3'].map((text) =>
        signalSent(full.runId, `"${text}"`, { mostUnread: 1, ...(text === '2' ? {} : { policy: dead }) }),
      )
      await bench.commit(sender, { append: sent })
      await bench.commit(sender, over)
      await bench.commit(full, over)
      await expectSound(bench)
      await later(bench)
      const letters = await bench.store.deadLetters({}, { limit: 10 })
      assert.deepEqual(letters.map(({ data }) => data).toSorted(), ['"1"', '"3"'])
      assert.deepEqual(await bench.store.doChores(), { worked: false, nextInMs: null })
      await expectSound(bench)
    },
  },
  {
    name: 'a full topic keeps no sender waiting',
    async run(bench) {
      const sender = await bench.hold()
      const append = ['1', '2'].map((text) => broadcastSent(jobs, `"${text}"`, { mostKept: 1 }))
      await bench.commit(sender, { append })
      await later(bench)
      assert.deepEqual(await subscribed(bench, jobs), [sentMessageId(sender.runId, 2)])
      await later(bench)
      assert.deepEqual(await subscribed(bench, jobs), [sentMessageId(sender.runId, 3)])
      assert.deepEqual(await bench.store.doChores(), { worked: false, nextInMs: null })
      await expectSound(bench)
    },
  },
  {
    name: 'what a receiver did not take is found in a long journal, page by page',
    async run(bench) {
      const [sender, full] = [await bench.hold(), await bench.hold()]
      await bench.commit(sender, { append: sentTo(full, ['1', '2'], 1) })
      const between = Array.from({ length: defaultPageLimits.sent }, (_, n) => step(`step ${n}`))
      await bench.commit(sender, { append: between.slice(0, 250) })
      await bench.commit(sender, { append: between.slice(250) })
      await bench.commit(sender, { append: sentTo(full, ['3']) })
      await read(bench, full, 1)
      await later(bench)
      assert.deepEqual(await texts(bench, full), ['2', '3'])
      assert.deepEqual(await bench.store.doChores(), { worked: false, nextInMs: null })
      await expectSound(bench)
    },
  },
  {
    name: 'a hundred senders of one batch reach one receiver, each once',
    async run(bench) {
      const target = await bench.hold()
      const senders: Held[] = []
      for (let count = 0; count < 100; count += 1) senders.push(await bench.hold())
      const answers = await bench.store.commit(
        senders.map((one, at) => bench.transition(one, { append: sentTo(target, [String(at)]) })),
      )
      assert.ok(answers.every(({ outcome }) => outcome === 'committed'))
      const got = await texts(bench, target)
      assert.deepEqual(new Set(got), new Set(senders.map((_, at) => String(at))))
      assert.equal(got.length, senders.length)
      await expectSound(bench)
    },
  },
  {
    name: 'what a run sends in a transaction of a user arrives in its order if and only if that commits',
    needs: 'transactions',
    async run(bench) {
      const [sender, target] = [await bench.hold(), await bench.hold()]
      const store: Store = bench.store
      const users = store as Store & StoreTransactions
      const sending = (text: string) =>
        bench.transition(sender, { append: [...sentTo(target, [text]), broadcastSent(jobs, `"${text}"`)] })
      const enough = new Error('The case rolls back')
      await assert.rejects(
        users.transact(async (_handle, within) => {
          await within.commit([sending('never')])
          throw enough
        }),
        (error) => error === enough,
      )
      await later(bench, 1)
      assert.equal((await bench.run(target.runId)).inbox, 0)
      await users.transact(async (_handle, within) => {
        const [committed] = await within.commit([sending('1')])
        assert.equal(committed?.outcome, 'committed')
      })
      sender.seq += 2
      await bench.commit(sender, { append: sentTo(target, ['2']) })
      await later(bench, 1)
      assert.deepEqual(await texts(bench, target), ['1', '2'])
      assert.deepEqual(await subscribed(bench, jobs), [sentMessageId(sender.runId, 3)])
      assert.deepEqual(await bench.store.doChores(), { worked: false, nextInMs: null })
      await expectSound(bench)
    },
  },
]
