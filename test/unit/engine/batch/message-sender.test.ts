// The mailer: whatever is sent while a delivery is on its way goes with the next, the order of each run and topic is kept, and
// nothing is in two deliveries.

import { describe, expect, it } from 'vitest'
import { jsonCodec } from '../../../../src/core/payload/codec.ts'
import { Payloads } from '../../../../src/core/payload/payload.ts'
import { Engine } from '../../../../src/engine/engine.ts'
import type { LocalWorker } from '../../../../src/engine/local-worker.ts'
import { MessageSender, type OutgoingMessage } from '../../../../src/engine/batch/message-sender.ts'
import type { Delivered, Hint, NewMessage } from '../../../../src/store.ts'
import { MemoryStore } from '../../../../src/stores/memory/store.ts'
import { systemPorts } from '../../../../src/system.ts'
import { changed } from '../../../holdfast/virtual-world.ts'

const message = (id: string, runId: string): NewMessage => ({
  id,
  runId,
  kind: 'signal',
  name: 'n',
  data: '1',
  policy: null,
})
const news = (id: string): OutgoingMessage => ({
  id,
  topic: { name: 'run-a', delivery: 'all', retainMs: 0 },
  data: '1',
  policy: null,
  expiresInMs: null,
})

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** A store whose deliveries are answered when the test says so. */
function slowStore() {
  const flights: { readonly ids: readonly string[]; readonly land: () => void }[] = []
  const store = {
    deliver: (messages: readonly OutgoingMessage[]) =>
      new Promise<readonly Delivered[]>((resolve) => {
        const ids = messages.map(({ id }) => id)
        const answers = messages.map(() => ({ outcome: 'queued' }) as const)
        flights.push({ ids, land: () => resolve(answers) })
      }),
  }
  return { store, flights }
}

describe('the mailer', () => {
  it('sends what comes in one turn together, in the order of sending, whichever run it is for', async () => {
    const { store, flights } = slowStore()
    const messageSender = new MessageSender(store, systemPorts(), {
      limitMs: () => 15_000,
      noteDelivered: () => undefined,
    })
    const all = [message('1', 'run-a'), news('2'), message('3', 'run-b'), message('4', 'run-a'), news('5')]
    const sent = Promise.all(all.map((message) => messageSender.send(message)))
    await turn()
    expect(flights.map(({ ids }) => ids)).toEqual([['1', '2', '3', '4', '5']])
    flights[0]?.land()
    expect(await sent).toHaveLength(5)
  })

  it('never has two deliveries to one run on their way, and lets those to others pass', async () => {
    const { store, flights } = slowStore()
    const messageSender = new MessageSender(store, systemPorts(), {
      limitMs: () => 15_000,
      noteDelivered: () => undefined,
    })
    const sent = [messageSender.send(message('a1', 'run-a'))]
    await turn()
    sent.push(
      messageSender.send(message('a2', 'run-a')),
      messageSender.send(message('b1', 'run-b')),
      messageSender.send(message('a3', 'run-a')),
    )
    await turn()
    expect(flights.map(({ ids }) => ids)).toEqual([['a1'], ['b1']])
    flights[0]?.land()
    await turn()
    expect(flights.map(({ ids }) => ids)).toEqual([['a1'], ['b1'], ['a2', 'a3']])
    for (const flight of flights) flight.land()
    await Promise.all(sent)
  })

  it('finds the one that the store cannot take, and sends the others of its run in their order', async () => {
    const seen: string[] = []
    const store = {
      deliver: async (messages: readonly OutgoingMessage[]) => {
        if (messages.some(({ id }) => id === '3')) throw new Error('It is poison')
        for (const { id } of messages) seen.push(id)
        return messages.map(() => ({ outcome: 'queued' }) as const)
      },
    }
    const messageSender = new MessageSender(store, systemPorts(), {
      limitMs: () => 15_000,
      noteDelivered: () => undefined,
    })
    const sent = await Promise.allSettled(
      ['1', '2', '3', '4', '5'].map((id) => messageSender.send(message(id, 'run-a'))),
    )
    expect(sent.map(({ status }) => status === 'fulfilled')).toEqual([true, true, false, true, true])
    expect(seen).toEqual(['1', '2', '4', '5'])
  })

  it('takes 20,000 signals to one run in a few deliveries', async () => {
    let flights = 0
    const store = {
      deliver: async (messages: readonly OutgoingMessage[]) => {
        flights += 1
        return messages.map(() => ({ outcome: 'queued' }) as const)
      },
    }
    const messageSender = new MessageSender(store, systemPorts(), {
      limitMs: () => 15_000,
      noteDelivered: () => undefined,
    })
    await Promise.all(Array.from({ length: 20_000 }, (_, n) => messageSender.send(message(String(n), 'run-a'))))
    expect(flights).toBeLessThan(200)
  })
})

describe('the engine', () => {
  function engineWith(deliver: (messages: readonly OutgoingMessage[]) => Delivered[]) {
    const ports = systemPorts()
    let give: (hint: Hint) => void = () => undefined
    const store = changed(new MemoryStore({ clock: ports.clock }), {
      deliver: async (messages) => deliver(messages),
      listen: async (onHint) => {
        give = onHint
        return () => undefined
      },
    })
    const engine = new Engine({ store, ports, payloads: new Payloads(jsonCodec()), definitions: [] })
    const heard: string[] = []
    engine.localWorker = {
      messageArrived: (runId) => void heard.push(runId),
      isMoving: () => false,
    } as Partial<LocalWorker> as LocalWorker
    engine.onReady = () => void heard.push('ready')
    return { engine, heard, give: (hint: Hint) => give(hint) }
  }

  it('notifies the engine of what is queued for a run, and that there is work when one was woken', async () => {
    const { engine, heard } = engineWith((messages) =>
      messages.map(({ id }) => ({ outcome: id === '1' ? 'queued' : 'delivered' })),
    )
    await engine.send(message('1', 'run-a'))
    expect(heard).toEqual(['run-a'])
    await engine.send(message('2', 'run-a'))
    await engine.send(news('1'))
    expect(heard).toEqual(['run-a', 'ready'])
  })

  it('notifies the engine when the store says that a message came from elsewhere', async () => {
    const { engine, heard, give } = engineWith(() => [])
    await engine.open()
    give({ kind: 'message', runId: 'run-a' })
    expect(heard).toEqual(['run-a'])
    await engine.close()
  })
})
