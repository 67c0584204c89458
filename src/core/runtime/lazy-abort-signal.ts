// An abort signal that is made when somebody looks at it: most functions never do.

export class LazyAbortSignal {
  private controller: AbortController | null = null
  private hasAborted = false
  private reason: unknown

  get abortSignal(): AbortSignal {
    this.controller ??= new AbortController()
    if (this.hasAborted) this.controller.abort(this.reason)
    return this.controller.signal
  }

  /** Whoever looks at the signal was told to stop. */
  get isAborted(): boolean {
    return this.hasAborted
  }

  /** Why, once it was told. */
  get abortReason(): unknown {
    return this.reason
  }

  /** Tells whoever looks at the signal to stop, the first time with this reason. */
  signalAbort(reason: unknown): void {
    if (this.hasAborted) return
    this.hasAborted = true
    this.reason = reason
    this.controller?.abort(reason)
  }
}
