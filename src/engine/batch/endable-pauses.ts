// Pauses between two tries that end at once when there is a reason not to wait any longer, such as `close()`.

export class EndablePauses {
  private readonly ends = new Set<() => void>()

  /** Waits for a pause, or until `end()` is called. */
  wait(pause: Promise<void>): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        this.ends.delete(end)
        resolve()
      }
      this.ends.add(end)
      void pause.then(end)
    })
  }

  /** Ends the pauses that are being waited for. */
  end(): void {
    for (const end of this.ends) end()
  }
}
