// Tests that run beside one another share a database, and with it the rights on it.

/** Tries again what failed because another process changed the same row of the catalog just then. */
export async function patiently<Answer>(work: () => Promise<Answer>): Promise<Answer> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await work()
    } catch (error) {
      if (tries === 50 || !/concurrently/.test(String(error))) throw error
      await new Promise((resolve) => setTimeout(resolve, 5 * tries))
    }
  }
}
