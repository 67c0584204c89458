// A start in a chain of words: `submit('mail.send', payload).withPriority(5).runIn('10 min').execute()`. It says
// nothing that the options of `start` do not: the checklist asks for the chain itself (SW-A3 in docs/coverage.md).

import type { Duration } from '../../core/definition/duration.ts'
import type { StartOptions } from './start-options.ts'

/** A start that is being put together. Nothing happens before `execute`; every word gives a new submission. */
export class StartBuilder {
  private readonly options: StartOptions
  private readonly start: (options: StartOptions) => Promise<{ readonly id: string }>

  constructor(start: (options: StartOptions) => Promise<{ readonly id: string }>, options: StartOptions = {}) {
    this.start = start
    this.options = options
  }

  /** One run of this workflow has this key: submitting again gives the same run. */
  withIdempotency(idempotencyKey: string): StartBuilder {
    return this.with({ idempotencyKey })
  }

  /** The business key of the run. */
  withKey(key: string): StartBuilder {
    return this.with({ key })
  }

  /** Higher goes first. */
  withPriority(priority: number): StartBuilder {
    return this.with({ priority })
  }

  /** How often the body is tried. */
  withMaxAttempts(maxAttempts: number): StartBuilder {
    return this.with({ maxAttempts })
  }

  withTags(...tags: string[]): StartBuilder {
    return this.with({ tags })
  }

  /** Not before this point in time. */
  runAfter(time: Date): StartBuilder {
    return this.with({ runAt: time })
  }

  /** Not before this much time has passed. */
  runIn(delay: Duration): StartBuilder {
    return this.with({ delay })
  }

  /** Starts the run and gives back its id; that of the run that exists, if it was submitted before. */
  async execute(): Promise<string> {
    return (await this.start(this.options)).id
  }

  private with(more: StartOptions): StartBuilder {
    return new StartBuilder(this.start, { ...this.options, ...more })
  }
}
