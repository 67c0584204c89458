// A process that dies with one of its commits: what it had sent took effect, and nobody hears of it again.

import { HoldfastError, type Store } from 'holdfast'
import { changed } from './virtual-world.ts'

/** The same store as a process sees it that dies as soon as its commit of that number has landed. */
export function dyingStore(store: Store, deadAt: number): { readonly store: Store; readonly isDead: () => boolean } {
  let commits = 0
  let isDead = false
  const unlessDead =
    <Request, Answer>(call: (request: Request) => Promise<Answer>) =>
    async (request: Request): Promise<Answer> => {
      if (isDead) throw new HoldfastError('STORE_UNAVAILABLE', 'This process is dead.')
      return call(request)
    }
  const dying = changed(store, {
    commit: unlessDead(async (transitions) => {
      const answers = await store.commit(transitions)
      commits += 1
      if (commits < deadAt) return answers
      isDead = true
      throw new HoldfastError('STORE_UNAVAILABLE', 'This process is dead.')
    }),
    beat: unlessDead((request) => store.beat(request)),
    claim: unlessDead((request) => store.claim(request)),
    load: unlessDead((requests) => store.load(requests)),
    rescue: unlessDead((request) => store.rescue(request)),
    release: unlessDead((leases) => store.release(leases)),
  })
  return { store: dying, isDead: () => isDead }
}
