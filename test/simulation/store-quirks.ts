// What a store may do and the ones in memory do not: pass over what another transaction has locked, give up a batch because one
// item in it takes too long, or never answer such a batch at all, and hand over with a claim the journal of a run that nobody has begun. The engine must come to
// the same end with a store of such quirks.

import { tooSlow } from '../../src/core/errors/too-slow.ts'
import type { Busy, Committed, Fresh, StartBusy, Store } from '../../src/store.ts'
import { Draw } from './draw.ts'

/** How often a stranger has locked what one of a batch concerns. */
const busy = 0.1

/** How often one of a batch turns out to be poisonous: nothing that is sent with it ends in time. Batches of several are rare here. */
const poisonous = 0.25

/** So often it takes too long, also when it is alone. */
const slowAlone = 2

/** How often nobody says so: then it is the caller who must give up. */
const silent = 0.3

/** One that nothing ends in time with. */
interface Poisonous {
  readonly isSilent: boolean
  /** So often it is so also when it is alone. */
  left: number
}

const isBusy: Busy = { outcome: 'busy' }
const isStartBusy: StartBusy = { created: false, taken: 'busy', run: null }
const isRefused: Committed = { outcome: 'refused', reason: 'busy' }

export function withQuirks<Kind extends Store>(store: Kind, draw: Draw, seed: number): Kind {
  const strangers = Draw.of(seed, 'strangers')
  const slow = new Map<string, Poisonous>()

  /** Answers one address of a batch as locked, and lets the store do the rest. */
  async function passOver<Item, Answer>(
    items: readonly Item[],
    addressOf: (item: Item) => string,
    locked: Answer,
    send: (items: readonly Item[]) => Promise<readonly Answer[]>,
    chance = strangers,
  ): Promise<readonly Answer[]> {
    if (items.length === 0 || !chance.chance(busy)) return send(items)
    const address = addressOf(chance.pick(items))
    const rest = items.filter((one) => addressOf(one) !== address)
    const answers = rest.length === 0 ? [] : await send(rest)
    return items.map((one) => (addressOf(one) === address ? locked : (answers[rest.indexOf(one)] as Answer)))
  }

  /** Gives up whatever holds a poisonous item, until that has been alone often enough. */
  async function giveUp<Item>(items: readonly Item[], nameOf: (item: Item) => string): Promise<void> {
    if (items.length > 1 && strangers.chance(poisonous)) {
      const name = nameOf(strangers.pick(items))
      slow.set(name, { isSilent: strangers.chance(silent), left: slowAlone })
    }
    for (const name of new Set(items.map(nameOf))) {
      const found = slow.get(name)
      if (found === undefined) continue
      const isAlone = items.every((one) => nameOf(one) === name)
      if (isAlone && found.left === 0) slow.delete(name)
      else {
        if (isAlone) found.left -= 1
        if (found.isSilent) await new Promise<never>(() => undefined)
        throw tooSlow('The store took too long: a fault was injected.')
      }
    }
  }

  const quirks: Partial<Store> = {
    async start(runs) {
      await giveUp(runs, ({ id }) => `start ${id}`)
      return passOver(
        runs,
        ({ id }) => id,
        isStartBusy,
        (some) => store.start(some),
      )
    },

    async commit(transitions) {
      await giveUp(transitions, ({ runId }) => `commit ${runId}`)
      return passOver(
        transitions,
        ({ runId }) => runId,
        isRefused,
        (some) => store.commit(some),
        draw,
      )
    },

    async deliver(messages) {
      const addressOf = (one: (typeof messages)[number]): string =>
        'topic' in one ? `topic ${one.topic.name}` : one.runId
      await giveUp(messages, (one) => `deliver ${addressOf(one)}`)
      return passOver(messages, addressOf, isBusy, (some) => store.deliver(some))
    },

    control: (requests) =>
      passOver(
        requests,
        ({ runId }) => runId,
        isBusy,
        (some) => store.control(some),
      ),

    async release(leases) {
      if (leases.length === 0 || !strangers.chance(busy)) return store.release(leases)
      const locked = strangers.pick(leases)
      return [locked, ...(await store.release(leases.filter((one) => one !== locked)))]
    },

    async claim(request) {
      const claimed = await store.claim(request)
      const untouched = claimed.runs.filter(({ seq, inbox }) => seq === 1 && inbox === 0)
      if (untouched.length === 0 || draw.chance(0.5)) return claimed
      const loaded = await store.load(untouched.map(({ id }) => ({ runId: id, after: 0, limit: 2 })))
      const fresh: Fresh[] = []
      for (const [index, { id }] of untouched.entries()) {
        const { entries: [first, ...more] = [], messages = [] } = loaded[index] ?? {}
        // The session that took it over meanwhile has written to it.
        if (first !== undefined && more.length === 0 && messages.length === 0) fresh.push({ runId: id, entry: first })
      }
      return { ...claimed, fresh }
    },
  }
  return new Proxy(store, {
    get(target, key) {
      const value: unknown = Reflect.get(key in quirks ? quirks : target, key)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
}
