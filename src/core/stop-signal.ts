// An abort signal that is made when somebody looks at it: most functions never do.

export class StopSignal {
  private controller: AbortController | null = null
  private told = false
  private reason: unknown

  get abortSignal(): AbortSignal {
    this.controller ??= new AbortController()
    if (this.told) this.controller.abort(this.reason)
    return this.controller.signal
  }

  /** Whoever looks at the signal was told to stop. */
  get wasTold(): boolean {
    return this.told
  }

  /** Why, once it was told. */
  get toldBecause(): unknown {
    return this.reason
  }

  /** Tells whoever looks at the signal to stop, the first time with this reason. */
  tell(reason: unknown): void {
    if (this.told) return
    this.told = true
    this.reason = reason
    this.controller?.abort(reason)
  }
}
