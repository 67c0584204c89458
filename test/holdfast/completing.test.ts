// Tokens and exposed values, from outside: what a run has issued completes its wait once, and a caller that has no token learns
// nothing. The entries of the run are written by hand.

import { describe, expect, it, test } from 'vitest'
import { workflow } from 'holdfast'
import { completionTokenText } from '../../src/core/completion/completion-token.ts'
import { messagesOf, takeUp, type HandHeld } from './by-hand.ts'
import { memoryStore, open } from './open.ts'

const approval = workflow('approval', (_ctx, id: string) => id)
const secret = 'a'.repeat(40)

async function world() {
  const store = memoryStore()
  const holdfast = await open({ store, workflows: [approval] })
  const run = await holdfast.start(approval, 'a')
  const held = await takeUp(store, 'approval')
  const seq = await held.append({ kind: 'issued', name: 'token', meta: null, data: JSON.stringify(secret) })
  return { store, holdfast, run, held, seq, token: completionTokenText({ runId: run.id, seq, secret }) }
}

describe('a token', () => {
  test('completes the wait of its run, once', async () => {
    const { store, holdfast, run, held, seq, token } = await world()
    await held.park()
    expect(await holdfast.complete(token, { approved: true })).toEqual({ outcome: 'delivered', runId: run.id })
    expect(await holdfast.complete(token, { approved: false })).toEqual({ outcome: 'already-completed', runId: run.id })
    const name = `token:${seq}`
    expect(await messagesOf(store, run)).toMatchObject([{ id: name, name, kind: 'signal', data: '{"approved":true}' }])
  })

  test('may be used before its run waits', async () => {
    const { holdfast, run, token } = await world()
    expect(await holdfast.complete(token)).toEqual({ outcome: 'queued', runId: run.id })
  })

  test('of a run that is over says so', async () => {
    const { holdfast, run, held, token } = await world()
    await held.succeed()
    const terminated = { outcome: 'target-terminated', runId: run.id, status: 'succeeded' }
    expect(await holdfast.complete(token)).toEqual(terminated)
  })

  test('of a run that has begun anew counts no more', async () => {
    const { store, holdfast, held, token } = await world()
    await held.continueAnew('approval')
    expect(await holdfast.complete(token)).toEqual({ outcome: 'invalid-token' })
    expect(await messagesOf(store, held)).toEqual([])
  })

  it.each([
    ['another secret', ({ runId, seq }: Parts) => completionTokenText({ runId, seq, secret: 'b'.repeat(40) })],
    ['another entry', ({ runId, seq }: Parts) => completionTokenText({ runId, seq: seq - 1, secret })],
    ['no entry', ({ runId, seq }: Parts) => completionTokenText({ runId, seq: seq + 1, secret })],
    ['no run', ({ seq }: Parts) => completionTokenText({ runId: '01900000-0000-7000-8000-000000000000', seq, secret })],
    ['a piece', (parts: Parts) => completionTokenText({ ...parts, secret }).slice(0, -2)],
    ['nothing', () => ''],
    ['no text', () => null as never],
    ['far too much', () => 'A'.repeat(1_000_000)],
  ])('that names %s is invalid, and says no more', async (_, forge) => {
    const { store, holdfast, run, seq } = await world()
    expect(await holdfast.complete(forge({ runId: run.id, seq }))).toEqual({ outcome: 'invalid-token' })
    expect(await messagesOf(store, run)).toEqual([])
  })

  test('cannot be read from the journal', async () => {
    const { holdfast, run } = await world()
    expect(JSON.stringify(await holdfast.journal(run))).not.toContain(secret)
  })
})

interface Parts {
  readonly runId: string
  readonly seq: number
}

describe('what a run exposes', () => {
  const expose = (held: HandHeld, name: string, value: unknown): Promise<number> =>
    held.append({ kind: 'exposed', name, meta: { call: name }, data: JSON.stringify(value) })

  test('is read by its name, the last value of each, also after the end', async () => {
    const { holdfast, run, held } = await world()
    expect(await holdfast.query(run, 'progress')).toBeUndefined()
    await expose(held, 'progress', 1)
    await expose(held, 'stage', 'packing')
    await expose(held, 'progress', 2)
    expect([await holdfast.query(run, 'progress'), await holdfast.query(run.id, 'stage')]).toEqual([2, 'packing'])
    await held.succeed()
    expect(await holdfast.query(run, 'progress')).toBe(2)
  })

  test('of no run is an error', async () => {
    const { holdfast } = await world()
    await expect(holdfast.query('01900000-0000-7000-8000-000000000000', 'x')).rejects.toMatchObject({
      code: 'RUN_NOT_FOUND',
    })
    await expect(holdfast.query('01900000-0000-7000-8000-000000000000', '')).rejects.toMatchObject({
      code: 'INVALID_NAME',
    })
  })
})
