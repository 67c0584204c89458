// Replays that nothing comes of: the journals of runs of every kind, whole and cut short after every commit, agree with the
// code that wrote them, and nothing is done meanwhile. Code that changed is told apart, in each way in which it can differ.

import { describe, expect, it } from 'vitest'
import { jsonCodec, workflow, type Context, type Workflow } from 'holdfast'
import { createSeededRandom } from 'holdfast/testing'
import type { Definition } from '../../src/core/definition/definition.ts'
import type { Entry } from '../../src/core/model/entry.ts'
import { Payloads } from '../../src/core/payload/payload.ts'
import type { Run } from '../../src/core/model/run.ts'
import { replayRun, type ReplayResult } from '../../src/engine/replay/replay-run.ts'
import { systemPorts } from '../../src/system.ts'
import { keepLines } from './open.ts'
import { effects, recordedRuns, type Recorded } from './recorded-runs.ts'
import { virtualWorld, type VirtualWorld } from './virtual-world.ts'

interface Journal {
  readonly run: Run
  readonly entries: readonly Entry[]
}

async function journalOf({ store }: Pick<VirtualWorld, 'store'>, id: string): Promise<Journal> {
  const [run] = await store.get([id])
  const [loaded] = await store.load([{ runId: id, after: 0, limit: 10_000 }])
  if (run === undefined || loaded === undefined) throw new Error('There is no such run')
  return { run, entries: loaded.entries }
}

async function record(world: VirtualWorld, recorded: Recorded): Promise<Journal> {
  const { workflow: one, others = [], options = {}, meanwhile } = recorded
  const holdfast = await world.open({ workflows: [one, ...others] })
  await holdfast.work({ cachedRuns: 0 })
  const run = await holdfast.start(one, undefined, options)
  await world.clock.advance('1 ms')
  await meanwhile?.(holdfast, run, world)
  await world.after(run.result().catch(() => undefined))
  return journalOf(world, run.id)
}

function replayed(
  world: VirtualWorld,
  one: Definition,
  journal: Journal,
  payloads = new Payloads(jsonCodec()),
): Promise<ReplayResult> {
  const ports = { ...systemPorts(keepLines()), clock: world.clock, random: createSeededRandom(1) }
  const lent = { ports, payloads, services: undefined }
  return world.after(replayRun(one, journal.run, journal.entries, lent))
}

/** The journal as it stood after each of its commits. */
function prefixes({ run, entries }: Journal): readonly Journal[] {
  const ends = entries.flatMap(({ seq, transition }) => (transition === null || seq === 1 ? [] : [seq - 1]))
  return [...ends, entries.length].map((seq) => ({ run: { ...run, seq }, entries: entries.slice(0, seq) }))
}

/** Every kind of entry that a function writes. */
const kindsOfFunctions: readonly string[] = (
  'amended attempt-failed begun broadcast-sent cancelled cancelling continued exposed failed ' +
  'failing issued logged patched paused progressed recorded replied resumed retried ' +
  'signal-sent started step-failed step-succeeded succeeded undo-attempt-failed undo-failed undone waiting woken'
).split(' ')

const seen = new Map<string, readonly Entry[]>()

describe('a journal and the code that wrote it', () => {
  it.each(Object.entries(recordedRuns))('agree after each commit: %s', async (name, recorded) => {
    const world = virtualWorld()
    const journal = await record(world, recorded)
    seen.set(name, journal.entries)
    const done = effects.length
    for (const prefix of prefixes(journal)) {
      const last = prefix.entries.at(-1)
      const found = await replayed(world, recorded.workflow, prefix)
      expect({ last, found }).toEqual({ last, found: { outcome: 'same' } })
    }
    expect(effects).toHaveLength(done)
  })

  it('have shown every kind of entry', async () => {
    for (const [name, recorded] of Object.entries(recordedRuns)) {
      if (!seen.has(name)) seen.set(name, (await record(virtualWorld(), recorded)).entries)
    }
    const kinds = new Set([...seen.values()].flat().map(({ kind }) => kind))
    expect([...kinds].sort()).toEqual(kindsOfFunctions)
  })
})

type Body = (ctx: Context) => unknown

const order = (body: Body): Workflow<void, unknown> => workflow('order', { retry: 'none' }, body)

const before: Body = async (ctx) => {
  const shelf = await ctx.step('reserve', () => 'shelf 3')
  const paid = await ctx.step('charge', () => 10)
  await ctx.sleep('1 h')
  return [shelf, paid]
}

/** What other code makes of a run of `before` that sleeps, or that has ended. */
async function deployed(
  after: Body,
  state: 'asleep' | 'ended' = 'asleep',
  world: VirtualWorld = virtualWorld(),
): Promise<ReplayResult> {
  const journal = await record(world, { workflow: order(before) })
  const asleep = journal.entries.slice(0, 4)
  const entries = state === 'asleep' ? asleep : journal.entries
  return replayed(world, order(after), { run: { ...journal.run, seq: entries.length }, entries })
}

describe('code that changed', () => {
  it('a step of another name is reported with what was recorded, what is asked for, and where', async () => {
    const found = await deployed(async (ctx) => {
      await ctx.step('reserve', () => 0)
      await ctx.step('pay', () => 0)
    })
    expect(found).toMatchObject({
      outcome: 'drift',
      drift: {
        recorded: { seq: 3, kind: 'step-succeeded', name: 'charge' },
        found: [{ kind: 'step', name: 'pay', place: expect.stringMatching(/replaying\.test\.ts:\d+:\d+$/) as string }],
      },
    })
  })

  const reserveOnly: Body = (ctx) => ctx.step('reserve', () => 0)
  const another: Body = async (ctx) => {
    await ctx.step('greet', () => 0)
    await before(ctx)
  }
  const signalled: Body = async (ctx) => {
    await ctx.step('reserve', () => 0)
    await ctx.step('charge', () => 0)
    await ctx.race({ sleep: ctx.receive('news') })
  }
  const anew: Body = (ctx) => ctx.continueAsNew(undefined)
  it.each([
    ['ends without what was recorded', reserveOnly, 'charge'],
    ['begins with another step', another, 'reserve'],
    ['begins anew', anew, 'reserve'],
  ])('that %s drifts', async (_, body, name) => {
    expect(await deployed(body)).toMatchObject({ outcome: 'drift', drift: { recorded: { name } } })
  })

  it('that waits on something else under the same name drifts', async () => {
    const world = virtualWorld()
    const raced = order(async (ctx) => ctx.race({ expected: ctx.receive('news'), due: ctx.sleep('1 h') }))
    const journal = await record(world, { workflow: raced })
    const entries = journal.entries.slice(0, 2)
    const now = order(async (ctx) => ctx.race({ expected: ctx.receive('called'), due: ctx.sleep('1 h') }))
    const found = await replayed(world, now, { run: { ...journal.run, seq: 2 }, entries })
    expect(found).toMatchObject({ outcome: 'drift', drift: { recorded: { kind: 'waiting', name: 'race' } } })
    const later = order(async (ctx) => ctx.race({ expected: ctx.receive('news'), due: ctx.sleep('2 h') }))
    expect(await replayed(world, later, { run: { ...journal.run, seq: 2 }, entries })).toEqual({ outcome: 'same' })
    expect(await deployed(signalled)).toEqual({ outcome: 'same' })
  })

  it('that throws where the run waits is reported, also before it has begun', async () => {
    const thrower: Body = async (ctx) => {
      await ctx.step('reserve', () => 0)
      throw new TypeError('No shelf')
    }
    expect(await deployed(thrower)).toMatchObject({ outcome: 'throws', error: { message: 'No shelf' } })
    const world = virtualWorld()
    const { run, entries } = await record(world, { workflow: order(before) })
    const unbegun = { run: { ...run, seq: 1 }, entries: entries.slice(0, 1) }
    expect(
      await replayed(
        world,
        order(() => Promise.reject(new TypeError('No input'))),
        unbegun,
      ),
    ).toMatchObject({
      outcome: 'throws',
      error: { message: 'No input' },
    })
  })

  it('that throws where a step that can be undone was under way is reported at once, and begins nothing', async () => {
    let begun = 0
    const reserving =
      (isBroken: boolean): Body =>
      (ctx) => {
        const reserved = ctx.step('reserve', () => (begun += 1), { undo: () => void (begun += 1) })
        if (isBroken) throw new TypeError('No shelf')
        return reserved
      }
    const world = virtualWorld()
    const { run, entries } = await record(world, { workflow: order(reserving(false)) })
    const underWay = { run: { ...run, seq: 2 }, entries: entries.slice(0, 2) }
    const expected = { outcome: 'throws', error: { message: 'No shelf' } }
    expect(await replayed(world, order(reserving(true)), underWay)).toMatchObject(expected)
    expect(begun).toBe(1)
  })

  it('that goes another way where nothing is recorded yet agrees', async () => {
    const patched: Body = async (ctx) => {
      await ctx.step('reserve', () => 0)
      await ctx.step(ctx.patched('in parts') ? 'pay' : 'charge', () => 0)
      await ctx.sleep('1 h')
      await ctx.step('new', () => 0)
    }
    expect(await deployed(patched)).toEqual({ outcome: 'same' })
  })

  const swapped: Body = async (ctx) => ((await before(ctx)) as unknown[]).toReversed()
  const asks: Body = async (ctx) => {
    await before(ctx)
    await ctx.step('more', () => 0)
  }
  const throwing: Body = async (ctx) => {
    await before(ctx)
    throw new Error('After all')
  }
  const again: Body = async (ctx) => {
    await before(ctx)
    await ctx.continueAsNew(undefined)
  }
  it.each([
    ['returns something else', swapped, { status: 'succeeded', output: [10, 'shelf 3'] }],
    ['asks for more', asks, { status: 'waiting' }],
    ['throws', throwing, { status: 'failed', error: { message: 'After all' } }],
    ['begins anew', again, { status: 'continued' }],
  ])('that %s where the run had ended is reported with both ends', async (_, body, now) => {
    const recorded = { status: 'succeeded', output: ['shelf 3', 10] }
    expect(await deployed(body, 'ended')).toMatchObject({ outcome: 'ends-otherwise', recorded, now })
  })

  it('that succeeds where the body had failed is reported; a time that was over is not the doing of the body', async () => {
    const world = virtualWorld()
    const failed = await record(world, { workflow: order(() => Promise.reject(new Error('No'))) })
    expect(
      await replayed(
        world,
        order(() => 'yes'),
        failed,
      ),
    ).toMatchObject({
      outcome: 'ends-otherwise',
      recorded: { status: 'failed', error: { message: 'No' } },
      now: { status: 'succeeded', output: 'yes' },
    })
    const other = virtualWorld()
    const late = await record(other, { workflow: order((ctx) => ctx.receive('go')), options: { timeout: '1 s' } })
    const waiting = order((ctx) => ctx.receive('go'))
    expect(await replayed(other, waiting, late)).toEqual({ outcome: 'same' })
    expect(
      await replayed(
        other,
        order(() => Promise.reject(new Error('No'))),
        late,
      ),
    ).toMatchObject({
      outcome: 'throws',
    })
  })

  it.each(['hangs', 'is busy for ever'])('that %s outside of steps is given up', async (how) => {
    const world = virtualWorld()
    const restless: Body = async (ctx) => {
      await before(ctx)
      if (how === 'hangs') await new Promise(() => undefined)
      for (;;) {
        ctx.log('still here')
        await world.pause(1_000)
      }
    }
    const found = await deployed(restless, 'ended', world)
    expect(found).toMatchObject({ outcome: 'throws', error: { code: 'DRIFT' } })
    expect((found as { error: Error }).error.message).toMatch(/does not come to rest .*inside a step/)
  })
})

describe('what happened beside the body', () => {
  it('a step whose error is about to end the run is no news of the code; an error of an earlier step is', async () => {
    const world = virtualWorld()
    const risky: Body = async (ctx) => {
      await ctx.step('risky', () => Promise.reject(new Error('No'))).catch(() => undefined)
      await ctx.step('again', () => Promise.reject(new Error('No again')))
    }
    const { run, entries } = await record(world, { workflow: order(risky) })
    const journal = { run: { ...run, seq: 3 }, entries: entries.slice(0, 3) }
    expect(journal.entries.map(({ kind }) => kind)).toEqual(['started', 'step-failed', 'step-failed'])
    expect(await replayed(world, order(risky), journal)).toEqual({ outcome: 'same' })
    const careless: Body = (ctx) => ctx.step('risky', () => 0)
    expect(await replayed(world, order(careless), journal)).toMatchObject({
      outcome: 'throws',
      error: { message: 'No' },
    })
  })

  it('a holder that died changes nothing, also right after the body threw', async () => {
    const world = virtualWorld()
    const thrower = workflow('order', { retry: { maxAttempts: 2 } }, async (ctx) => {
      await ctx.step('reserve', () => 1)
      throw new Error('No')
    })
    const { run, entries } = await record(world, { workflow: thrower })
    const thrown = entries.slice(0, 3)
    expect(thrown.at(-1)?.kind).toBe('attempt-failed')
    const meta = { session: 'dead', crashes: 1 }
    const crashed: Entry = { kind: 'crashed', name: null, meta, data: null, seq: 4, at: 0, transition: null }
    const journal = { run: { ...run, seq: 4 }, entries: [...thrown, crashed] }
    expect(await replayed(world, thrower, journal)).toEqual({ outcome: 'same' })
  })
})

describe('what a replay touches', () => {
  it('leaves no timer behind, whatever it found', async () => {
    const { run, entries } = await record(virtualWorld(), { workflow: order(before) })
    const world = virtualWorld()
    const hang: Body = () => new Promise(() => undefined)
    for (const body of [before, hang, (ctx: Context) => ctx.step('other', () => 0)]) {
      await replayed(world, order(body), { run, entries })
    }
    expect(world.clock.pending).toBe(0)
  })

  it('resources are acquired and released, and of a child no more is done than to look at its input', async () => {
    const world = virtualWorld()
    const journal = await record(world, { workflow: order(before) })
    const unbegun = { run: { ...journal.run, seq: 1 }, entries: journal.entries.slice(0, 1) }
    const log: string[] = []
    const child = workflow('child', { input: { '~standard': { version: 1, vendor: 'test', validate } } }, () => 1)
    function validate(value: unknown): { readonly value: unknown } {
      log.push('looked at')
      return { value }
    }
    const held = order((ctx) =>
      ctx.withResource(
        () => log.push('acquired'),
        () => log.push('released'),
        () => ctx.child(child, 1).then(),
      ),
    )
    expect(await replayed(world, held, unbegun)).toEqual({ outcome: 'same' })
    expect(log).toEqual(['acquired', 'looked at', 'released'])
  })

  it('payloads that lie elsewhere are fetched, and none is put there; one that is gone is reported', async () => {
    const world = virtualWorld()
    const kept = new Map<string, string>()
    const offload = {
      thresholdBytes: 100,
      put: async (text: string) => {
        kept.set(String(kept.size), text)
        return String(kept.size - 1)
      },
      get: async (reference: string) => kept.get(reference) ?? Promise.reject(new Error('Gone')),
    }
    const large = order(async (ctx) => ctx.step('large', () => 'x'.repeat(1000)))
    const holdfast = await world.open({ workflows: [large], offload })
    await holdfast.work()
    const run = await holdfast.start(large)
    await world.after(run.result())
    const journal = await journalOf(world, run.id)
    const puts = kept.size
    expect(puts).toBeGreaterThan(0)
    const payloads = new Payloads(jsonCodec(), offload)
    expect(await replayed(world, large, journal, payloads)).toEqual({ outcome: 'same' })
    expect(kept.size).toBe(puts)
    kept.delete('0')
    expect(await replayed(world, large, journal, payloads)).toMatchObject({
      outcome: 'throws',
      error: { code: 'STORE_UNAVAILABLE' },
    })
  })

  it('a payload that cannot be read is reported as such', async () => {
    const world = virtualWorld()
    const { run, entries } = await record(world, { workflow: order(before) })
    const spoilt = entries.map((entry) => (entry.seq === 3 ? ({ ...entry, data: '?' } as Entry) : entry))
    const found = await replayed(world, order(before), { run, entries: spoilt })
    expect(found).toMatchObject({ outcome: 'throws', error: { code: 'PAYLOAD_CORRUPT' } })
  })
})
