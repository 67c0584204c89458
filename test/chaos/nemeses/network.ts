// What befalls the way between workers and server.

import type { Draw } from '../../simulation/draw.ts'
import type { Strike } from '../../support/wire-proxy.ts'
import type { Last, Nemesis, OpenTestbed } from '../testbed.ts'

const stores = ['postgres'] as const

/** The server never hears of it. */
export const commitDropped: Nemesis = {
  name: 'commit-dropped',
  stores,
  strike: (testbed, draw, last) => dropped('drop-request', testbed, draw, last),
}

/** The server has done it, and nobody hears of that. */
export const commitReplyDropped: Nemesis = {
  name: 'commit-reply-dropped',
  stores,
  strike: (testbed, draw, last) => dropped('drop-reply', testbed, draw, last),
}

/** A few in a row, each after so many that get through. */
async function dropped(how: Strike['how'], { server, leaseMs }: OpenTestbed, draw: Draw, last: Last): Promise<boolean> {
  const withdrawal = new AbortController()
  const strikes = Array.from({ length: draw.int(1, 5) }, () =>
    server.proxy.strike({ on: 'either', nth: draw.int(1, 30), how, until: withdrawal.signal }),
  )
  await Promise.race([last(2 * leaseMs), Promise.all(strikes)])
  withdrawal.abort()
  return (await Promise.all(strikes)).includes(true)
}

/** Those who listen hear nothing more, and believe that nothing is said. */
export const listenSilent: Nemesis = {
  name: 'listen-silent',
  stores,
  async strike({ server, leaseMs }, draw, last) {
    const hit = server.proxy.blackhole(/^listen/i)
    await last(draw.between(1, 4) * leaseMs)
    server.proxy.mend()
    return hit > 0
  },
}

/** Some connections or all are half open: each side believes that the other has nothing to say. */
export const silence: Nemesis = {
  name: 'silence',
  stores,
  async strike({ server, leaseMs }, draw, last) {
    const hit = server.proxy.blackhole(undefined, draw.chance(0.3) ? Infinity : draw.int(1, 6))
    await last(draw.between(0.3, 2) * leaseMs)
    server.proxy.mend()
    return hit > 0
  },
}

export const latency: Nemesis = {
  name: 'latency',
  stores,
  async strike({ server, leaseMs }, draw, last) {
    server.proxy.delay(draw.int(5, 150))
    await last(draw.between(0.5, 2) * leaseMs)
    server.proxy.delay(0)
    return true
  },
}

/** No hint of new work arrives: it is found by looking. */
export const notifyLost: Nemesis = {
  name: 'notify-lost',
  stores,
  async strike({ server, leaseMs }, draw, last) {
    server.proxy.muffle(true)
    await last(draw.between(1, 3) * leaseMs)
    server.proxy.muffle(false)
    return true
  },
}
