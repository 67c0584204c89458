// Sending by the command line: signals, and what becomes of those that came too late.

import { describe, expect, it } from 'vitest'
import { workflow } from '../../src/index.ts'
import { shop } from './seed.ts'
import { greet, paid, sleepy } from './workflows.ts'
import { file } from './world.ts'

const someId = '019a8b6e-7c1d-7000-8f3a-5b2c9d4e6f70'

const shopkeeper = workflow('demo.shopkeeper', async (ctx) => {
  const asked = await ctx.receive<string>('price', { message: true })
  await (asked.value === 'tea' ? asked.reply({ price: 3 }) : asked.refuse(new Error('Sold out')))
})

describe('holdfast ask', () => {
  it('prints the answer of a run, by its id or its key', async () => {
    const { holdfast, run } = await shop({ workflows: [shopkeeper] })
    await holdfast.work()
    const { id } = await holdfast.start(shopkeeper)
    expect(await run(['ask', id, 'price', '"tea"', '--id', 'q'])).toMatchObject({ code: 0, stdout: '{"price":3}\n' })
    const again = await run(['ask', id, 'price', '"tea"', '--id', 'q', '--json'])
    expect(JSON.parse(again.stdout)).toEqual({ answer: { price: 3 } })
    await holdfast.start(shopkeeper, undefined, { key: 'k' })
    const refused = await run(['ask', '--type', 'demo.shopkeeper', '--key', 'k', 'price', '"milk"'])
    expect(refused).toMatchObject({ code: 5, stderr: expect.stringContaining('Sold out') as string })
  })

  it('leaves with 3 if there is no such run, with 5 if it has ended, and with 7 if it does not answer', async () => {
    const { holdfast, run } = await shop()
    expect((await run(['ask', someId, 'price'])).code).toBe(3)
    const { id } = await holdfast.start(sleepy)
    const late = await run(['ask', id, 'price', '--timeout', '20ms'])
    expect(late).toMatchObject({ code: 7, stderr: expect.stringContaining('has not read the question') as string })
    await holdfast.cancel(id)
    expect((await run(['ask', id, 'price'])).code).toBe(5)
  })
})

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

  it('says to name the field of a key, or the module, if it knows the workflow of neither', async () => {
    const booked = workflow('demo.booked', { unique: { key: 'seat' } }, (_ctx, input: { seat: string }) => input.seat)
    const { holdfast, run } = await shop({ workflows: [booked] })
    const { id } = await holdfast.start(booked, { seat: '7a' })
    const named = ['--type', 'demo.booked', '--key', '7a']
    for (const argv of [
      ['signal', ...named, 'paid'],
      ['show', ...named],
      ['cancel', ...named],
    ]) {
      const { code, stderr } = await run(argv)
      expect(code).toBe(3)
      expect(stderr).toMatch(
        /^error: There is no run of "demo.booked" with the key "7a".*"orderId::7a".*--workflows.*\n$/,
      )
    }
    expect((await run(['runs', ...named])).stderr).toContain('--workflows')
    const sent = await run(['signal', '--type', 'demo.booked', '--key', 'seat::7a', 'paid'])
    expect(sent).toMatchObject({ code: 0, stderr: '', stdout: `Run ${id} finds paid when it waits for it.\n` })
  })

  it('leaves with 3 if there is no such run, and with 4 if it is over', async () => {
    const { holdfast, run } = await shop()
    expect((await run(['signal', someId, 'approved'])).code).toBe(3)
    expect((await run(['signal', '--type', 'demo.sleepy', '--key', 'none', 'approved'])).code).toBe(3)
    const { id } = await holdfast.start(sleepy)
    await holdfast.cancel(id)
    const late = await run(['signal', id, 'approved'])
    expect(late.code).toBe(4)
    expect(late.stderr).toContain(`Run ${id} is over: it was cancelled, and waits for no signal.`)
    await holdfast.work()
    const greeted = await holdfast.start(greet, 'Ada')
    await greeted.result()
    const over = await run(['signal', greeted.id, 'approved'])
    expect(over.stderr).toContain(`Run ${greeted.id} is over: it has succeeded, and waits for no signal.`)
  })

  it('asks whether a name is misspelt that no wait of a waiting run has asked for', async () => {
    const asking = workflow('demo.asking', (ctx) => ctx.receive('approved'))
    const { holdfast, run } = await shop({ workflows: [asking] })
    const { id } = await holdfast.start(asking)
    expect((await run(['signal', id, 'aproved'])).stderr).toBe('')
    await holdfast.work()
    await expect.poll(async () => (await holdfast.get(id)).status).toBe('waiting')
    const sent = await run(['signal', id, 'aproved'])
    expect(sent).toMatchObject({ code: 0, stderr: 'No wait of it has asked for aproved so far: misspelt?\n' })
    expect((await run(['signal', id, 'approved'])).stderr).toBe('')
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
