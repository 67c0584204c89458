// Tokens: an outside caller completes a wait, once.

import { describe, expect, test } from 'vitest'
import { createHoldfast, workflow, type Holdfast, type HoldfastOptions } from 'holdfast'
import { HoldfastError } from '../../src/core/errors/error.ts'
import { readCompletionToken, completionTokenText } from '../../src/core/completion/completion-token.ts'
import { MemoryStore } from '../../src/stores/memory/store.ts'
import { systemClock } from '../../src/system.ts'
import { readableStores } from './kept-tokens.ts'
import { keepLines, memoryStore, open as openOn } from './open.ts'
import { virtualWorld } from './virtual-world.ts'

const approving = workflow('approving', async (ctx) => {
  const approval = ctx.token()
  await ctx.step('ask', () => approval.token)
  const asked = approval.token
  const { tag, value } = await ctx.race({ approval, late: ctx.sleep('1 day') })
  return [asked, tag, value]
})

test('a token completes its wait, once, and is the same on every replay', async () => {
  const { open, after, clock } = virtualWorld()
  const holdfast = await open({ workflows: [approving] })
  await holdfast.work({ cachedRuns: 0 })
  const run = await holdfast.start(approving)
  await clock.advance('1 s')
  const asked = (await holdfast.journal(run)).find(({ kind }) => kind === 'step-succeeded')
  const token = asked?.data as string
  expect(token).toMatch(/^[\w-]+$/)
  expect(await holdfast.complete(token, { by: 'Ada' })).toEqual({ outcome: 'delivered', runId: run.id })
  expect(await holdfast.complete(token, { by: 'Eve' })).toEqual({ outcome: 'already-completed', runId: run.id })
  expect(await after(run.result())).toEqual([token, 'approval', { by: 'Ada' }])
  expect(await holdfast.complete(token, 'late')).toMatchObject({ outcome: 'already-completed' })
})

test('a token can be completed before anybody waits, and reveals nothing if it was changed', async () => {
  const { open, after, clock } = virtualWorld()
  const slow = workflow('slow', async (ctx) => {
    const one = ctx.token<string>()
    const other = ctx.token<string>()
    ctx.expose('tokens', [one.token, other.token])
    await ctx.sleep('1 min')
    return [await one, await other]
  })
  const holdfast = await open({ workflows: [slow] })
  await holdfast.work()
  const run = await holdfast.start(slow)
  await clock.advance('1 s')
  const [one, other] = (await holdfast.query(run, 'tokens')) as [string, string]
  expect(one).not.toBe(other)
  expect(await holdfast.complete(`${one.slice(0, -2)}AA`, 1)).toEqual({ outcome: 'invalid-token' })
  // The run waits on time and is woken all the same: it goes on waiting.
  await holdfast.complete(one, 'first')
  await holdfast.complete(other, 'second')
  expect(await after(run.result())).toEqual(['first', 'second'])
})

describe('a reader of the database', () => {
  test.each(readableStores)('finds the secret of an open completion token nowhere: $name', async ({ make }) => {
    const { store, dump } = await make()
    const handed: string[] = []
    const asking = workflow('asking', async (ctx) => {
      const answer = ctx.token<string>()
      // Not recorded: it goes to an outside caller.
      await ctx.step('ask', () => undefined)
      handed.push(answer.token)
      return answer
    })
    // Each is another process: it knows the run by its journal alone.
    const during = async (look: (holdfast: Holdfast) => Promise<void>): Promise<void> => {
      const holdfast = await createHoldfast({ store, workflows: [asking], logger: keepLines() })
      await holdfast.work({ cachedRuns: 0 })
      await look(holdfast)
      await holdfast.close()
    }
    let id = ''
    await during(async (holdfast) => {
      id = (await holdfast.start(asking)).id
      await expect.poll(async () => (await holdfast.get(id)).status).toBe('waiting')
    })
    const token = handed.at(-1) ?? ''
    const secret = readCompletionToken(token)?.secret ?? ''
    expect(secret).toMatch(/^[0-9a-f]{40}$/)
    const kept = await dump()
    expect(kept).toContain('sha256:')
    expect(kept).not.toContain(secret)
    expect(kept).not.toContain(token)
    await during(async (holdfast) => {
      expect(await holdfast.complete(token, 'yes')).toEqual({ outcome: 'delivered', runId: id })
      expect(await holdfast.run(id).result()).toBe('yes')
    })
    expect(new Set(handed), 'every replay hands out the same text').toEqual(new Set([token]))
  })

  test('cannot complete a wait with what its entry keeps', async () => {
    const { store, holdfast, run } = await waitingRun()
    const [page] = await store.load([{ runId: run, after: 0, limit: 10 }])
    const entry = page?.entries.find(({ kind }) => kind === 'issued')
    const hash = String(JSON.parse(entry?.data ?? '')).slice('sha256:'.length)
    for (const secret of [hash, hash.slice(0, 40), '0'.repeat(40)]) {
      const forged = completionTokenText({ runId: run, seq: entry?.seq ?? 0, secret })
      expect(await holdfast.complete(forged, 'forged')).toEqual({ outcome: 'invalid-token' })
    }
  })

  test('and has the key of the store still lacks one that is kept elsewhere', async () => {
    const tokenKey = 'kept in a vault, and not in the database'
    const { store, token } = await waitingRun({ tokenKey })
    const own = await waitingRun({}, store)
    expect(readCompletionToken(own.token)?.secret).not.toBe(readCompletionToken(token)?.secret)
    await expect(openOn({ store, tokenKey: 'short' })).rejects.toThrow('at least 32 characters')
  })
})

test('a store without a key of its own keeps the secret, and so hands out the same text', async () => {
  const { holdfast, run, token } = await waitingRun({}, new MemoryStore({ clock: systemClock }))
  expect(await holdfast.complete(token, 'yes')).toEqual({ outcome: 'delivered', runId: run })
  expect(await holdfast.run(run).result()).toBe('yes')
})

test('a process that replays a run without the key is given tokens that complete nothing, and finds no difference', async () => {
  const { store, run } = await waitingRun()
  const reader = new Proxy(store, { get: (target, name) => (name === 'tokenKey' ? refuse : bound(target, name)) })
  const handed: string[] = []
  const holdfast = await openOn({ store: reader, workflows: [returning(handed)] })
  expect(await holdfast.replay(run)).toEqual({ outcome: 'same' })
  expect(readCompletionToken(handed[0])?.secret).toBe('0'.repeat(40))
  await expect(holdfast.work()).rejects.toMatchObject({ code: 'STORE_REFUSED' })
})

const refuse = async (): Promise<never> => {
  throw new HoldfastError('STORE_REFUSED', 'permission denied for table secrets')
}

function bound(target: object, name: string | symbol): unknown {
  const value: unknown = Reflect.get(target, name, target)
  return typeof value === 'function' ? (value.bind(target) as unknown) : value
}

/** Hands out a token and returns what completes it. */
function returning(handed: string[]) {
  return workflow('returning', async (ctx) => {
    const answer = ctx.token<string>()
    handed.push(answer.token)
    return answer
  })
}

async function waitingRun(options: Partial<HoldfastOptions> = {}, store = memoryStore()) {
  const handed: string[] = []
  const waiting = returning(handed)
  const holdfast = await openOn({ store, workflows: [waiting], ...options })
  const worker = await holdfast.work({ cachedRuns: 0 })
  const { id } = await holdfast.start(waiting)
  await expect.poll(async () => (await holdfast.get(id)).status).toBe('waiting')
  return { store, holdfast, worker, run: id, token: handed[0] ?? '' }
}
