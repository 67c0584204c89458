// Claims of this session that were given back without having begun, and whose runs may still be on their way here: they must not
// begin. A late answer may also never come, so their number is bounded. One that is forgotten costs little: its run begins under
// a token that is void, and its first commit is refused.

/** Far more than the claims whose answers can be on their way. */
const mostDisowned = 1_000

export class DisownedClaims {
  private readonly claims = new Set<string>()
  private session = ''

  get size(): number {
    return this.claims.size
  }

  /** Those of an earlier session are void with it. */
  add(session: string, runId: string, token: number): void {
    if (session !== this.session) this.claims.clear()
    this.session = session
    this.claims.add(`${runId} ${token}`)
    const [oldest] = this.claims
    if (this.claims.size > mostDisowned && oldest !== undefined) this.claims.delete(oldest)
  }

  /** Whether that claim was given back. It is asked for once. */
  take(runId: string, token: number): boolean {
    // Nearly always there is none, and no text need be made.
    return this.claims.size > 0 && this.claims.delete(`${runId} ${token}`)
  }
}
