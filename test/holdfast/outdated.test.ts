// A worker that a newer Holdfast has left behind: the store says that its schema admits this code no more, and the worker
// lets go of everything in good order. The store is one in memory that says so when the test wants it to.

import { describe, expect, it } from 'vitest'
import { HoldfastError, workflow } from 'holdfast'
import type { Store } from '../../src/store.ts'
import { gate } from './gate.ts'
import { keepLines } from './open.ts'
import { stuckOnce } from './stuck.ts'
import { changed, kindsOf, virtualWorld } from './virtual-world.ts'

/** A store whose schema moves on when the switch is thrown. A worker that leaves may still say goodbye. */
function outgrowing(store: Store, method: 'beat' | 'claim') {
  const schema = { isNewer: false }
  const check = (): void => {
    if (schema.isNewer) throw new HoldfastError('SCHEMA_TOO_NEW', 'The schema admits only a newer Holdfast.')
  }
  const changes: Partial<Store> =
    method === 'beat'
      ? {
          beat: async (request) => {
            const answer = await store.beat(request)
            if (request.end !== true) check()
            return answer
          },
        }
      : {
          claim: async (request) => {
            check()
            return store.claim(request)
          },
        }
  return { schema, store: changed(store, changes) }
}

describe('a worker that the schema admits no more', () => {
  it.each(['beat', 'claim'] as const)(
    'and is answered with a %s stops: what moves may end, nothing new is taken, one line says why',
    async (method) => {
      const { open, after, until, store } = virtualWorld()
      const logger = keepLines()
      const { passed, open: letGo } = gate()
      let moving = 0
      const slow = workflow('slow', async (ctx) => {
        await ctx.step('wait', async () => {
          moving += 1
          await passed
        })
        return 'ended here'
      })
      const { schema, store: outgrown } = outgrowing(store, method)
      const old = await open({ store: outgrown, workflows: [slow], logger })
      const worker = await old.work()
      const first = await old.start(slow)
      await until(() => moving === 1)
      schema.isNewer = true
      await until(() => logger.lines.some(({ level }) => level === 'error'))
      const second = await old.start(slow)
      letGo()
      const reason = await after(worker.ended)
      expect(reason).toMatchObject({ code: 'SCHEMA_TOO_NEW' })
      expect(await after(first.result())).toBe('ended here')
      expect(await kindsOf(old, first)).not.toContain('crashed')
      expect((await old.get(second)).status).toBe('pending')
      const errors = logger.lines.filter(({ level }) => level === 'error')
      expect(errors).toEqual([
        {
          level: 'error',
          message: 'This worker stops: The schema admits only a newer Holdfast.',
          details: { error: reason },
        },
      ])
      expect(await after(worker.stop())).toBeUndefined()
    },
  )

  it('gives back what does not end in time, and a newer worker goes on with it without a crash', async () => {
    const { open, after, until, store } = virtualWorld()
    const { stuck, signals, letGo } = stuckOnce()
    const { schema, store: outgrown } = outgrowing(store, 'beat')
    const old = await open({ store: outgrown, workflows: [stuck] })
    const worker = await old.work({ shutdownTimeout: '2s' })
    const run = await old.start(stuck)
    await until(() => signals.length === 1)
    schema.isNewer = true
    expect(await after(worker.ended)).toMatchObject({ code: 'SCHEMA_TOO_NEW' })
    const newer = await open({ workflows: [stuck] })
    await newer.work()
    expect(await after(newer.run(run).result())).toEqual(['kept', 'at time 2'])
    expect(await kindsOf(newer, run)).not.toContain('crashed')
    letGo()
  })

  it('that is stopped by its owner has no reason of its own', async () => {
    const { open, after } = virtualWorld()
    const holdfast = await open()
    const worker = await holdfast.work()
    await after(worker.stop())
    expect(await worker.ended).toBeNull()
  })

  it('does not even begin when it is refused from the start', async () => {
    const { open, store } = virtualWorld()
    const { schema, store: outgrown } = outgrowing(store, 'beat')
    schema.isNewer = true
    const old = await open({ store: outgrown })
    await expect(old.work()).rejects.toMatchObject({ code: 'SCHEMA_TOO_NEW' })
  })
})
