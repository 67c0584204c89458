// Workflows that are written as they should be pass crashEverywhere, whatever they are made of, after as many trials as there
// are places to die at and orders to finish in.

import assert from 'node:assert/strict'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { fatal, topic, workflow } from '../../src/index.ts'
import { openSqliteStore } from '../../src/stores/sqlite/index.ts'
import { crashEverywhere } from '../../src/testing/index.ts'

/** A service that does its work once for each key, and remembers what it did. */
class Ledger {
  readonly done = new Map<string, string>()

  async book(key: string, what: string): Promise<string> {
    this.done.set(key, what)
    return what
  }

  get all(): readonly string[] {
    return [...this.done.values()].toSorted()
  }
}

let ledger = new Ledger()
const services = (): { ledger: Ledger } => ({ ledger: (ledger = new Ledger()) })

describe('what passes', () => {
  it('steps, one after the other: two deaths for each commit, a replay, and a death after every commit', async () => {
    const steps = workflow('steps', {}, async (ctx, what: string) => {
      const first = await ctx.step('first', ({ idempotencyKey }) => ledger.book(idempotencyKey, `${what} 1`))
      const second = await ctx.step('second', ({ idempotencyKey }) => ledger.book(idempotencyKey, `${what} 2`))
      return [first, second]
    })
    const seen: string[] = []
    const report = await crashEverywhere(steps, 'book', {
      services,
      check: ({ services: world, status, output, attempts, story }) => {
        seen.push(story)
        assert.equal(status, 'succeeded')
        assert.deepEqual(world.ledger.all, output)
        assert.ok(attempts.length >= 2)
      },
    })
    expect(report).toEqual({ trials: 8, boundaries: 2, orders: 1, cut: null, withoutKey: [] })
    expect(seen).toContain(
      'the process died after step "first" had run and before its result was recorded, at commit 1 of 2',
    )
    expect(seen).toContain('the process died after every single commit')
    expect(new Set(seen).size).toBe(7)
  })

  it('a child that is refused, and a body that goes on without it', async () => {
    const strict = workflow('strict', { input: z.object({ amount: z.number() }) }, async (_ctx, { amount }) => amount)
    const parent = workflow('parent', {}, async (ctx) => {
      const before = await ctx.step('before', ({ idempotencyKey }) => ledger.book(idempotencyKey, 'before'))
      const child = await ctx.child(strict, { amount: 'much' } as never).then(String, () => 'refused')
      const after = await ctx.step('after', ({ idempotencyKey }) => ledger.book(idempotencyKey, 'after'))
      await ctx.sleep('1h')
      return [before, child, after]
    })
    const report = await crashEverywhere(parent, undefined, { services, workflows: [strict] })
    expect(report.boundaries).toBeGreaterThan(2)
  })

  it('parallel steps in all their orders, each with every crash', async () => {
    const parallel = workflow('parallel', {}, async (ctx, names: readonly string[]) => {
      const booked = await Promise.all(
        names.map((name) => ctx.step(name, ({ idempotencyKey }) => ledger.book(idempotencyKey, name))),
      )
      return ctx.step('sum', () => booked.join())
    })
    const ends = new Set<string>()
    const report = await crashEverywhere(parallel, ['a', 'b', 'c'], {
      services,
      check: ({ services: world, output }) => {
        ends.add(output ?? '')
        assert.deepEqual(world.ledger.all, ['a', 'b', 'c'])
      },
    })
    expect(report).toMatchObject({ orders: 6, cut: null, withoutKey: ['sum'] })
    expect(report.trials).toBe(4 + 5 + 6 * 2 * report.boundaries)
    expect([...ends]).toEqual(['a,b,c'])
  })

  it('signals, races, time, topics and tokens', async () => {
    const news = topic<string>('news')
    const waits = workflow('waits', {}, async (ctx) => {
      const approved = await ctx.race({ ok: ctx.receive<string>('approved'), late: ctx.sleep('2 days') })
      const late = await ctx.race({ ok: ctx.receive('never'), late: ctx.sleep('2 days') })
      const heard = await ctx.receive(news)
      const token = ctx.token<number>()
      await ctx.step('ask', ({ idempotencyKey }) => ledger.book(idempotencyKey, token.token))
      return [approved.value, late.tag, heard, await token]
    })
    const report = await crashEverywhere(waits, undefined, {
      services,
      async during(t, run) {
        await run.signal('approved', 'Ada')
        await t.advance('2 days')
        await t.drain()
        await t.broadcast(news, 'hear, hear')
        await t.drain()
        await t.complete(ledger.all[0] ?? '', 42)
      },
      check: ({ output }) => assert.deepEqual(output, ['Ada', 'late', 'hear, hear', 42]),
    })
    expect(report.boundaries).toBeGreaterThan(4)
    expect(report.trials).toBe(4 + 2 * report.boundaries)
  })

  it('children', async () => {
    const ship = workflow('ship', {}, async (ctx, what: string) =>
      ctx.step('send', ({ idempotencyKey }) => ledger.book(idempotencyKey, what)),
    )
    const order = workflow('order', {}, async (ctx, parcels: readonly string[]) =>
      ctx.all(parcels.map((parcel) => ctx.child(ship, parcel))),
    )
    const report = await crashEverywhere(order, ['one', 'two'], {
      services,
      workflows: [ship],
      check: ({ services: world }) => assert.deepEqual(world.ledger.all, ['one', 'two']),
    })
    expect(report.boundaries).toBeGreaterThanOrEqual(3)
    expect(report.orders).toBeGreaterThanOrEqual(2)
  })

  it('a run that fails and undoes what it did, last first', async () => {
    const undone: string[] = []
    const trip = workflow('trip', {}, async (ctx) => {
      for (const what of ['flight', 'hotel']) {
        await ctx.step(what, ({ idempotencyKey }) => ledger.book(idempotencyKey, what), {
          undo: (booked, { idempotencyKey }) => {
            if (!ledger.done.has(idempotencyKey)) undone.push(String(booked))
            return ledger.book(idempotencyKey, `no ${booked}`)
          },
        })
      }
      throw fatal(new Error('No car left'))
    })
    const report = await crashEverywhere(trip, undefined, {
      ends: 'failed',
      services: () => {
        undone.splice(0)
        return services()
      },
      check: ({ error }) => {
        assert.deepEqual(undone, ['hotel', 'flight'])
        assert.equal((error as Error).message, 'No car left')
      },
    })
    expect(report.boundaries).toBeGreaterThanOrEqual(4)
  })

  it('a run that begins anew: each time its steps have keys of their own', async () => {
    const rounds = workflow('rounds', {}, async (ctx, left: number): Promise<string> => {
      await ctx.step('round', ({ idempotencyKey }) => ledger.book(idempotencyKey, `round ${left}`))
      return left === 1 ? 'done' : ctx.continueAsNew(left - 1)
    })
    await crashEverywhere(rounds, 3, {
      services,
      check: ({ services: world }) => assert.deepEqual(world.ledger.all, ['round 1', 'round 2', 'round 3']),
    })
  })

  it('a run that begins anew beside steps: each of them takes place before', async () => {
    const rounds = workflow(
      'rounds.beside',
      { retry: { initial: '1 min' } },
      async (ctx, left: number): Promise<string> => {
        if (left === 0) return 'done'
        await Promise.all([
          ctx.step('plain', ({ idempotencyKey }) => ledger.book(idempotencyKey, `plain ${left}`)),
          ctx.step('flaky', ({ attempt, idempotencyKey }) => {
            if (attempt < 2) throw new Error('Not yet')
            return ledger.book(idempotencyKey, `flaky ${left}`)
          }),
          ctx.step('undoable', ({ idempotencyKey }) => ledger.book(idempotencyKey, `undoable ${left}`), {
            undo: () => undefined,
          }),
          ctx.continueAsNew(left - 1),
        ])
        return 'not reached'
      },
    )
    await crashEverywhere(rounds, 2, {
      services,
      check: ({ services: world, output }) => {
        assert.equal(output, 'done')
        const expected = ['flaky 1', 'flaky 2', 'plain 1', 'plain 2', 'undoable 1', 'undoable 2']
        assert.deepEqual(world.ledger.all, expected)
      },
    })
  })

  it('attempts that fail, and are tried again', async () => {
    const flaky = workflow('flaky', { retry: { initial: '1 min' } }, async (ctx) =>
      ctx.step('call', ({ attempt, idempotencyKey }) => {
        if (attempt < 3) throw new Error('Not yet')
        return ledger.book(idempotencyKey, 'call')
      }),
    )
    const report = await crashEverywhere(flaky, undefined, { services })
    expect(report.boundaries).toBeGreaterThanOrEqual(3)
  })

  it('transactions: what they wrote is there exactly once, though no key is looked at', async () => {
    const transfer = workflow('transfer', {}, async (ctx, amount: number) => {
      await ctx.transaction('debit', (tx) => {
        ;(tx as { exec(sql: string): void }).exec(`insert into moves values (${-amount})`)
      })
      await ctx.transaction('credit', (tx) => {
        ;(tx as { exec(sql: string): void }).exec(`insert into moves values (${amount})`)
      })
    })
    const { default: Database } = await import('libsql')
    let db = new Database(':memory:')
    const report = await crashEverywhere(transfer, 5, {
      store(clock) {
        db = new Database(':memory:')
        db.exec('create table moves (amount integer)')
        return openSqliteStore({ handle: db, clock })
      },
      check: () => {
        const moves = db.prepare('select amount from moves order by amount').all() as { amount: number }[]
        assert.deepEqual(
          moves.map(({ amount }) => amount),
          [-5, 5],
        )
      },
    })
    expect(report).toMatchObject({ boundaries: 3, withoutKey: ['credit', 'debit'] })
  })
})

describe('the report', () => {
  const many = workflow('many', {}, async (ctx) =>
    Promise.all(['a', 'b', 'c', 'd', 'e', 'f'].map((name) => ctx.step(name, () => name))),
  )

  it('says what was left out', async () => {
    const report = await crashEverywhere(many, undefined, { most: 40 })
    expect(report.trials).toBe(40)
    expect(report.cut).toMatch(
      /^Stopped after 40 trials: parallel steps can finish in more orders than the \d+ that were tried, and \d+ crashes were not tried\. Raise `most` to try more\.$/,
    )
  })

  it('one trial alone can be repeated', async () => {
    const stories: string[] = []
    const report = await crashEverywhere(many, undefined, {
      only: { crash: { commit: 2, when: 'after' }, order: [1] },
      check: ({ story }) => void stories.push(story),
    })
    expect(report.trials).toBe(2)
    expect(stories[1]).toBe(
      'steps finished in the order "b", "a", "c", "d", "e", "f", and the process died right after it was recorded ' +
        'that step "a" had succeeded, at commit 2 of 6',
    )
  })

  it('an option that does not exist, or makes no sense, is refused', async () => {
    await expect(crashEverywhere(many, undefined, { chek: 1 } as never)).rejects.toThrow(/Did you mean "check"/)
    await expect(crashEverywhere(many, undefined, { most: 0 })).rejects.toMatchObject({ code: 'INVALID_OPTION' })
    await expect(crashEverywhere(many, undefined, { only: { crash: 'once' as never } })).rejects.toThrow(/every-commit/)
  })
})
