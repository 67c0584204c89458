// What befalls the server: it ends, is killed while it recovers, is replaced by its standby, throws its clients out, has no
// place for them, or gives up what they asked for.

import type { Client } from 'pg'
import type { Nemesis } from '../testbed.ts'
import type { TestbedServer } from '../testbed-server.ts'

const stores = ['postgres'] as const

/** Also the coordinator of Citus. */
const withCitus = ['postgres', 'citus'] as const

export const backendGone: Nemesis = {
  name: 'backend-gone',
  stores: withCitus,
  strike: ({ server }) =>
    server.connected(async (client) => (await server.strikeBackends('pg_terminate_backend', client, 1)) > 0),
}

export const backendsGone: Nemesis = {
  name: 'backends-gone',
  stores: withCitus,
  strike: ({ server }) =>
    server.connected(async (client) => (await server.strikeBackends('pg_terminate_backend', client)) > 0),
}

export const serverCrash: Nemesis = {
  name: 'server-crash',
  stores: withCitus,
  async strike({ server, report, leaseMs }, draw, last) {
    await server.down(draw.pick(['immediate', 'kill']), async () => {
      report({ kind: 'server', text: 'is down', details: { state: 'down' } })
      await last(draw.between(0, 1) * leaseMs)
    })
    report({ kind: 'server', text: 'is up', details: { state: 'up' } })
    return true
  },
}

/** A machine of Citus goes, with half of the rows, and comes back. */
export const nodeCrash: Nemesis = {
  name: 'node-crash',
  stores: ['citus'],
  async strike({ server, report, leaseMs }, draw, last) {
    await server.nodeDown(draw.int(0, 1), draw.pick(['immediate', 'kill']), async () => {
      report({ kind: 'server', text: 'has a node that is down' })
      await last(draw.between(0, 1) * leaseMs)
    })
    report({ kind: 'server', text: 'has all nodes' })
    return true
  },
}

export const crashInRecovery: Nemesis = {
  name: 'crash-in-recovery',
  stores,
  async strike({ server, report }, draw) {
    let recovering = 0
    await server.down('immediate', async () => {
      report({ kind: 'server', text: 'is down', details: { state: 'down' } })
      for (let left = draw.int(1, 3); left > 0; left -= 1) {
        const found = await server.startAndKill(draw.between(5, 120))
        report({ kind: 'server', text: `is killed while it is ${found}` })
        if (found === 'recovering') recovering += 1
      }
    })
    report({ kind: 'server', text: 'is up', details: { state: 'up' } })
    return recovering > 0
  },
}

/** Its standby takes the place of a server that is killed. */
export const failover: Nemesis = {
  name: 'failover',
  stores,
  async strike({ server, plant, report, leaseMs }, draw, last) {
    const serve = (): Promise<void> => last(draw.between(0.1, 0.6) * leaseMs)
    await server.failOver({ isInTouch: plant !== 'lost-touch', serve }, (state) => {
      const text = state === 'down' ? 'is down' : 'is up: its standby has taken its place'
      report({ kind: 'server', text, details: { state } })
    })
    return true
  },
}

/** Idle connections take every place; half of the time those of the workers, too, who cannot come back until it is over. */
export const connectionsUsedUp: Nemesis = {
  name: 'connections-used-up',
  stores,
  async strike({ server, leaseMs }, draw, last) {
    const idle: Client[] = []
    try {
      let isFull = await fill(server, idle)
      if (draw.chance(0.5) && idle[0] !== undefined) {
        await server.strikeBackends('pg_terminate_backend', idle[0])
        isFull = await fill(server, idle)
      }
      await last(draw.between(0.3, 1.5) * leaseMs)
      return isFull
    } finally {
      await Promise.allSettled(idle.map((client) => client.end()))
    }
  },
}

/** Opens connections until there is no place for another. False if the server has gone instead. */
async function fill(server: TestbedServer, idle: Client[]): Promise<boolean> {
  for (;;) {
    try {
      idle.push(await server.open())
    } catch (error) {
      return (error as { readonly code?: unknown }).code === '53300'
    }
  }
}

/** Whatever workers ask for is cancelled as soon as it is seen. */
export const statementsCancelled: Nemesis = {
  name: 'statements-cancelled',
  stores,
  strike: ({ server, leaseMs }, draw, last) =>
    server.connected(async (client) => {
      let isOver = false
      let struck = 0
      const over = last(draw.between(0.2, 1) * leaseMs).then(() => (isOver = true))
      while (!isOver) {
        struck += await server.strikeBackends('pg_cancel_backend', client)
        // Something must get through now and then, or this is only another way to be down.
        await new Promise((resolve) => void setTimeout(resolve, draw.between(1, 20)))
      }
      await over
      return struck > 0
    }),
}

/** Workers have to connect anew, and then nothing may take longer than a millisecond. */
export const statementTimeout: Nemesis = {
  name: 'statement-timeout',
  stores,
  async strike({ server, leaseMs }, draw, last) {
    const reconnect = (): Promise<number> =>
      server.connected((client) => server.strikeBackends('pg_terminate_backend', client))
    server.proxy.hurry(1)
    try {
      const struck = await reconnect()
      await last(draw.between(0.3, 1.5) * leaseMs)
      return struck > 0
    } finally {
      server.proxy.hurry(null)
      await reconnect()
    }
  },
}
