// How a run begins anew: its schema looks at the new input, what the body has made begins, children that the run must outlast
// end, and then one entry takes the place of all before it.

import type { Definition } from '../core/definition.ts'
import type { Exit } from '../core/exit.ts'
import type { WayOut } from './drain.ts'
import type { RecordedEntry } from './history.ts'
import type { Settler } from './settler.ts'
import type { Stage } from './stage.ts'
import { watchedIn } from './waking.ts'

interface Owner extends Stage {
  readonly settler: Settler
  leaveBy(way: WayOut): void
  bodyEnded(): void
  whenBegun(next: () => void): void
}

interface Conclusion {
  readonly owner: Owner
  readonly definition: Definition
  outlast(next: () => void): void
  drifted(unasked: RecordedEntry): void
  send(exit: Exit): void
}

export class Continuing {
  /** A schema looks at the input: until it has, the run can neither park nor pause. */
  isChecking = false
  private hasBegun = false
  /** What a body came to that returned although its run is to begin anew, should that not be possible. */
  private otherwise: (() => void) | null = null
  private readonly conclusion: Conclusion

  constructor(conclusion: Conclusion) {
    this.conclusion = conclusion
  }

  /** A run that begins anew does so, whether the body awaits that or not. False if it does not: the body has just returned. */
  precedes(returned: () => void): boolean {
    if (this.hasBegun) this.otherwise = returned
    return this.hasBegun
  }

  async begin(target: Definition | null, input: unknown): Promise<never> {
    const { owner, definition } = this.conclusion
    const next = target ?? definition
    this.isChecking = this.hasBegun = true
    try {
      const value = await next.validate(input)
      // What cannot be stored is told to the body, and not found out when it is over.
      if (owner.isWriting) owner.encode(value, 'continued', null)
      this.isChecking = false
      if (owner.isWriting) this.beginAnew(next, value)
    } catch (error) {
      this.isChecking = this.hasBegun = false
      owner.stir()
      if (owner.isWriting) this.otherwise?.()
      throw error
    }
    owner.stir()
    return new Promise(() => undefined)
  }

  private beginAnew({ type, version, feed }: Definition, input: unknown): void {
    const { conclusion } = this
    const { owner } = conclusion
    const leave = (): void => {
      const data = owner.encode(input, 'continued', null)
      const unwatches = [...watchedIn(owner.resting.conditions)]
      const attachment = unwatches.length === 0 ? null : { unwatches }
      owner.writer.append({ kind: 'continued', name: null, meta: { type, version }, data }, attachment)
      conclusion.send({ status: null, due: null, continues: { type, version, feed } })
    }
    owner.bodyEnded()
    owner.whenBegun(() =>
      conclusion.outlast(() => {
        const unasked = owner.settler.leftBehind()
        if (unasked === undefined) owner.leaveBy({ leave, stop: null })
        else conclusion.drifted(unasked)
      }),
    )
  }
}
