// Ends of runs are sent to other processes while one of them may wait for some, and not otherwise.

import { describe, expect, it } from 'vitest'
import { AwaitedEnds } from '../../../../../src/stores/postgres/hints/awaited-ends.ts'
import { manualPorts } from '../../../../support/manual-ports.ts'

function rig() {
  const { clock } = manualPorts()
  const sent: string[] = []
  const state = { isListening: true }
  const send = (notice: string): Promise<void> => {
    sent.push(notice)
    return Promise.reject(new Error('gone'))
  }
  const ends = new AwaitedEnds({ self: 'me', clock, send, isListening: () => state.isListening })
  return { clock, sent, state, ends }
}

describe('a process that ends runs', () => {
  it('sends no ends while no other process waits for some', () => {
    const { ends } = rig()
    expect(ends.shouldSendEnds).toBe(false)
  })

  it('sends them while announcements of another process come, and stops soon after the last', () => {
    const { clock, ends } = rig()
    expect(ends.onNotice('awaits other')).toBe(true)
    for (let times = 0; times < 10; times += 1) {
      clock.advance(10_000)
      expect(ends.shouldSendEnds).toBe(true)
      ends.onNotice('awaits other')
    }
    clock.advance(12_000)
    expect(ends.shouldSendEnds).toBe(false)
  })

  it('asks who waits as soon as it hears others, and sends every end until they can have answered', () => {
    const { clock, sent, ends } = rig()
    ends.onListening()
    expect(sent).toEqual(['asks me'])
    expect(ends.shouldSendEnds).toBe(true)
    clock.advance(1_000)
    expect(ends.shouldSendEnds).toBe(false)
  })

  it('sends every end while it does not hear others', () => {
    const { ends, state } = rig()
    state.isListening = false
    expect(ends.shouldSendEnds).toBe(true)
  })

  it('does not take its own announcement for that of another process', () => {
    const { ends } = rig()
    expect(ends.onNotice('awaits me')).toBe(true)
    expect(ends.shouldSendEnds).toBe(false)
  })

  it('leaves other notices to others', () => {
    const { ends } = rig()
    expect(ends.onNotice('{"from":"other","ready":[]}')).toBe(false)
    expect(ends.onNotice('echo other')).toBe(false)
  })
})

describe('a process that waits', () => {
  it('announces it at once, and again as long as it waits', () => {
    const { clock, sent, ends } = rig()
    expect(ends.setWaiting(true)).toBe(true)
    expect(sent).toEqual(['awaits me'])
    for (let times = 0; times < 30; times += 1) clock.advance(5_000)
    expect(sent).toHaveLength(31)
  })

  it('goes on announcing it for a minute, so that its next wait is known already', () => {
    const { clock, sent, ends } = rig()
    ends.setWaiting(true)
    ends.onNotice('awaits me')
    ends.setWaiting(false)
    for (let times = 0; times < 11; times += 1) clock.advance(5_000)
    expect(ends.setWaiting(true)).toBe(false)
    ends.setWaiting(false)
    for (let times = 0; times < 13; times += 1) clock.advance(5_000)
    const count = sent.length
    clock.advance(60_000)
    expect(sent).toHaveLength(count)
    expect(clock.pending).toBe(0)
    expect(ends.setWaiting(true)).toBe(true)
  })

  it('is uncertain whether others know it until its announcement has come back, and the others can have it, too', () => {
    const { clock, ends } = rig()
    expect(ends.setWaiting(true)).toBe(true)
    for (let times = 0; times < 20; times += 1) clock.advance(5_000)
    expect(ends.setWaiting(true)).toBe(true)
    ends.onNotice('awaits other')
    clock.advance(2_000)
    expect(ends.setWaiting(true)).toBe(true)
    ends.onNotice('awaits me')
    clock.advance(999)
    expect(ends.setWaiting(true)).toBe(true)
    clock.advance(1)
    ends.onNotice('awaits me')
    expect(ends.setWaiting(true)).toBe(false)
    expect(ends.setWaiting(false)).toBe(false)
  })

  it('is uncertain again when its connection was replaced, and not if it hears nothing: no hints will come', () => {
    const { clock, state, ends } = rig()
    ends.setWaiting(true)
    ends.onNotice('awaits me')
    clock.advance(1_000)
    ends.onListening()
    expect(ends.setWaiting(true)).toBe(true)
    state.isListening = false
    expect(ends.setWaiting(true)).toBe(false)
  })

  it('answers those who ask, and announces it again when its connection was replaced', () => {
    const { clock, sent, ends } = rig()
    ends.onNotice('asks other')
    expect(sent).toEqual([])
    ends.setWaiting(true)
    clock.advance(250)
    ends.onNotice('asks other')
    ends.onNotice('asks me')
    expect(sent).toEqual(['awaits me', 'awaits me'])
    ends.onListening()
    expect(sent).toEqual(['awaits me', 'awaits me', 'asks me', 'awaits me'])
  })

  it('answers many that ask together once, and none that asked before its last announcement', () => {
    const { clock, sent, ends } = rig()
    ends.setWaiting(true)
    for (let times = 0; times < 100; times += 1) ends.onNotice('asks other')
    expect(sent).toHaveLength(1)
    clock.advance(250)
    expect(sent).toHaveLength(2)
    ends.onNotice('asks other')
    ends.onListening()
    sent.length = 0
    clock.advance(4_999)
    expect(sent).toEqual([])
    ends.onNotice('asks other')
    ends.close()
    expect(clock.pending).toBe(0)
  })

  it.each([16, 200])(
    'and hears again at once with %i others, as after a restart of the database, sends a few notices and not one to each',
    (count) => {
      const { clock } = manualPorts()
      const queue: string[] = []
      let sent = 0
      const all = Array.from({ length: count }, (_, index) => {
        const send = (notice: string): Promise<void> => {
          sent += 1
          queue.push(notice)
          return Promise.resolve()
        }
        return new AwaitedEnds({ self: `p${index}`, clock, send, isListening: () => true })
      })
      const deliver = (): void => {
        for (let notice = queue.shift(); notice !== undefined; notice = queue.shift())
          for (const one of all) one.onNotice(notice)
      }
      for (const one of all) one.setWaiting(true)
      deliver()
      sent = 0
      for (const one of all) one.onListening()
      deliver()
      clock.advance(250)
      deliver()
      expect(sent).toBe(3 * count)
      expect(all.every((one) => one.shouldSendEnds)).toBe(true)
      for (const one of all) one.close()
    },
  )

  it('keeps no timer once it is closed', () => {
    const { clock, ends } = rig()
    ends.setWaiting(true)
    ends.close()
    expect(clock.pending).toBe(0)
  })
})
