// Hints gather for a moment and go out together, one sending at a time; what cannot be sent is lost without harm.

import { describe, expect, it } from 'vitest'
import type { Hint } from '../../../../../src/store.ts'
import { hintsOf } from '../../../../../src/stores/postgres/hints/notice.ts'
import { Notifier } from '../../../../../src/stores/postgres/hints/notifier.ts'
import { manualPorts, turn } from '../../../../support/manual-ports.ts'

const ready = (type: string): Hint => ({ kind: 'ready', type })

function rig() {
  const ports = manualPorts()
  const sent: (readonly Hint[])[] = []
  let answer: () => Promise<void> = async () => undefined
  const send = (notice: string): Promise<void> => {
    sent.push(hintsOf(notice, 'other'))
    return answer()
  }
  const notifier = new Notifier(send, 'me', ports)
  return { ports, sent, notifier, answerWith: (next: typeof answer) => (answer = next) }
}

describe('the teller', () => {
  it('lets hints gather, and sends them together', async () => {
    const { ports, sent, notifier } = rig()
    notifier.notify([ready('a')])
    notifier.notify([ready('b'), ready('a')])
    expect(sent).toEqual([])
    ports.clock.advance(10)
    await turn()
    expect(sent).toEqual([[ready('a'), ready('b')]])
    expect(ports.clock.pending).toBe(0)
  })

  it('sends what comes while it sends afterwards, and never two at once', async () => {
    const { ports, sent, notifier, answerWith } = rig()
    let sendOn: () => void = () => undefined
    answerWith(() => new Promise((resolve) => (sendOn = resolve)))
    notifier.notify([ready('a')])
    ports.clock.advance(10)
    await turn()
    notifier.notify([ready('b')])
    ports.clock.advance(1_000)
    await turn()
    expect(sent).toEqual([[ready('a')]])
    sendOn()
    await turn()
    ports.clock.advance(10)
    await turn()
    expect(sent).toEqual([[ready('a')], [ready('b')]])
  })

  it('loses what cannot be sent, warns of nothing, and goes on', async () => {
    const { ports, sent, notifier, answerWith } = rig()
    answerWith(() => Promise.reject(new Error('gone')))
    notifier.notify([ready('a')])
    ports.clock.advance(10)
    await turn()
    answerWith(async () => undefined)
    notifier.notify([ready('b')])
    ports.clock.advance(10)
    await turn()
    expect(sent).toEqual([[ready('a')], [ready('b')]])
    expect(ports.warnings).toEqual([])
  })

  it('keeps no more than it can send in a moment', async () => {
    const { ports, sent, notifier } = rig()
    for (let count = 0; count < 10_000; count += 1) notifier.notify([{ kind: 'ended', runId: `run ${count}` }])
    ports.clock.advance(10)
    await turn()
    expect(sent.flat()).toHaveLength(2_000)
  })

  it('sends what is left when it is closed, and nothing after', async () => {
    const { ports, sent, notifier } = rig()
    notifier.notify([ready('a')])
    await notifier.close()
    expect(sent).toEqual([[ready('a')]])
    notifier.notify([ready('b')])
    ports.clock.advance(1_000)
    await turn()
    expect(sent).toHaveLength(1)
    expect(ports.clock.pending).toBe(0)
  })
})
