// `holdfast.projections`: what an operator does with projections. Each call ends its waiting when its caller says so.

import { reading, type AbortOption } from './client/abort-option.ts'
import type { Projection, WorkedProjection } from './projections/definition.ts'
import type { Projections, ProjectionView } from './projections/projections.ts'

/** What an operator does with projections, whichever process projects them. */
export interface ProjectionControl {
  /** All that were ever projected with a position in the store. */
  list(options?: AbortOption): Promise<readonly ProjectionView[]>
  pause(projection: string | Projection, options?: AbortOption): Promise<void>
  /** Lets a paused or parked one go on; a parked one tries its event again. */
  resume(projection: string | Projection, options?: AbortOption): Promise<void>
  /** Leaves out the event at which it is parked. `position` is that of the event, so that no other one is skipped. */
  skip(projection: string | Projection, position: number, options?: AbortOption): Promise<void>
  /**
   * Builds the read model anew, in a place of its own, and puts that in the place of the live one. A process that projects it does
   * the work; one that was asked for before goes on. By the name alone, with the definition of the live one.
   */
  rebuild(projection: string | WorkedProjection, options?: AbortOption): Promise<void>
  /** Gives a rebuild up. What it has written stays until the next one begins. */
  abandonRebuild(projection: string | Projection, options?: AbortOption): Promise<void>
  /** Forgets a projection that no process projects any more. Its read model stays. */
  remove(projection: string | Projection, options?: AbortOption): Promise<void>
}

export function projectionControl(all: Projections): ProjectionControl {
  return {
    list: (options) => reading('projections.list()', options, () => all.list()),
    pause: (projection, options) => reading('projections.pause()', options, () => all.pause(projection)),
    resume: (projection, options) => reading('projections.resume()', options, () => all.resume(projection)),
    skip: (projection, position, options) =>
      reading('projections.skip()', options, () => all.skip(projection, position)),
    rebuild: (projection, options) => reading('projections.rebuild()', options, () => all.rebuild(projection)),
    abandonRebuild: (projection, options) =>
      reading('projections.abandonRebuild()', options, () => all.abandonRebuild(projection)),
    remove: (projection, options) => reading('projections.remove()', options, () => all.remove(projection)),
  }
}
