import { describe, expect, it } from 'vitest'
import type { Host } from '../../../../src/core/definition/definition.ts'
import { HoldfastError } from '../../../../src/core/errors/error.ts'
import { messagesAtOnce, type Message } from '../../../../src/core/model/message.ts'
import type { JournalWriter } from '../../../../src/core/runtime/journal-writer.ts'
import { Mailbox } from '../../../../src/functions/waits/mailbox.ts'

const came = (name: string, position: number): Message => {
  const id = `m${position}`
  return { id, runId: 'run', kind: 'signal', name, data: '', policy: null, position, at: position }
}

/** A mailbox whose readings end when the test says so. */
function setUp(inbox: number, messages: readonly Message[] | null) {
  const asked: { names: readonly string[] | null; answer: (messages: readonly Message[]) => void; fail: () => void }[] =
    []
  const owner = {
    host: {
      ports: { clock: { after: (_: number, wake: () => void) => wake() }, random: { uint32: () => 0 } },
      mailbox: (_: string, names: readonly string[] | null) =>
        new Promise((resolve, reject) => {
          const answer = (found: readonly Message[]): void => resolve({ messages: found, isCut: false })
          asked.push({ names, answer, fail: () => reject(new HoldfastError('STORE_UNAVAILABLE', 'Not now')) })
        }),
    } as unknown as Host,
    runId: 'run',
    phase: 'live' as const,
    wakes: 0,
    writer: {
      arrived: inbox,
      taken: [] as string[],
      lost: null as unknown,
      heard(count: number) {
        this.arrived = Math.max(this.arrived, count)
      },
      lose(reason: unknown) {
        this.lost = reason
      },
    },
    scheduleTurn(): void {
      this.wakes += 1
    },
  }
  const mailbox = new Mailbox({ ...owner, writer: owner.writer as unknown as JournalWriter }, inbox, messages)
  const answer = async (found: readonly Message[]): Promise<void> => {
    asked.shift()?.answer(found)
    await Promise.resolve().then(() => undefined)
    await new Promise((resolve) => setImmediate(resolve))
  }
  return { mailbox, writer: owner.writer, asked, answer }
}

describe('the mailbox of a run', () => {
  it('to which nobody ever wrote is known without reading', () => {
    for (const messages of [[], null]) {
      const { mailbox } = setUp(0, messages)
      expect(mailbox.isCurrent(['a'])).toBe(true)
      expect(mailbox.emptyAt).toBe(0)
    }
  })

  it('is not known if nobody has looked, and then what is wanted is read, once', async () => {
    const { mailbox, asked, answer } = setUp(2, null)
    expect(mailbox.isCurrent([])).toBe(true)
    expect(mailbox.isCurrent(['a'])).toBe(false)
    expect(mailbox.emptyAt).toBeUndefined()
    mailbox.read(['a'])
    mailbox.read(['a'])
    expect(asked.map(({ names }) => names)).toEqual([['a']])
    expect(mailbox.isReading).toBe(true)
    await answer([came('a', 2)])
    expect(mailbox.isCurrent(['a'])).toBe(true)
    expect(mailbox.isCurrent(['a', 'b'])).toBe(false)
    expect(mailbox.under(['a'])).toEqual([came('a', 2)])
  })

  it('that came with the claim is known until more arrives, and positions show whether that is known, too', async () => {
    const { mailbox, writer, answer } = setUp(3, [came('a', 2), came('b', 4)])
    expect(writer.arrived).toBe(4)
    expect(mailbox.isAllKnown).toBe(true)
    expect(mailbox.emptyAt).toBeUndefined()
    writer.heard(6)
    expect(mailbox.isCurrent(['a'])).toBe(false)
    mailbox.read(['a'])
    await answer([came('a', 2), came('a', 6)])
    expect(mailbox.isCurrent(['a'])).toBe(true)
    expect(mailbox.isAllKnown).toBe(false)
    mailbox.read(['b'])
    await answer([came('b', 4), came('b', 5)])
    expect(mailbox.isAllKnown).toBe(true)
    for (const message of [came('a', 2), came('b', 4), came('a', 6), came('b', 5)]) mailbox.take(message)
    expect(mailbox.emptyAt).toBe(6)
  })

  it('does not give again what is taken, though it lies there until that is durable', async () => {
    const { mailbox, writer, answer } = setUp(1, [came('a', 1)])
    mailbox.take(came('a', 1))
    writer.taken.push('m1')
    writer.heard(2)
    mailbox.read(['a'])
    await answer([came('a', 1), came('a', 2)])
    expect(mailbox.under(['a'])).toEqual([came('a', 2)])
    expect(mailbox.isAllKnown).toBe(true)
  })

  it('of which more of a name may lie there than was read is read again when that is taken', async () => {
    const full = Array.from({ length: messagesAtOnce }, (_, at) => came('a', at + 1))
    const { mailbox, answer } = setUp(2_000, full)
    expect(mailbox.isCurrent(['a'])).toBe(true)
    expect(mailbox.isCurrent(['b'])).toBe(false)
    for (const message of full) mailbox.take(message)
    expect(mailbox.isCurrent(['a'])).toBe(false)
    mailbox.read(['a'])
    await answer([came('a', 1_500)])
    expect(mailbox.isCurrent(['a'])).toBe(true)
    expect(mailbox.emptyAt).toBeUndefined()
  })

  it('about which a hint said that more may have come is read, and again if that is said meanwhile', async () => {
    const { mailbox, asked, answer } = setUp(0, [])
    mailbox.markStale()
    expect(mailbox.isCurrent(['a'])).toBe(false)
    mailbox.read(['a'])
    mailbox.markStale()
    await answer([])
    expect(mailbox.isCurrent(['a'])).toBe(false)
    mailbox.read(['a'])
    expect(asked).toHaveLength(1)
    await answer([came('a', 1)])
    expect(mailbox.isCurrent(['a'])).toBe(true)
  })

  it('is asked for by names as long as they are few, and as a whole otherwise', () => {
    const { mailbox } = setUp(1, null)
    const names = Array.from({ length: 101 }, (_, at) => String(at))
    expect(mailbox.namesToRead(names.slice(1))).toHaveLength(100)
    expect(mailbox.namesToRead(names)).toBeNull()
  })

  it('is asked for again while the store cannot be reached', async () => {
    const { mailbox, asked, answer, writer } = setUp(1, null)
    mailbox.read(['a'])
    asked.shift()?.fail()
    await new Promise((resolve) => setImmediate(resolve))
    expect(mailbox.isReading).toBe(true)
    await answer([came('a', 1)])
    expect(mailbox.under(['a', 'b'])).toEqual([came('a', 1)])
    expect(writer.lost).toBeNull()
  })
})
