// A shop for tests: it does nothing in the world, and remembers what was asked of it. Like a good service it heeds the keys
// that come with its calls; a careless one does not.

import type { Shop } from './checkout.ts'

export class FakeShop implements Shop {
  /** What was done, in order: `charge 99`. */
  readonly deeds: string[] = []
  private readonly answers = new Map<string, string>()
  private readonly heedsKeys: boolean

  constructor({ heedsKeys = true }: { readonly heedsKeys?: boolean } = {}) {
    this.heedsKeys = heedsKeys
  }

  charge = (total: number, key: string): Promise<string> => this.do(`charge ${total}`, key)
  reserve = (item: string, key: string): Promise<string> => this.do(`reserve ${item}`, key)
  ship = (shelves: readonly string[], key: string): Promise<string> => this.do(`ship ${shelves.length}`, key)
  refund = async (receipt: string, key: string): Promise<void> => void (await this.do(`refund ${receipt}`, key))

  private async do(deed: string, key: string): Promise<string> {
    const answer = this.answers.get(key)
    if (answer !== undefined && this.heedsKeys) return answer
    this.deeds.push(deed)
    this.answers.set(key, `done: ${deed}`)
    return `done: ${deed}`
  }
}
