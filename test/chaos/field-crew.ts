// The crew of a field: so many places, and in each a worker process. A worker that ends, by a blow or by itself, is replaced, as
// a supervisor would; also again and again, while there is no store to work on.

import { setTimeout } from 'node:timers/promises'
import type { Draw } from '../simulation/draw.ts'
import { until } from './crew.ts'
import type { FieldEvent, Version } from './field.ts'
import { FieldHand, type HandTask } from './field-hand.ts'

export interface FieldCrewOptions {
  readonly places: number
  /** What they are to run. */
  readonly program: string
  /** Where they log. */
  readonly folder: string
  readonly task: Omit<HandTask, 'id' | 'name' | 'version' | 'calls' | 'concurrency' | 'pool'>
  readonly report: (event: Omit<FieldEvent, 'at'>) => void
}

/** Where one worker works: the name stays the same, whichever process it is. */
export interface Post {
  readonly name: string
  /** Of the next one. */
  version: Version
  hand: FieldHand
}

const pauseMs = 100

/** Not all are alike: the second has a single slot, and the third a pool that its operator has opened. */
function variantOf(name: string): Pick<HandTask, 'concurrency' | 'pool'> {
  return { concurrency: name === 'w2' ? 1 : 20, pool: name === 'w3' ? 'lent' : 'own' }
}

export class FieldCrew {
  /** Everyone who ever belonged to it. */
  readonly hands: FieldHand[] = []
  readonly posts: readonly Post[]
  private readonly options: FieldCrewOptions
  private isClosed = false

  constructor(options: FieldCrewOptions) {
    this.options = options
    // Who stands still does not notice that his parent is gone.
    process.once('exit', this.kill)
    this.posts = Array.from({ length: options.places }, (_, index) => {
      const name = `w${index + 1}`
      const post: Post = { name, version: 1, hand: this.hire(name, 1) }
      void this.keepFilled(post)
      return post
    })
  }

  /** Starts a process that belongs to the crew and to no post. */
  hire(name: string, version: Version): FieldHand {
    const { task, report } = this.options
    const id = `${name}.${this.hands.filter((hand) => hand.name === name).length + 1}`
    const hand = new FieldHand({ ...task, ...variantOf(name), id, name, version }, this.options)
    this.hands.push(hand)
    const details = { hand: id, pid: hand.pid, version }
    report({ kind: 'worker', text: `${id} starts`, details: { ...details, state: 'starts' } })
    void hand.began.then(
      (began) => began && report({ kind: 'worker', text: `${id} works`, details: { ...details, state: 'works' } }),
    )
    void this.ended(hand)
    return hand
  }

  /** Takes a worker that is at work, and keeps others from striking it until that is over. False if there is nobody. */
  async withSomebody(draw: Draw, strike: (hand: FieldHand, post: Post) => Promise<void>): Promise<boolean> {
    const free = this.posts.filter(({ hand }) => hand.isFree)
    if (free.length === 0) return false
    await this.taken(draw.pick(free), strike)
    return true
  }

  /** Takes the worker that has this post. */
  async taken(post: Post, strike: (hand: FieldHand, post: Post) => Promise<void>): Promise<void> {
    const { hand } = post
    hand.isTaken = true
    try {
      await strike(hand, post)
    } finally {
      hand.isTaken = false
    }
  }

  /** Settles when every post has a worker that works. */
  async complete(ms = 60_000): Promise<void> {
    for (const { hand } of this.posts) if (hand.exit === null) hand.signal('SIGCONT')
    await until('every worker works', () => this.posts.every(({ hand }) => hand.isWorking), ms).catch((error) => {
      const idle = this.posts.filter(({ hand }) => !hand.isWorking)
      const said = idle.map(({ hand }) => `${hand.id}: ${hand.tail.slice(-5).join('\n')}`)
      throw new Error(`A worker does not come to work:\n${said.join('\n')}`, { cause: error })
    })
  }

  async dismiss(): Promise<void> {
    this.isClosed = true
    this.kill()
    await Promise.all(this.hands.map(({ exited }) => exited))
    process.off('exit', this.kill)
  }

  private readonly kill = (): void => {
    for (const hand of this.hands) if (hand.exit === null) hand.signal('SIGKILL')
  }

  private async ended(hand: FieldHand): Promise<void> {
    const { report } = this.options
    const { code, signal } = await hand.exited
    const details = { hand: hand.id, pid: hand.pid, version: hand.version, code, signal, state: 'ends' }
    report({ kind: 'worker', text: `${hand.id} ends with ${signal ?? code}`, details })
    // Who never came to work had no store to work on. Who did must bear everything.
    if (hand.isDismissed || !(await hand.began)) return
    const said = hand.tail.slice(-20)
    report({
      kind: 'violation',
      text: `${hand.id} ended by itself with ${signal ?? code}`,
      details: { ...details, said },
    })
  }

  private async keepFilled(post: Post): Promise<void> {
    for (;;) {
      await post.hand.exited
      // Who ends again and again without having worked must not take the machine for himself.
      await setTimeout(pauseMs)
      if (this.isClosed) return
      post.hand = this.hire(post.name, post.version)
    }
  }
}
