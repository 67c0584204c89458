// Others are heard as long as that is possible, and nobody relies on it: a connection that breaks or falls silent is
// replaced, one that does not hear is tried again seldom, and each is said once.

import { describe, expect, it } from 'vitest'
import type { Hint } from '../../../../../src/store.ts'
import { Listener, type ListenClient } from '../../../../../src/stores/postgres/hints/listener.ts'
import { noticesOf } from '../../../../../src/stores/postgres/hints/notice.ts'
import type { NoticeSeal } from '../../../../../src/stores/postgres/hints/notice-seal.ts'
import { manualPorts, turn } from '../../../../support/manual-ports.ts'

type Heard = (notice: { readonly channel: string; readonly payload?: string }) => void

/** A connection that delivers what is sent, as long as it is asked to. */
class FakeClient implements ListenClient {
  readonly asked: string[] = []
  delivers = true
  refuses = false
  discarded = false
  private heard: Heard = () => undefined
  private readonly gone: ((error?: Error) => void)[] = []

  async query(text: string, values: readonly string[] = []): Promise<void> {
    this.asked.push(text)
    if (this.refuses) throw new Error('refused')
    const [channel, payload] = values
    if (channel !== undefined && payload !== undefined) this.receive(payload, channel)
  }

  on(event: 'notification' | 'error' | 'end', call: Heard | ((error?: Error) => void)): void {
    if (event === 'notification') this.heard = call as Heard
    else this.gone.push(call as (error?: Error) => void)
  }

  discard(): void {
    this.discarded = true
  }

  receive(payload: string, channel = 'here'): void {
    if (this.delivers) setImmediate(() => this.heard({ channel, payload }))
  }

  break(): void {
    for (const gone of this.gone) gone(new Error('broken'))
  }
}

/** What is sent goes as it is: how it is sealed is looked at elsewhere. */
const open: NoticeSeal = { seal: (text) => text, open: (text) => text }

function rig(prepare: (client: FakeClient, index: number) => void = () => undefined) {
  const ports = manualPorts()
  const clients: FakeClient[] = []
  const hints: Hint[] = []
  let refused = 0
  let sending: () => Promise<void> = async () => undefined
  const listener = new Listener({
    async connect() {
      if (refused > 0) {
        refused -= 1
        throw new Error('nobody there')
      }
      const client = new FakeClient()
      prepare(client, clients.length)
      clients.push(client)
      return client
    },
    async send(notice) {
      await sending()
      clients.at(-1)?.receive(notice)
    },
    channel: 'here',
    seal: open,
    self: 'me',
    ports,
    onHints: (some) => hints.push(...some),
  })
  return {
    ports,
    clients,
    hints,
    listener,
    refuse: (times: number) => (refused = times),
    sendWith: (next: typeof sending) => (sending = next),
  }
}

async function turns(count = 10): Promise<void> {
  for (let done = 0; done < count; done += 1) await turn()
}

const anything: Hint = { kind: 'ready', type: '' }
const [notice = ''] = noticesOf([{ kind: 'ready', type: 'a' }], 'other')

describe('the listener', () => {
  it('hears what others send on its channel, and nothing of its own', async () => {
    const { clients, hints, listener } = rig()
    await listener.start()
    expect(listener.hears).toBe(true)
    expect(clients[0]?.asked).toEqual(['listen "here"'])
    clients[0]?.receive(notice)
    clients[0]?.receive(notice, 'elsewhere')
    clients[0]?.receive(noticesOf([{ kind: 'ready', type: 'b' }], 'me')[0] ?? '')
    clients[0]?.receive('null')
    await turns()
    expect(hints).toEqual([anything, { kind: 'ready', type: 'a' }])
    listener.close()
    expect(listener.hears).toBe(false)
    expect(clients[0]?.discarded).toBe(true)
  })

  it('tries a way that does not deliver again, but seldom, and says so once', async () => {
    const { ports, clients, listener } = rig((client, index) => (client.delivers = index >= 3))
    const started = listener.start()
    await turns()
    ports.clock.advance(3_000)
    await started
    await listener.start()
    expect(listener.hears).toBe(false)
    ports.clock.advance(14_000)
    await turns()
    expect(clients.map(({ discarded }) => discarded)).toEqual([true])
    for (const seconds of [45, 3, 90, 3, 180]) {
      ports.clock.advance(seconds * 1_000)
      await turns()
    }
    expect(clients).toHaveLength(4)
    expect(listener.hears).toBe(true)
    expect(ports.warnings).toEqual([expect.stringContaining('Give a direct address as `listen`')])
    listener.close()
    await turns()
    expect(ports.clock.pending).toBe(0)
  })

  it('does not take a database that is slow to send for one that never delivers', async () => {
    const { ports, clients, listener, sendWith } = rig()
    sendWith(() => new Promise(() => undefined))
    const started = listener.start()
    await turns()
    ports.clock.advance(3_000)
    await started
    sendWith(async () => undefined)
    ports.clock.advance(1_000)
    await turns()
    expect([listener.hears, clients.length]).toEqual([true, 2])
    listener.close()
  })

  it('does not take a database that failed just then for one that never delivers', async () => {
    const { ports, clients, listener, sendWith } = rig()
    sendWith(() => Promise.reject(new Error('restarting')))
    await listener.start()
    expect(listener.hears).toBe(false)
    expect(clients[0]?.discarded).toBe(true)
    sendWith(async () => undefined)
    ports.clock.advance(1_000)
    await turns()
    expect(listener.hears).toBe(true)
    expect(clients).toHaveLength(2)
    listener.close()
  })

  it('tries again with growing pauses until there is a connection, and says so once', async () => {
    const { ports, listener, refuse } = rig()
    refuse(4)
    await listener.start()
    for (let tries = 0; tries < 4; tries += 1) {
      expect(listener.hears).toBe(false)
      ports.clock.advance(1_500)
      await turns()
    }
    expect(listener.hears).toBe(true)
    expect(ports.warnings).toEqual([expect.stringContaining('do not arrive for now')])
    const pauses = ports.clock.asked.slice(0, 4)
    expect(pauses).toEqual(pauses.toSorted((a, b) => a - b))
    listener.close()
  })

  it('replaces a connection that breaks, and then lets all listeners look', async () => {
    const { ports, clients, hints, listener } = rig()
    await listener.start()
    clients[0]?.break()
    await turns()
    expect(listener.hears).toBe(false)
    expect(clients[0]?.discarded).toBe(true)
    ports.clock.advance(1_000)
    await turns()
    expect(listener.hears).toBe(true)
    expect(hints).toEqual([anything, anything])
    listener.close()
  })

  it.each([
    ['falls silent', (client: FakeClient): unknown => (client.delivers = false)],
    ['refuses to be asked', (client: FakeClient): unknown => (client.refuses = true)],
  ])('replaces a connection that %s, though nobody says that it broke', async (_, spoil) => {
    const { ports, clients, listener } = rig()
    await listener.start()
    ports.clock.advance(5_000)
    await turns()
    // It answered, and goes on.
    expect(clients).toHaveLength(1)
    const [first] = clients
    if (first !== undefined) spoil(first)
    ports.clock.advance(5_000)
    await turns()
    ports.clock.advance(3_000)
    await turns()
    ports.clock.advance(1_000)
    await turns()
    expect(clients).toHaveLength(2)
    expect(first?.discarded).toBe(true)
    expect(listener.hears).toBe(true)
    listener.close()
  })

  it('leaves nothing behind when it is closed, whatever it is doing', async () => {
    for (const steps of [0, 1, 2, 3, 5, 10]) {
      const { ports, clients, listener } = rig()
      void listener.start()
      await turns(steps)
      listener.close()
      await turns()
      ports.clock.advance(10_000)
      await turns()
      expect(listener.hears).toBe(false)
      expect(clients.every(({ discarded }) => discarded)).toBe(true)
      expect(ports.clock.pending).toBe(0)
      expect(ports.warnings).toEqual([])
    }
  })
})
