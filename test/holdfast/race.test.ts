// Races and several waits at once: who wins, what becomes of those who lose, and what a replay makes of it.

import { describe, expect, test } from 'vitest'
import { topic, workflow } from 'holdfast'
import { dyingStore } from './dying-store.ts'
import { changed, kindsOf, virtualWorld } from './virtual-world.ts'

const stays = [
  { how: 'parked in memory', cachedRuns: 100 },
  { how: 'replayed', cachedRuns: 0 },
]

describe.each(stays)('a race that is $how', ({ cachedRuns }) => {
  test('is won by what came true first; the signal of a loser is there for the next wait (WC-A4)', async () => {
    const { open, after, clock } = virtualWorld()
    const racing = workflow('racing', async (ctx) => {
      const first = await ctx.race({ ok: ctx.receive('ok'), no: ctx.receive('no'), late: ctx.sleep('1 h') })
      await ctx.sleep('1 min')
      return [first, await ctx.receive('no')]
    })
    const holdfast = await open({ workflows: [racing] })
    const run = await holdfast.start(racing)
    await holdfast.signal(run, 'ok', 1)
    await clock.advance('1 s')
    await holdfast.signal(run, 'no', 2)
    await holdfast.work({ cachedRuns })
    expect(await after(run.result())).toEqual([{ tag: 'ok', value: 1 }, 2])
  })

  test('of two signals of one batch is won by the one that arrived first, not by the one that is named first', async () => {
    const { open, after } = virtualWorld()
    const racing = workflow('racing', async (ctx) => {
      const first = await ctx.race({ a: ctx.receive('a'), b: ctx.receive('b') })
      const seen: string[] = []
      const both = [ctx.receive('c').then(() => seen.push('c')), ctx.receive('d').then(() => seen.push('d'))]
      await Promise.all(both)
      return [first.tag, ...seen]
    })
    const holdfast = await open({ workflows: [racing] })
    const run = await holdfast.start(racing)
    await holdfast.signals(['b', 'a', 'd', 'c'].map((name) => ({ to: run, name })))
    await holdfast.work({ cachedRuns })
    expect(await after(run.result())).toEqual(['b', 'd', 'c'])
  })

  test('that a signal has won is not lost to its timer later, nor is the timer taken for that of another wait (WC-W5, WC-C7, WC-E7c)', async () => {
    const { open, after, clock } = virtualWorld()
    const racing = workflow('racing', async (ctx) => {
      const first = await ctx.race({ go: ctx.receive('go'), late: ctx.sleep('10 s') })
      const second = await ctx.race({ go: ctx.receive('go'), late: ctx.sleep('1 h') })
      return [first.tag, second.tag, second.value]
    })
    const holdfast = await open({ workflows: [racing] })
    await holdfast.work({ cachedRuns })
    const run = await holdfast.start(racing)
    await clock.advance('5 s')
    await holdfast.signal(run, 'go', 1)
    await clock.advance('20 s')
    expect((await holdfast.get(run)).status).toBe('waiting')
    await holdfast.signal(run, 'go', 2)
    expect(await after(run.result())).toEqual(['go', 'go', 2])
  })

  test('whose time is over says so by its tag, again and again, with a restart between each (HE-W1)', async () => {
    const { open, after, clock } = virtualWorld()
    const polling = workflow('polling', async (ctx) => {
      const tags: string[] = []
      for (let round = 0; round < 5; round += 1) {
        const { tag } = await ctx.race({ go: ctx.receive('go'), timeout: ctx.sleep('1 min') })
        tags.push(tag)
      }
      return tags
    })
    const first = await open({ workflows: [polling] })
    const run = await first.start(polling)
    for (let round = 0; round < 4; round += 1) {
      const holdfast = await open({ workflows: [polling] })
      await holdfast.work({ cachedRuns })
      await clock.advance('61 s')
      await after(holdfast.close())
    }
    const last = await open({ workflows: [polling] })
    await last.signal(run, 'go')
    await last.work({ cachedRuns })
    expect(await after(last.run(run).result())).toEqual(['timeout', 'timeout', 'timeout', 'timeout', 'go'])
  })

  test('whose loser never comes true does not keep its run open', async () => {
    const { open, after } = virtualWorld()
    const child = workflow('for-ever', async (ctx) => void (await ctx.receive('never')))
    const racing = workflow('racing', async (ctx) => {
      const { tag } = await ctx.race({ never: ctx.receive('never'), child: ctx.child(child), soon: ctx.sleep('1 s') })
      return tag
    })
    const holdfast = await open({ workflows: [racing, child] })
    await holdfast.work({ cachedRuns })
    const run = await holdfast.start(racing)
    expect(await after(run.result())).toBe('soon')
  })

  test('may be one of several waits, and have races among its own', async () => {
    const { open, after } = virtualWorld()
    const gathering = workflow('gathering', async (ctx) => {
      const nested = ctx.race({ a: ctx.receive('a'), b: ctx.receive('b') })
      const all = await ctx.all({
        one: ctx.race({ nested, late: ctx.sleep('1 h') }),
        two: ctx.race({ c: ctx.receive('c'), soon: ctx.sleep('1 s') }),
      })
      const [x, y] = await ctx.all([ctx.receive('x'), ctx.receive('x')])
      return [all.one, all.two.tag, x, y]
    })
    const holdfast = await open({ workflows: [gathering] })
    await holdfast.work({ cachedRuns })
    const run = await holdfast.start(gathering)
    await holdfast.signals([
      { to: run, name: 'b', payload: 'B' },
      { to: run, name: 'x', payload: 1 },
      { to: run, name: 'x', payload: 2 },
    ])
    const nested = { tag: 'nested', value: { tag: 'b', value: 'B' } }
    expect(await after(run.result())).toEqual([nested, 'soon', 1, 2])
  })

  test('two waits on one queue get one thing each, though a run is on its list only once', async () => {
    const { open, after, clock } = virtualWorld()
    const jobs = topic('jobs', { delivery: 'one' })
    const taking = workflow('taking', async (ctx) => ctx.all([ctx.receive(jobs), ctx.receive(jobs)]))
    const holdfast = await open({ workflows: [taking] })
    await holdfast.work({ cachedRuns })
    const run = await holdfast.start(taking)
    await clock.advance('1 s')
    await holdfast.broadcast(jobs, 'first')
    await clock.advance('1 s')
    await holdfast.broadcast(jobs, 'second')
    expect(await after(run.result())).toEqual(['first', 'second'])
  })

  test('withdraws what its losers watched: a topic passes nothing on to a run that waits there no more', async () => {
    const { open, after, clock } = virtualWorld()
    const news = topic('news')
    const jobs = topic('jobs', { delivery: 'one' })
    const racing = workflow('racing', async (ctx) => {
      const waits = { news: ctx.receive(news), jobs: ctx.receive(jobs), go: ctx.receive('go') }
      const { tag } = await ctx.race(waits)
      await ctx.receive('end')
      return tag
    })
    const holdfast = await open({ workflows: [racing] })
    await holdfast.work({ cachedRuns })
    const run = await holdfast.start(racing)
    await clock.advance('1 s')
    await holdfast.signal(run, 'go')
    await clock.advance('1 s')
    expect(await holdfast.broadcast(news, 1)).toMatchObject({ outcome: 'queued' })
    expect(await holdfast.broadcast(jobs, 1)).toMatchObject({ outcome: 'queued' })
    await holdfast.signal(run, 'end')
    expect(await after(run.result())).toBe('go')
  })
})

test('a race whose winner is there already is registered and decided in one commit, and nothing is watched for it', async () => {
  const { open, after, store } = virtualWorld()
  const news = topic('news')
  const reached: unknown[] = []
  const watched = changed(store, {
    commit: (transitions) => {
      for (const { outbound = null } of transitions) if (outbound !== null) reached.push(outbound)
      return store.commit(transitions)
    },
  })
  const racing = workflow(
    'racing',
    async (ctx) => (await ctx.race({ news: ctx.receive(news), go: ctx.receive('go') })).tag,
  )
  const holdfast = await open({ store: watched, workflows: [racing] })
  const run = await holdfast.start(racing)
  await holdfast.signal(run, 'go')
  await holdfast.work()
  expect(await after(run.result())).toBe('go')
  expect(reached).toEqual([])
})

test('a run that begins anew keeps its mailbox, and what its past waited for is withdrawn', async () => {
  const { open, after, clock } = virtualWorld()
  const news = topic('news')
  const looping = workflow('looping', async (ctx, round: number): Promise<unknown> => {
    const { tag, value } = await ctx.race({ go: ctx.receive('go'), news: ctx.receive(news) })
    if (round < 3) {
      void ctx.receive(news).then(() => undefined)
      return ctx.continueAsNew(round + 1)
    }
    await ctx.receive('end')
    return [tag, value]
  })
  const holdfast = await open({ workflows: [looping] })
  await holdfast.work()
  const run = await holdfast.start(looping, 1)
  await holdfast.signals([1, 2, 3].map((payload) => ({ to: run, name: 'go', payload })))
  await clock.advance('1 s')
  expect(await holdfast.broadcast(news, 1)).toMatchObject({ outcome: 'queued' })
  await holdfast.signal(run, 'end')
  expect(await after(run.result())).toEqual(['go', 3])
})

test('what a race is made of is checked: a step is no wait', async () => {
  const { open, after } = virtualWorld()
  const wrong = workflow('wrong', { retry: 'none' }, async (ctx) => {
    const step = ctx.step('work', () => 1)
    // @ts-expect-error a step runs to its end: it cannot be withdrawn
    return ctx.race({ step })
  })
  const holdfast = await open({ workflows: [wrong] })
  await holdfast.work()
  const run = await holdfast.start(wrong)
  await expect(after(run.result())).rejects.toMatchObject({ cause: { code: 'INVALID_OPTION' } })
})

test('a crash at every commit of a race leads to the same end as none', async () => {
  const dead: boolean[] = []
  for (let deadAt = 1; deadAt <= 7; deadAt += 1) {
    const { open, after, store, clock } = virtualWorld()
    const dying = dyingStore(store, deadAt)
    let effects = 0
    const racing = workflow('racing', async (ctx) => {
      const first = await ctx.race({ a: ctx.receive('a'), late: ctx.sleep('1 h') })
      await ctx.step('effect', () => void (effects += 1))
      const second = await ctx.race({ a: ctx.receive('a'), late: ctx.sleep('1 s') })
      return [first, second.tag, await ctx.receive('b')]
    })
    const first = await open({ store: dying.store, workflows: [racing] })
    const run = await first.start(racing)
    await first.signals([
      { to: run, name: 'a', payload: 1 },
      { to: run, name: 'b', payload: 2 },
    ])
    await first.work()
    await clock.advance('10 s')
    dead.push(dying.isDead())
    const second = await open({ workflows: [racing] })
    await second.work()
    expect(await after(second.run(run).result())).toEqual([{ tag: 'a', value: 1 }, 'late', 2])
    expect(effects).toBeLessThanOrEqual(2)
    const kinds = await kindsOf(second, run)
    expect(kinds.filter((kind) => kind === 'woken')).toHaveLength(3)
    expect(kinds.filter((kind) => kind === 'waiting')).toHaveLength(3)
  }
  // There is no commit that no process has died with.
  expect(dead.slice(0, 3)).toEqual([true, true, true])
  expect(dead.at(-1)).toBe(false)
})
