// When the subscribers of a topic are counted. A count walks all of them, up to the bound, and each of a hundred thousand
// that subscribe one after the other would walk those before it: 100,000 of them cost minutes. So a process counts, lets an
// eighth of the remaining places be taken uncounted, and counts again: 76 times on the way to a full topic, and each time
// when it is about to be full. One process never goes past the bound; of several, each may by an eighth of the places that
// remained at its last count.

/** How many topics are remembered. One that is forgotten is counted anew. */
const mostTopics = 1_000

export class SubscriberCounts {
  /** By topic and bound: how many may subscribe before they are counted. */
  private readonly left = new Map<string, number>()

  /** Whether so many may subscribe without a count. */
  hasRoomFor(subscribers: number, topic: string, most: number): boolean {
    return (this.left.get(keyOf(topic, most)) ?? 0) >= subscribers
  }

  /** Lets one more subscribe without a count, if it may. */
  admits(topic: string, most: number): boolean {
    const key = keyOf(topic, most)
    const left = this.left.get(key) ?? 0
    if (left > 0) this.left.set(key, left - 1)
    return left > 0
  }

  /** This many were counted; returns whether there is no place for another. */
  isFull(topic: string, most: number, counted: number): boolean {
    if (counted >= most) return true
    if (this.left.size >= mostTopics) this.left.clear()
    this.left.set(keyOf(topic, most), Math.floor((most - counted - 1) / 8))
    return false
  }
}

function keyOf(topic: string, most: number): string {
  return `${most} ${topic}`
}
