// What befalls worker processes.

import type { Nemesis, StrikeField } from '../field.ts'
import type { FieldHand } from '../field-hand.ts'

const everywhere = ['sqlite', 'postgres'] as const

/**
 * How long a worker may take to leave in good order: it waits for its runs, then for what it has to write, twice as long as
 * a lease each; and no store that is away in that very moment keeps it for longer than Holdfast allows.
 */
const leavingMs = 45_000

export const kill: Nemesis = {
  name: 'kill',
  stores: everywhere,
  strike: ({ crew }, draw) => {
    if (!draw.chance(0.15)) return crew.withSomebody(draw, (hand) => killed(hand))
    const free = crew.posts.filter(({ hand }) => hand.isFree)
    return Promise.all(free.map((post) => crew.taken(post, killed))).then(() => free.length > 0)
  },
}

async function killed(hand: FieldHand): Promise<void> {
  hand.signal('SIGKILL')
  await hand.exited
}

export const terminate: Nemesis = {
  name: 'terminate',
  stores: everywhere,
  strike: (field, draw) => field.crew.withSomebody(draw, (hand) => terminated(field, hand)),
}

/** Asks it to leave. To do so in another way than asked, or not at all, is a violation. */
async function terminated({ tell }: StrikeField, hand: FieldHand): Promise<void> {
  hand.signal('SIGTERM')
  const timer = setTimeout(() => {
    tell({ kind: 'violation', text: `${hand.id} was asked to leave ${leavingMs} ms ago, and is still here` })
    hand.signal('SIGKILL')
  }, leavingMs)
  const { code, signal } = await hand.exited
  clearTimeout(timer)
  if (code !== 0 && signal !== 'SIGKILL') {
    tell({ kind: 'violation', text: `${hand.id} was asked to leave, and ended with ${signal ?? code}` })
  }
}

export const standStill: Nemesis = {
  name: 'stand-still',
  stores: everywhere,
  strike: ({ crew, leaseMs }, draw, last) =>
    crew.withSomebody(draw, async (hand) => {
      hand.signal('SIGSTOP')
      await last(draw.between(0.5, 5) * leaseMs)
      hand.signal('SIGCONT')
    }),
}

/** A second process under the name of one that works, as two deployments of one thing. Nothing may depend on names. */
export const twins: Nemesis = {
  name: 'twins',
  stores: everywhere,
  async strike(field, draw, last) {
    const { name, version } = draw.pick(field.crew.posts)
    const twin = field.crew.hire(name, version)
    twin.isTaken = true
    const began = await twin.began
    if (began) await last(draw.between(0.5, 2) * field.leaseMs)
    if (began && draw.chance(0.5)) await terminated(field, twin)
    else await killed(twin)
    return began
  },
}

/** One after the other goes, and comes back with the other version of the code. */
export const rollingDeploy: Nemesis = {
  name: 'rolling-deploy',
  stores: everywhere,
  async strike(field, draw, last) {
    const { crew } = field
    let changed = 0
    for (const post of crew.posts) {
      post.version = post.version === 1 ? 2 : 1
      // Somebody else strikes it already, or it is on its way: whoever comes next has the other version.
      if (!post.hand.isFree) continue
      await crew.taken(post, (hand) => terminated(field, hand))
      changed += 1
      await last(draw.between(0.1, 1) * field.leaseMs)
    }
    return changed > 0
  },
}
