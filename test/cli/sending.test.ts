// Sending by the command line: signals, and what becomes of those that came too late.

import { describe, expect, it } from 'vitest'
import { shop } from './seed.ts'
import { paid, sleepy } from './workflows.ts'
import { file } from './world.ts'

const someId = '019a8b6e-7c1d-7000-8f3a-5b2c9d4e6f70'

describe('holdfast signal', () => {
  it('leaves a signal for a run by its id, and says that it waits for the run', async () => {
    const { holdfast, run } = await shop()
    const { id } = await holdfast.start(sleepy)
    const { code, stdout } = await run(['signal', id, 'approved', '{"by":"Ada"}'])
    expect({ code, stdout }).toEqual({ code: 0, stdout: `Run ${id} finds approved when it waits for it.\n` })
    const again = await run(['signal', id, 'approved', '-', '--id', 's-1', '--json'], { stdin: '[1]' })
    expect(JSON.parse(again.stdout)).toEqual({ outcome: 'queued', runId: id, signalId: 's-1' })
    const repeated = await run(['signal', id, 'approved', '--file', file('p.json', '2'), '--id', 's-1'])
    expect(repeated.stdout).toContain('under that id; nothing has changed')
  })

  it('finds the run by its key', async () => {
    const { holdfast, run } = await shop()
    const { id } = await holdfast.start(sleepy, undefined, { key: 'k' })
    const { code, stdout } = await run(['signal', '--type', 'demo.sleepy', '--key', 'k', 'approved', '1', '--json'])
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({ outcome: 'queued', runId: id })
  })

  it('leaves with 3 if there is no such run, and with 4 if it is over', async () => {
    const { holdfast, run } = await shop()
    expect((await run(['signal', someId, 'approved'])).code).toBe(3)
    expect((await run(['signal', '--type', 'demo.sleepy', '--key', 'none', 'approved'])).code).toBe(3)
    const { id } = await holdfast.start(sleepy)
    await holdfast.cancel(id)
    const late = await run(['signal', id, 'approved'])
    expect(late.code).toBe(4)
    expect(late.stderr).toContain(`Run ${id} is over: it is cancelled`)
  })
})

describe('holdfast dead-letters', () => {
  it('lists what is kept, with a topic that the module exports, page by page (WC-R3)', async () => {
    const { holdfast, run } = await shop()
    expect((await run(['dead-letters'])).stderr).toContain('There are no dead letters.')
    const { id } = await holdfast.start(sleepy)
    expect((await run(['signal', id, 'paid', '{"amount":1}', '--id', 'p-1'])).code).toBe(0)
    await holdfast.signal(id, paid, { amount: 2 }, { id: 'p-2' })
    await holdfast.cancel(id)
    const all = await run(['dead-letters', '--topic', 'paid'])
    expect(all.stdout).toMatch(/^RUN +ID +TOPIC +STATUS +AGE +PAYLOAD\n/)
    expect(all.stdout).toContain('{"amount":1}')
    const first = JSON.parse((await run(['dead-letters', '--limit', '1', '--json'])).stdout) as Page
    const second = await run(['dead-letters', '--limit', '1', '--json', '--after', first.next ?? ''])
    const ids = [...first.letters, ...(JSON.parse(second.stdout) as Page).letters].map((letter) => letter.id)
    expect(ids.toSorted()).toEqual(['p-1', 'p-2'])
    expect((await run(['dead-letters', '--run', someId])).stdout).toBe('')
  })

  it('sends one again: to a run, or to its topic; and lets go of one (WC-R3)', async () => {
    const { holdfast, run } = await shop()
    const { id } = await holdfast.start(sleepy)
    for (const n of [1, 2, 3]) await holdfast.signal(id, paid, { amount: n }, { id: `p-${n}` })
    await holdfast.cancel(id)
    const heir = await holdfast.start(sleepy)
    const sent = await run(['dead-letters', id, 'p-1', '--to', heir.id, '--json'])
    expect(JSON.parse(sent.stdout)).toMatchObject({ id: 'p-1', outcome: 'queued', runId: heir.id })
    expect((await run(['dead-letters', id, 'p-2', '--to-topic'])).stdout).toBe('Sent p-2 to its topic.\n')
    expect((await run(['dead-letters', id, 'p-3', '--discard'])).stdout).toBe('Discarded p-3.\n')
    expect((await holdfast.deadLetters()).letters).toEqual([])
    for (const how of [['--discard'], ['--to-topic'], ['--to', heir.id]]) {
      expect((await run(['dead-letters', id, 'p-1', ...how])).code).toBe(3)
    }
  })

  it('keeps it if there is nobody to send it to, or its topic is not known', async () => {
    const { holdfast, run } = await shop()
    const { id } = await holdfast.start(sleepy)
    await holdfast.signal(id, paid, { amount: 1 }, { id: 'p-1' })
    await holdfast.cancel(id)
    expect((await run(['dead-letters', id, 'p-1', '--to', someId])).code).toBe(3)
    expect((await run(['dead-letters', id, 'p-1', '--to', id])).code).toBe(4)
    const other = file('other.mjs', 'export const nothing = 1\n')
    const unknown = await run(['dead-letters', id, 'p-1', '--to-topic', '--workflows', other])
    expect(unknown.code).toBe(2)
    expect(unknown.stderr).toContain('The topic "paid" is not known here.')
    expect((await holdfast.deadLetters()).letters).toHaveLength(1)
  })
})

interface Page {
  readonly letters: readonly { readonly id: string }[]
  readonly next: string | null
}
