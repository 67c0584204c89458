// An abort signal that is made when a function reads it: most functions never do.

export class LazyAbortSignal {
  private controller: AbortController | null = null
  private hasAborted = false
  private reason: unknown

  get abortSignal(): AbortSignal {
    this.controller ??= new AbortController()
    if (this.hasAborted) this.controller.abort(this.reason)
    return this.controller.signal
  }

  /** The signal is aborted. */
  get isAborted(): boolean {
    return this.hasAborted
  }

  /** The reason, once it was aborted. */
  get abortReason(): unknown {
    return this.reason
  }

  /** Aborts the signal; the first reason counts. */
  signalAbort(reason: unknown): void {
    if (this.hasAborted) return
    this.hasAborted = true
    this.reason = reason
    this.controller?.abort(reason)
  }
}
