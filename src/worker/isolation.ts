// Runs that may have ended the process that held them are performed alone, so that poison harms only itself.
//
//   open     → draining  a suspect was claimed while others move: it is given back, and nothing new is taken
//   open     → alone     a suspect was claimed and nothing else moves: it begins, and all that came with it is given back
//   draining → open      everything has left: whoever claims the suspect next, here or elsewhere, may begin it
//   alone    → open      the suspect has left
//
// No suspect waits here. One that waits is held, and would be counted as dead with its holder without having had its turn.

import type { Run } from '../core/run.ts'

/**
 * A run that was claimed so many times without a commit may be what ended its processes. The claim in hand counts, so that
 * two holders died: after the first death, everything that a process held would have to go on one by one.
 */
const suspectAfter = 3

export interface IsolationOwner {
  /** How many runs are moving. */
  readonly moving: number
  /** Nothing new may be taken; or it may again. */
  pause(): void
  resume(): void
}

export class Isolation {
  private readonly owner: IsolationOwner
  private state: 'open' | 'draining' | 'alone' = 'open'

  constructor(owner: IsolationOwner) {
    this.owner = owner
  }

  /** A suspect moves, and nothing may begin beside it. */
  get isAlone(): boolean {
    return this.state === 'alone'
  }

  /** Says which of the claimed runs may begin. The others must be given back before these begin: they may end the process. */
  choose(claimed: readonly Run[]): readonly Run[] {
    if (this.state === 'alone') return []
    const suspect = claimed.find(isSuspect)
    if (suspect === undefined) return claimed
    if (this.state === 'open') this.owner.pause()
    this.state = this.owner.moving === 0 ? 'alone' : 'draining'
    return this.state === 'alone' ? [suspect] : claimed.filter((run) => !isSuspect(run))
  }

  /** A run has left. */
  left(): void {
    if (this.state === 'open' || this.owner.moving > 0) return
    this.state = 'open'
    this.owner.resume()
  }
}

function isSuspect({ crashes }: Run): boolean {
  return crashes >= suspectAfter
}
