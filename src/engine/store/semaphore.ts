// Lets so many in at once. The others wait outside, in the order in which they came, and hold nothing meanwhile.

/** Makes room for the next one. Calling it again does nothing. */
export type Leave = () => void

export class Semaphore {
  private free: number
  private readonly waiting: (() => void)[] = []

  constructor(limit: number) {
    this.free = limit
  }

  /** Settles when there is room; rejects with the signal's reason if that aborts before. */
  enter(signal: AbortSignal): Promise<Leave> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason as Error)
      const admit = (): void => {
        signal.removeEventListener('abort', abandon)
        this.free -= 1
        resolve(this.leaver())
      }
      const abandon = (): void => {
        this.waiting.splice(this.waiting.indexOf(admit), 1)
        reject(signal.reason as Error)
      }
      if (this.free > 0) return admit()
      signal.addEventListener('abort', abandon, { once: true })
      this.waiting.push(admit)
    })
  }

  private leaver(): Leave {
    let isInside = true
    return () => {
      if (!isInside) return
      isInside = false
      this.free += 1
      this.waiting.shift()?.()
    }
  }
}
