// Workers and clients that lack a key: what they cannot read they leave alone, pause as it is, or show as what it is. Nothing
// is lost by it, and once the key is there everything goes on.

import { randomBytes } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { workflow, type Codec, type Holdfast } from 'holdfast'
import { encryptingCodec } from 'holdfast/encryption'
import { keepLines } from './open.ts'
import { everyStore } from './stores.ts'

const bytes = { a: randomBytes(32), b: randomBytes(32) }
const onlyA = encryptingCodec({ keys: { a: bytes.a }, current: 'a' })
const onlyB = encryptingCodec({ keys: { b: bytes.b }, current: 'b' })
const both = encryptingCodec({ keys: bytes, current: 'b' })

/** The same codec, of which nobody knows that it has keys: workers get what they cannot read. */
function withoutKeys(codec: Codec): Codec {
  return { encode: (value, place) => codec.encode(value, place), decode: (text, place) => codec.decode(text, place) }
}

function order(done: string[]) {
  return workflow('order', { retry: { maxAttempts: 1 } }, async (ctx, input: { name: string; fails?: boolean }) => {
    const id = await ctx.step('book', () => (done.push(`book ${input.name}`), `b-${input.name}`), {
      undo: (booked) => void done.push(`unbook ${booked}`),
    })
    const paid = await ctx.receive<string>('paid')
    if (input.fails === true) throw new Error('No seat')
    return `${id} ${paid}`
  })
}

async function until(holdfast: Holdfast, run: { readonly id: string }, status: string): Promise<void> {
  await expect.poll(async () => (await holdfast.get(run.id)).status, { timeout: 10_000 }).toBe(status)
}

describe.each(everyStore)('on $name', ({ make }) => {
  it('a worker without the key ruins no run in flight: it pauses, and goes on where it was when the key is back', async () => {
    const { open } = await make()
    const done: string[] = []
    const workflows = [order(done)]
    const first = await open({ codec: withoutKeys(onlyA), workflows })
    await first.work()
    const runs = []
    for (const name of ['one', 'two', 'three']) runs.push(await first.start('order', { name, fails: name === 'two' }))
    for (const run of runs) await until(first, run, 'waiting')
    await first.close()

    const without = await open({ codec: withoutKeys(onlyB), workflows })
    await without.work()
    for (const run of runs) await without.signal(run.id, 'paid', 'cash')
    for (const run of runs) await until(without, run, 'paused')
    const [run] = runs as [(typeof runs)[number]]
    const view = await without.get(run.id)
    expect(view.unreadable).toMatchObject({ key: 'a', entry: { seq: 1, name: null } })
    expect((await without.find({ status: 'paused' })).runs.map(({ unreadable }) => unreadable?.key)).toEqual(
      runs.map(() => 'a'),
    )
    const [started] = await without.journal(run.id)
    expect(started).toMatchObject({ kind: 'started', data: undefined, unreadable: { key: 'a' } })
    expect(done.toSorted()).toEqual(['book one', 'book three', 'book two'])
    await without.close()

    const back = await open({ codec: withoutKeys(both), workflows })
    await back.work()
    expect(await back.resumeMany({}, { all: true, reason: 'unreadable' })).toMatchObject({ matched: 3, changed: 3 })
    expect(await back.run(runs[0]?.id ?? '').result()).toBe('b-one cash')
    expect(await back.run(runs[2]?.id ?? '').result()).toBe('b-three cash')
    await until(back, runs[1] ?? run, 'failed')
    expect(done.slice(3)).toEqual(['unbook b-two'])
    expect((await back.get(run.id)).unreadable).toBeNull()
  })

  it('a message that cannot be read pauses the run that takes it, and is not lost', async () => {
    const { open } = await make()
    const workflows = [order([])]
    const worker = await open({ codec: withoutKeys(onlyA), workflows })
    await worker.work()
    const run = await worker.start('order', { name: 'one' })
    await until(worker, run, 'waiting')
    const stranger = await open({ codec: onlyB })
    await stranger.signal(run.id, 'paid', 'cash')
    await until(worker, run, 'paused')
    expect((await worker.get(run.id)).unreadable).toMatchObject({ key: 'b' })
    await worker.close()
    const back = await open({ codec: both, workflows })
    await back.work()
    await back.resume(run.id)
    expect(await back.run(run.id).result()).toBe('b-one cash')
  })

  it('a worker leaves runs of a key that it lacks to others, and says so when it starts', async () => {
    const { open } = await make()
    const done: string[] = []
    const workflows = [order(done)]
    const starter = await open({ codec: both, workflows })
    const kept = await starter.start('order', { name: 'new' })
    const logger = keepLines()
    const old = await open({ codec: onlyA, workflows, logger })
    await old.work()
    const logged = logger.lines.filter(({ message }) => message.startsWith('This worker cannot read all runs'))
    expect(logged.map(({ level, message }) => `${level} ${message}`)).toEqual([
      expect.stringMatching(/^warn .*1 live run was written with keys that it lacks \("b"\)/),
    ])
    // What it can read it performs meanwhile.
    const own = await old.start('order', { name: 'old' })
    await until(old, own, 'waiting')
    expect(await starter.get(kept.id)).toMatchObject({ status: 'pending', crashes: 0, unreadable: null })
    await starter.work()
    await until(starter, kept, 'waiting')
    expect(done.toSorted()).toEqual(['book new', 'book old'])
  })

  it('a worker without any key gives back the first run that needs one, and takes no other', async () => {
    const { open } = await make()
    const workflows = [order([])]
    const plain = await open({ workflows })
    await plain.work()
    const starter = await open({ codec: both, workflows })
    const kept = await starter.start('order', { name: 'new' })
    const own = await plain.start('order', { name: 'old' })
    await until(plain, own, 'waiting')
    await expect.poll(async () => (await plain.journal(kept.id)).length).toBe(1)
    await starter.work()
    await until(starter, kept, 'waiting')
    expect((await starter.journal(kept.id)).map(({ kind }) => kind)).not.toContain('paused')
  })

  it('a run that a newer key was written to is left alone by a worker that lacks it, and not paused', async () => {
    const { open } = await make()
    const done: string[] = []
    const workflows = [order(done)]
    const oldest = await open({ codec: onlyA, workflows })
    const run = await oldest.start('order', { name: 'one' })
    const newer = await open({ codec: both, workflows })
    await newer.work()
    await until(newer, run, 'waiting')
    await newer.close()
    await oldest.work()
    await oldest.signal(run.id, 'paid', 'cash')
    await expect.poll(async () => (await oldest.get(run.id)).dueAt).not.toBeNull()
    const other = await oldest.start('order', { name: 'two' })
    await until(oldest, other, 'waiting')
    expect((await oldest.journal(run.id)).map(({ kind }) => kind)).not.toContain('paused')
    const back = await open({ codec: both, workflows })
    await back.work()
    expect(await back.run(run.id).result()).toBe('b-one cash')
    expect(done).toEqual(['book one', 'book two'])
  })

  it('the output of a run that cannot be read is PAYLOAD_CORRUPT with the key, and the run is still shown', async () => {
    const { open } = await make()
    const greet = workflow('greet', async (_ctx, name: string) => `Hello ${name}`)
    const fails = workflow('fails', { retry: { maxAttempts: 1 } }, async () => {
      throw new Error('No')
    })
    const worker = await open({ codec: onlyA, workflows: [greet, fails] })
    await worker.work()
    const run = await worker.start(greet, 'Ada')
    await run.result()
    const failed = await worker.start(fails)
    await failed.result().catch(() => undefined)
    const reader = await open({ codec: onlyB })
    await expect(reader.run(run.id).result()).rejects.toMatchObject({ code: 'PAYLOAD_CORRUPT', details: { key: 'a' } })
    await expect(reader.run(failed.id).result()).rejects.toMatchObject({ code: 'PAYLOAD_CORRUPT' })
    const view = await reader.get(run.id)
    expect(view).toMatchObject({ status: 'succeeded', unreadable: { key: 'a' } })
    expect(view).not.toHaveProperty('output')
    expect(await reader.get(failed.id)).toMatchObject({ status: 'failed', unreadable: { key: 'a' } })
    expect((await reader.find()).runs).toHaveLength(2)
  })
})
