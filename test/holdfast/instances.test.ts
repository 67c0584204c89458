// Several instances in one process: nothing is global, and an instance that shares a store shares its work.

import { describe, expect, it } from 'vitest'
import { createHoldfast, workflow } from 'holdfast'
import { settled } from './gate.ts'
import { keepLines, memoryStore, open, openWorking } from './open.ts'

const namesake = (answer: string) => workflow('namesake', (ctx) => ctx.step('answer', () => answer))

describe('two instances', () => {
  it('may give the same name to different bodies', async () => {
    const [one, other] = [namesake('one'), namesake('other')]
    const [first, second] = [await openWorking([one]), await openWorking([other])]
    expect(await (await first.start(one)).result()).toBe('one')
    expect(await (await second.start(other)).result()).toBe('other')
  })

  it('do not see the runs of each other’s stores', async () => {
    const shared = namesake('shared')
    const [first, second] = [await openWorking([shared]), await openWorking([shared])]
    const run = await first.start(shared)
    await expect(second.get(run)).rejects.toMatchObject({ code: 'RUN_NOT_FOUND' })
  })

  it('are closed one by one', async () => {
    const shared = namesake('shared')
    const [first, second] = [await openWorking([shared]), await openWorking([shared])]
    await first.close()
    expect(await (await second.start(shared)).result()).toBe('shared')
    await expect(first.start(shared)).rejects.toMatchObject({ code: 'CLOSED' })
  })

  it('on one store share its work', async () => {
    const store = memoryStore()
    const whom: string[] = []
    const labelled = (who: string) =>
      workflow('news', (ctx) =>
        ctx.step('label', async () => {
          whom.push(who)
          await settled()
        }),
      )
    const [one, other] = [labelled('one'), labelled('other')]
    const [first, second] = [await open({ store, workflows: [one] }), await open({ store, workflows: [other] })]
    const runs = await Promise.all(Array.from({ length: 8 }, () => first.start(one)))
    await Promise.all([first.work({ concurrency: 2 }), second.work({ concurrency: 2 })])
    await Promise.all(runs.map((run) => run.result()))
    expect(whom).toHaveLength(8)
    expect(new Set(whom)).toEqual(new Set(['one', 'other']))
  })

  it('on one store: what one starts, the other performs, and the first gets the result', async () => {
    const store = memoryStore()
    const job = namesake('performed elsewhere')
    const client = await open({ store, workflows: [job] })
    await openWorking([job], { store })
    const run = await client.start(job)
    expect(await run.result()).toBe('performed elsewhere')
  })

  it('on one store: one that knows no workflow can still wait for a run and read it', async () => {
    const store = memoryStore()
    const job = namesake('news')
    const worker = await openWorking([job], { store })
    const reader = await open({ store })
    const run = await worker.start(job)
    expect(await reader.run<string>(run.id).result()).toBe('news')
    expect(await reader.get(run)).toMatchObject({ type: 'namesake', output: 'news' })
    expect(await reader.journal(run)).toHaveLength(3)
  })

  it('on one store: a worker leaves alone what it does not know', async () => {
    const store = memoryStore()
    const job = namesake('late')
    const client = await open({ store, workflows: [job] })
    await openWorking([workflow('unrelated', () => 1)], { store })
    await openWorking([workflow('namesake', { version: 2 }, () => 'wrong version')], { store })
    const run = await client.start(job)
    await settled()
    expect(await run.status()).toBe('pending')
    await client.work()
    expect(await run.result()).toBe('late')
  })

  it('on one store: closing one does not close the store under the other', async () => {
    const store = memoryStore()
    const job = namesake('still there')
    const first = await createHoldfast({ store, workflows: [job], logger: keepLines() })
    const second = await openWorking([job], { store })
    await first.close()
    expect(await (await second.start(job)).result()).toBe('still there')
  })
})

describe('a closed instance', () => {
  it('refuses to start, to work and to read', async () => {
    const job = namesake('no')
    const holdfast = await openWorking([job])
    const run = await holdfast.start(job)
    await run.result()
    await holdfast.close()
    for (const ask of [
      () => holdfast.start(job),
      () => holdfast.work(),
      () => holdfast.get(run),
      () => holdfast.journal(run),
      () => run.status(),
      () => run.result(),
    ]) {
      await expect(ask()).rejects.toMatchObject({
        code: 'CLOSED',
        message: expect.stringContaining('closed') as string,
      })
    }
  })

  it('may be closed again, and at once', async () => {
    const holdfast = await open()
    await Promise.all([holdfast.close(), holdfast.close()])
    await holdfast.close()
  })

  it('lets go of those who wait for a result', async () => {
    const sleeper = workflow('sleeper', async (ctx) => void (await ctx.sleep('1h')))
    const holdfast = await openWorking([sleeper])
    const run = await holdfast.start(sleeper)
    const result = run.result().catch((error: unknown) => error)
    await settled()
    await holdfast.close()
    const outcome = await Promise.race([result, settled().then(() => 'still waiting')])
    expect(outcome).toMatchObject({ code: 'CLOSED' })
  })

  it('says so also when the store that it was lent is still open', async () => {
    const job = namesake('done')
    const holdfast = await openWorking([job], { store: memoryStore() })
    const run = await holdfast.start(job)
    await run.result()
    await holdfast.close()
    await expect(holdfast.get(run)).rejects.toMatchObject({ code: 'CLOSED' })
  })
})

describe('working', () => {
  it('twice at once is refused, and after a stop it is not', async () => {
    const job = namesake('again')
    const holdfast = await open({ workflows: [job] })
    const worker = await holdfast.work()
    await expect(holdfast.work()).rejects.toMatchObject({
      code: 'INVALID_OPTION',
      message: expect.stringContaining('works already') as string,
    })
    await worker.stop()
    await holdfast.work()
    expect(await (await holdfast.start(job)).result()).toBe('again')
  })
})
