import { describe, expect, it } from 'vitest'
import { entryView, listedView, viewOf } from '../../../../src/client/read/run-view.ts'
import { jsonCodec } from '../../../../src/core/payload/codec.ts'
import type { Entry } from '../../../../src/core/model/entry.ts'
import { HoldfastError } from '../../../../src/core/errors/error.ts'
import { Payloads } from '../../../../src/core/payload/payload.ts'
import type { Place } from '../../../../src/core/payload/place.ts'
import type { Run } from '../../../../src/core/model/run.ts'

const payloads = new Payloads(jsonCodec())
const run: Run = {
  id: '01890a5d-ac96-774b-bcce-b302099a8057',
  shard: 1,
  type: 'order',
  version: 2,
  key: 'order-42',
  keyScope: 'workflow',
  idempotencyKey: null,
  parentId: null,
  tags: ['eu'],
  metadata: '{"by":"Ada"}',
  feed: false,
  keyId: null,
  status: 'running',
  readiness: 'leased',
  priority: 0,
  due: 7_000,
  seq: 3,
  base: 1,
  inbox: 0,
  wakeNames: null,
  controlRequest: { kind: 'cancel', reason: 'no more', at: 1_500 },
  undo: 'none',
  crashes: 1,
  token: 4,
  session: 'session',
  createdAt: 1_000,
  updatedAt: 2_000,
  endedAt: null,
  deadline: null,
  timeoutAt: null,
  expiresAt: null,
  deletedAt: null,
  deleteReason: null,
  watched: false,
}
const ended = { seq: 3, at: 3_000, transition: 't', name: null, meta: null } as const

describe('the view of a run', () => {
  it('keeps what its errors say in JSON: the one that it failed with, its causes, and those in what it returned', async () => {
    const cause = new HoldfastError('RUN_TIMEOUT', 'too late', { details: { runId: '1' } })
    const error = Object.assign(new TypeError('no card', { cause }), { status: 402 })
    const place = payloads.place(run.id, 3, 'failed', null)
    const expected = {
      name: 'TypeError',
      message: 'no card',
      status: 402,
      cause: { name: 'HoldfastError', code: 'RUN_TIMEOUT', message: 'too late', details: { runId: '1' } },
    }
    const failed: Entry = { ...ended, kind: 'failed', data: payloads.encode(error, place) }
    const view = await viewOf({ ...run, status: 'failed' }, failed, payloads)
    expect(JSON.parse(JSON.stringify({ view }))).toMatchObject({ view: { id: run.id, error: expected } })
    expect(JSON.parse(JSON.stringify({ ...view }))).toMatchObject({ error: expected })
    expect(view.error).toEqual(error)
    expect(JSON.parse(JSON.stringify(await entryView(run.id, failed, payloads)))).toMatchObject({ data: expected })
    const data = payloads.encode({ rejected: [{ reason: error }] }, place)
    const succeeded = await viewOf({ ...run, status: 'succeeded' }, { ...ended, kind: 'succeeded', data }, payloads)
    expect(JSON.parse(JSON.stringify(succeeded))).toMatchObject({ output: { rejected: [{ reason: expected }] } })
  })

  it('shows dates, and nothing of leases and scheduling', async () => {
    expect(await viewOf(run, undefined, payloads)).toEqual({
      id: run.id,
      type: 'order',
      version: 2,
      status: 'running',
      key: 'order-42',
      keyScope: 'workflow',
      idempotencyKey: null,
      parentId: null,
      tags: ['eu'],
      metadata: { by: 'Ada' },
      priority: 0,
      createdAt: new Date(1_000),
      updatedAt: new Date(2_000),
      endedAt: null,
      dueAt: new Date(7_000),
      crashes: 1,
      controlRequest: { kind: 'cancel', reason: 'no more', at: new Date(1_500) },
      pause: null,
      deletedAt: null,
      deleteReason: null,
      lastError: null,
      unreadable: null,
    })
  })

  it('has an output that is undefined, rather than none, when a body returned nothing', async () => {
    const last: Entry = { ...ended, kind: 'succeeded', data: jsonCodec().encode(undefined, place()) }
    const view = await viewOf({ ...run, status: 'succeeded', endedAt: 3_000 }, last, payloads)
    expect(view).toHaveProperty('output', undefined)
    expect(view.dueAt).toBeNull()
  })

  it('SW-O1 sums an error up on one line, however many it has', async () => {
    const error = new TypeError(`one\n  two\t${'three '.repeat(100)}`)
    const last: Entry = { ...ended, kind: 'failed', data: jsonCodec().encode(error, place()) }
    const failed = { ...run, status: 'failed', endedAt: 3_000 } as const
    const { lastError } = await viewOf(failed, last, payloads)
    expect(lastError).toMatch(/^TypeError: one two three three .*…$/)
    expect(lastError).toHaveLength(200)
    expect((await listedView(failed, last, payloads)).lastError).toBe(lastError)
    expect(await listedView(failed, last, payloads)).not.toHaveProperty('error')
  })

  it('a list shows a run whose error cannot be read, and says so', async () => {
    const last: Entry = { ...ended, kind: 'failed', data: 'not JSON' }
    const view = await listedView({ ...run, status: 'failed', endedAt: 3_000 }, last, payloads)
    expect(view.lastError).toMatch(/^The payload of entry 3 .* cannot be read/)
  })

  it('has an error only when the run failed', async () => {
    const last: Entry = { ...ended, kind: 'failed', data: jsonCodec().encode(new Error('No'), place()) }
    const view = await viewOf({ ...run, status: 'failed', endedAt: 3_000 }, last, payloads)
    expect(view.error).toMatchObject({ message: 'No' })
    expect(view.lastError).toBe('Error: No')
    expect(view).not.toHaveProperty('output')
  })

  it('of an entry without a payload says undefined', async () => {
    const entry: Entry = {
      ...ended,
      kind: 'progressed',
      name: 'progress',
      meta: { fraction: 1 },
      data: null,
    }
    expect(await entryView(run.id, entry, payloads)).toEqual({
      seq: 3,
      at: new Date(3_000),
      kind: 'progressed',
      name: 'progress',
      meta: { fraction: 1 },
      data: undefined,
    })
  })

  it('of what a wait got reads it as its own, whatever its row says of where it came from', async () => {
    const place = { runId: 'victim', seq: 1, name: null }
    const by = { id: 'm', kind: 'signal', name: 'paid', place } as const
    const meta = { winner: 'paid', trueAt: 1, seenAt: 2, by }
    const entry: Entry = { ...ended, kind: 'woken', name: 'signal', meta, data: 'text' }
    const places: unknown[] = []
    const codec = { encode: () => '', decode: (text: string, at: unknown) => places.push(at) && text }
    expect(await entryView(run.id, entry, new Payloads(codec))).toMatchObject({ data: 'text' })
    expect(places).toEqual([payloads.place(run.id, 3, 'woken', 'signal')])
  })

  it('of a token does not show its secret', async () => {
    const entry: Entry = { ...ended, kind: 'issued', name: 'token', meta: null, data: '"secret"' }
    expect(await entryView(run.id, entry, payloads)).toMatchObject({ kind: 'issued', data: undefined })
  })

  it('that cannot be read is shown all the same, marked with what is missing', async () => {
    const entry: Entry = { ...ended, kind: 'succeeded', data: '{' }
    const note = expect.stringMatching(/^The payload of entry 3 .* cannot be read/) as unknown
    const unreadable = { entry: { seq: 3, name: entry.name }, key: null, note }
    expect(await entryView(run.id, entry, payloads)).toMatchObject({ kind: 'succeeded', data: undefined, unreadable })
    const view = await viewOf({ ...run, status: 'succeeded', endedAt: 3_000 }, entry, payloads)
    expect(view).toMatchObject({ status: 'succeeded', lastError: null, unreadable })
    expect(view).not.toHaveProperty('output')
    const failed = await viewOf({ ...run, status: 'failed', endedAt: 3_000 }, { ...entry, kind: 'failed' }, payloads)
    expect(failed).toMatchObject({ status: 'failed', lastError: note, unreadable })
    expect(failed).not.toHaveProperty('error')
  })

  it('of a run that is paused because it cannot be read says what is missing', async () => {
    const expected = { entry: { seq: 2, name: 'charge' }, key: 'old', note: 'Give the workers the key "old".' }
    const meta = { reason: 'unreadable', why: 'the key is not here', ...expected } as const
    const entry: Entry = { ...ended, kind: 'paused', name: null, meta, data: null }
    for (const show of [viewOf, listedView]) {
      expect(await show({ ...run, status: 'paused' }, entry, payloads)).toMatchObject({ unreadable: expected })
    }
    const byHand: Entry = { ...entry, meta: { reason: 'operator', note: null } }
    expect(await viewOf({ ...run, status: 'paused' }, byHand, payloads)).toMatchObject({ unreadable: null })
  })

  it('of a paused run says why and since when, in lists, too; of a drift what was recorded, what was found, and the diff', async () => {
    const entry = { ...ended, kind: 'paused', name: null, data: null } as const
    const drift = {
      reason: 'drift',
      recorded: { seq: 2, kind: 'step-succeeded', name: 'charge' },
      found: [{ kind: 'step', name: 'bill', place: 'order.ts:7:3' }],
      message: 'The code changed:\n- charge\n+ bill',
    } as const
    const { message, ...rest } = drift
    const at = new Date(ended.at)
    const paused = { ...run, status: 'paused' } as const
    for (const show of [viewOf, listedView]) {
      expect((await show(paused, { ...entry, meta: { reason: 'operator', note: 'lunch' } }, payloads)).pause).toEqual({
        reason: 'operator',
        note: 'lunch',
        at,
      })
      expect((await show(paused, { ...entry, meta: drift }, payloads)).pause).toEqual({ ...rest, note: message, at })
    }
    // Of a run that goes on its last pause says nothing any more.
    expect(await viewOf(run, { ...entry, meta: drift }, payloads)).toMatchObject({ pause: null })
  })

  it('of a pause whose note cannot be read shows the reason all the same', async () => {
    const meta = { reason: 'maintenance', note: null } as const
    const entry: Entry = { ...ended, kind: 'paused', name: null, meta, data: 'not JSON' }
    const view = await listedView({ ...run, status: 'paused' }, entry, payloads)
    expect(view.pause).toMatchObject({ reason: 'maintenance', note: null })
  })
})

function place(): Place {
  return payloads.place(run.id, 3, 'succeeded', null)
}
