// A run as a file, and the file as a test: whatever codec and offload a run was recorded with, its export is replayed without
// them. Code that changed is reported with the difference.

import { randomBytes } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import {
  createMemoryStore,
  jsonCodec,
  workflow,
  type ExportedRun,
  type HoldfastError,
  type HoldfastOptions,
} from 'holdfast'
import { encryptingCodec } from 'holdfast/encryption'
import { replay } from 'holdfast/testing'
import { openWorking } from './open.ts'
import { recordedRuns, type Recorded } from './recorded-runs.ts'
import { virtualWorld } from './virtual-world.ts'

class Declined extends Error {
  override readonly name = 'Declined'
}

/** Encrypts everything and keeps next to nothing in the journal. */
function sealed(errors: readonly (typeof Declined)[] = []) {
  const kept = new Map<string, string>()
  const codec = encryptingCodec({ keys: { k1: randomBytes(32) }, current: 'k1', codec: jsonCodec({ errors }) })
  const offload = {
    thresholdBytes: 60,
    put: async (text: string) => {
      const reference = String(kept.size)
      kept.set(reference, text)
      return reference
    },
    get: async (reference: string) => kept.get(reference) ?? '',
  }
  return { codec, offload } satisfies Partial<HoldfastOptions>
}

/** As it is read from a file. */
const fromFile = (exported: ExportedRun): ExportedRun => JSON.parse(JSON.stringify(exported)) as ExportedRun

async function recordSealed({ workflow: one, others = [], options = {}, meanwhile }: Recorded): Promise<ExportedRun> {
  const world = virtualWorld()
  const holdfast = await world.open({ workflows: [one, ...others], ...sealed() })
  await holdfast.work({ cachedRuns: 0 })
  const run = await holdfast.start(one, undefined, options)
  await world.clock.advance('1 ms')
  await meanwhile?.(holdfast, run, world)
  await world.after(run.result().catch(() => undefined))
  return fromFile(await holdfast.export(run))
}

const errorOf = (promise: Promise<unknown>): Promise<HoldfastError> =>
  promise.then(
    () => Promise.reject(new Error('It was expected to be refused')),
    (error: unknown) => error as HoldfastError,
  )

describe('an exported run', () => {
  it.each(Object.entries(recordedRuns))(
    'is replayed without the codec and the offload that wrote it: %s',
    async (_, recorded) => {
      const exported = await recordSealed(recorded)
      expect(JSON.stringify(exported)).not.toMatch(/enc1\.|offload:/)
      await replay(recorded.workflow, exported)
    },
  )

  it('holds the values themselves, from the first entry on', async () => {
    const holdfast = await openWorking([greet], sealed())
    const run = await holdfast.start(greet, { name: 'Ada', at: new Date(0) })
    await run.result()
    const { format, run: row, entries } = await holdfast.export(run)
    expect({ format, id: row.id, type: row.type, status: row.status }).toEqual({
      format: 1,
      id: run.id,
      type: 'greet',
      status: 'succeeded',
    })
    expect(entries.map(({ kind, data }) => [kind, data])).toEqual([
      ['started', '{"name":"Ada","at":{"$date":"1970-01-01T00:00:00.000Z"}}'],
      ['step-succeeded', '"Hello, Ada"'],
      ['succeeded', '{"greeting":"Hello, Ada"}'],
    ])
  })

  it('has no secret of a completion token wherever the run has left it, cannot complete it, and is replayed all the same', async () => {
    const approving = workflow('approving', async (ctx) => {
      const approval = ctx.token<string>()
      const asked = await ctx.step('ask', () => ({ mail: [`https://shop.example/approve?token=${approval.token}`] }))
      ctx.expose('token', approval.token)
      ctx.log('asked', { token: approval.token })
      await ctx.step(approval.token.slice(0, 199), () => 1)
      return [await approval, approval.token, asked]
    })
    const holdfast = await openWorking([approving])
    const run = await holdfast.start(approving, undefined, { key: 'k', tags: ['t'] })
    await expect.poll(async () => (await holdfast.get(run)).status).toBe('waiting')
    const token = String(await holdfast.query(run, 'token'))
    const heir = await holdfast.start('approving', { token }, { tags: [token], metadata: { token }, delay: '1 day' })
    for (const one of [run, heir]) {
      const text = JSON.stringify(await holdfast.export(one))
      expect(text).not.toContain(token)
      const words = text.match(/[\w-]{106,}/g) ?? []
      expect(words.length).toBeGreaterThan(2)
      for (const word of words) expect(await holdfast.complete(word, 'mine')).toEqual({ outcome: 'invalid-token' })
    }
    await replay(approving, fromFile(await holdfast.export(run)))
    expect(await holdfast.complete(token, 'yes')).toMatchObject({ outcome: 'delivered' })
    await run.result()
    const ended = fromFile(await holdfast.export(run))
    expect(JSON.stringify(ended)).not.toContain(token)
    await replay(approving, ended)
    expect(await holdfast.replay(ended)).toEqual({ outcome: 'same' })
  })

  it('is refused if a payload of it cannot be read, and so is a run that is not there', async () => {
    const { codec } = sealed()
    const store = createMemoryStore()
    const holdfast = await openWorking([greet], { store, codec })
    const run = await holdfast.start(greet, { name: 'Ada', at: new Date(0) })
    await run.result()
    const stranger = await openWorking([], { store })
    expect((await errorOf(stranger.export(run))).code).toBe('PAYLOAD_CORRUPT')
    expect((await errorOf(holdfast.export('01890a5d-ac96-774b-bcce-b302099a8057'))).code).toBe('RUN_NOT_FOUND')
  })
})

const greet = workflow('greet', async (ctx, input: { readonly name: string; readonly at: Date }) => {
  const greeting = await ctx.step('greet', () => `Hello, ${input.name}`)
  return { greeting }
})

async function recordedGreeting(): Promise<ExportedRun> {
  const holdfast = await openWorking([greet])
  const run = await holdfast.start(greet, { name: 'Ada', at: new Date(0) })
  await run.result()
  return fromFile(await holdfast.export(run))
}

describe('replay()', () => {
  it('resolves for the code that recorded it, and hands services on', async () => {
    const exported = await recordedGreeting()
    await replay(greet, exported)
    const served = workflow('greet', async (ctx) => {
      const { suffix } = ctx.services as { readonly suffix: string }
      return { greeting: (await ctx.step('greet', () => 'never')) + suffix }
    })
    await replay(served, exported, { services: { suffix: '' } })
    const error = await errorOf(replay(served, exported, { services: { suffix: '!' } }))
    expect([error.code, error.message]).toEqual([
      'DRIFT',
      expect.stringContaining('it returned {"greeting":"Hello, Ada"}. Now: it returned {"greeting":"Hello, Ada!"}'),
    ])
  })

  it('rejects with the difference, and says where in the code it is', async () => {
    const renamed = workflow('greet', (ctx) => ctx.step('welcome', () => 'Hi'))
    const error = await errorOf(replay(renamed, await recordedGreeting()))
    expect(error.code).toBe('DRIFT')
    expect(error.message).toMatch(
      /- entry 2 .*"greet"\n\+ the code asks for: step "welcome", at .*exporting\.test\.ts:/,
    )
  })

  it('rejects if the code throws where it did not', async () => {
    const { run, entries } = await recordedGreeting()
    const live: ExportedRun = { format: 1, run: { ...run, status: 'running', seq: 2 }, entries: entries.slice(0, 2) }
    const broken = workflow('greet', async (ctx) => {
      await ctx.step('greet', () => 'Hi')
      throw new RangeError('Too polite')
    })
    const error = await errorOf(replay(broken, live))
    expect([error.code, error.cause]).toEqual(['DRIFT', expect.objectContaining({ message: 'Too polite' })])
    expect(error.message).toContain('throws where it did not')
  })

  it('knows the classes of errors that it is given', async () => {
    const pay = workflow('pay', async (ctx) => {
      try {
        return await ctx.step('charge', () => Promise.reject(new Declined('No')), { retry: 'none' })
      } catch (error) {
        return error instanceof Declined ? 'declined' : ctx.step('ask', () => 'why')
      }
    })
    const holdfast = await openWorking([pay], sealed([Declined]))
    const run = await holdfast.start(pay)
    expect(await run.result()).toBe('declined')
    const exported = fromFile(await holdfast.export(run))
    await replay(pay, exported, { errors: [Declined] })
    expect((await errorOf(replay(pay, exported))).message).toContain('it asks for more')
  })

  it('refuses another workflow or version, and what is no export, and says what to do', async () => {
    const exported = await recordedGreeting()
    const other = workflow('other', () => 1)
    expect((await errorOf(replay(other, exported))).message).toContain('of "greet" version 1, the workflow is "other"')
    const next = workflow('greet', { version: 2 }, () => 1)
    expect((await errorOf(replay(next, exported))).message).toContain('pass that one to replay()')
    const { run, entries } = exported
    const wrong: readonly (readonly [unknown, string])[] = [
      ['text', 'Got "text"'],
      [null, 'Got null'],
      [[], 'It has no format'],
      [{ ...exported, format: 2 }, 'a newer Holdfast wrote it'],
      [{ format: 1, entries }, 'Its `run` is incomplete'],
      [{ format: 1, run: { ...run, version: '1' }, entries }, 'Its `run` is incomplete'],
      [{ format: 1, run: { ...run, id: '\u001B]52;c;x\u0007' }, entries }, 'Its `run` is incomplete'],
      [{ format: 1, run: { ...run, type: 'a\nb' }, entries }, 'Its `run` is incomplete'],
      [{ format: 1, run, entries: [{ ...entries[0], name: '\u001B[2J' }] }, 'Entry 1 is incomplete'],
      [{ format: 1, run, entries: [entries[0], { ...entries[1], kind: 'toString' }] }, 'Entry 2 is incomplete'],
      [{ format: 1, run, entries: [entries[0], { ...entries[1], meta: [] }] }, 'Entry 2 is incomplete'],
      [{ format: 1, run, entries: [] }, 'It has no `entries`'],
      [{ format: 1, run, entries: entries.slice(1) }, 'Entry 1 is incomplete'],
      [
        { format: 1, run, entries: [entries[0], entries[2]] },
        'Entry 2 is incomplete, or an entry before it is missing',
      ],
      [{ format: 1, run, entries: [null] }, 'Entry 1 is incomplete'],
      [{ format: 1, run, entries: [{ ...entries[0], data: 7 }] }, 'Entry 1 is incomplete'],
    ]
    for (const [value, expected] of wrong) {
      const error = await errorOf(replay(greet, value as ExportedRun))
      expect([error.code, error.message]).toEqual(['INVALID_OPTION', expect.stringContaining(expected)])
      expect(error.message).toContain('holdfast export <run>')
    }
    const misspelt = { service: {} } as object
    expect((await errorOf(replay(greet, exported, misspelt))).message).toContain('services')
  })
})

describe('holdfast.replay()', () => {
  it('replays a run of the store, with its codec, and an exported one', async () => {
    const holdfast = await openWorking([greet], sealed())
    const run = await holdfast.start(greet, { name: 'Ada', at: new Date(0) })
    await run.result()
    expect(await holdfast.replay(run)).toEqual({ outcome: 'same' })
    expect(await holdfast.replay(run.id)).toEqual({ outcome: 'same' })
    const exported = fromFile(await holdfast.export(run))
    expect(await holdfast.replay(exported)).toEqual({ outcome: 'same' })
    const anywhere = await openWorking([greet])
    expect(await anywhere.replay(exported)).toEqual({ outcome: 'same' })
    const strange = { ...exported, format: 9 } as unknown as ExportedRun
    expect((await errorOf(anywhere.replay(strange))).code).toBe('INVALID_OPTION')
    const nobody = await openWorking([])
    expect((await errorOf(nobody.replay(exported))).code).toBe('WORKFLOW_UNKNOWN')
  })

  it('reads long journals by pages, and only what the run is now', async () => {
    const steps = 1_200
    const long = workflow('long', async (ctx, round: number) => {
      for (let at = 0; at < steps; at += 1) ctx.progress(at / steps)
      await ctx.step('round', () => round)
      if (round === 1) await ctx.continueAsNew(2)
      await ctx.receive('end')
    })
    const holdfast = await openWorking([long])
    const run = await holdfast.start(long, 1)
    await expect.poll(async () => (await holdfast.get(run)).status).toBe('waiting')
    expect(await holdfast.replay(run)).toEqual({ outcome: 'same' })
    const exported = fromFile(await holdfast.export(run))
    expect(exported.entries.map(({ seq }) => seq)).toEqual(Array.from({ length: 2 * steps + 5 }, (_, at) => at + 1))
    await replay(long, exported)
  })
})
