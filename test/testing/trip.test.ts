// A trip whose flight is being booked while its hotel fails. Wherever the process dies, and in whichever order the two end, the
// flight is never left booked.

import assert from 'node:assert/strict'
import { describe, expect, it } from 'vitest'
import { fatal, workflow, type StepTools } from '../../src/index.ts'
import { crashEverywhere } from '../../src/testing/index.ts'

/** An airline that books once for each key. It takes back a booking by its id or, from those who never got one, by the key. */
class Airline {
  private readonly keys = new Map<string, string>()
  private readonly cancelled = new Set<string>()
  booked = 0

  async book(key: string): Promise<{ readonly id: string }> {
    if (!this.keys.has(key)) this.booked += 1
    const id = this.keys.get(key) ?? `flight ${this.keys.size + 1}`
    this.keys.set(key, id)
    return { id }
  }

  async cancel(id: string): Promise<void> {
    assert.ok([...this.keys.values()].includes(id), `${id} was never booked`)
    this.cancelled.add(id)
  }

  async cancelByKey(key: string): Promise<void> {
    const id = this.keys.get(key)
    if (id !== undefined) this.cancelled.add(id)
  }

  get left(): readonly string[] {
    return [...this.keys.values()].filter((id) => !this.cancelled.has(id))
  }
}

let airline = new Airline()
const services = (): { airline: Airline } => ({ airline: (airline = new Airline()) })

/** The key of the step, as its undo knows it. */
const keyOf = ({ idempotencyKey }: StepTools): string => idempotencyKey.replace(/:undo$/, '')

const takeBack = (flight: { readonly id: string } | undefined, step: StepTools): Promise<void> =>
  flight === undefined ? airline.cancelByKey(keyOf(step)) : airline.cancel(flight.id)

describe('a trip whose hotel fails', () => {
  it('never leaves its flight booked, wherever the process dies', async () => {
    const trip = workflow('trip', {}, async (ctx) => {
      await Promise.all([
        ctx.step('flight', (step) => airline.book(step.idempotencyKey), {
          undo: (flight, step) => takeBack(flight, step),
        }),
        ctx.step('hotel', () => Promise.reject(fatal(new Error('No room')))),
      ])
    })
    let booked = 0
    const report = await crashEverywhere(trip, undefined, {
      ends: 'failed',
      services,
      check: ({ services: world, error, story }) => {
        booked += world.airline.booked
        assert.equal((error as Error).message, 'No room')
        assert.deepEqual(world.airline.left, [], story)
      },
    })
    expect(report).toMatchObject({ orders: 2, cut: null })
    expect(booked).toBeGreaterThan(0)
  })

  it('nor if its body caught the failure and something else fails', async () => {
    const trip = workflow('trip', { retry: 'none' }, async (ctx) => {
      const flight = ctx.step('flight', (step) => airline.book(step.idempotencyKey), {
        undo: (flight, step) => takeBack(flight, step),
      })
      const hotel = await ctx.step('hotel', () => Promise.reject(fatal(new Error('No room')))).catch(() => 'none')
      await ctx.step('notify', () => hotel)
      await ctx.step('car', () => Promise.reject(fatal(new Error('No car'))))
      await flight
    })
    const report = await crashEverywhere(trip, undefined, {
      ends: 'failed',
      services,
      check: ({ services: world, error, story }) => {
        assert.equal((error as Error).message, 'No car')
        assert.deepEqual(world.airline.left, [], story)
      },
    })
    expect(report.cut).toBe(null)
  })
})

describe('a trip that is cancelled as soon as its flight is booked', () => {
  it('never leaves it booked, wherever the process dies, though nothing else is under way', async () => {
    let cancel = (): unknown => undefined
    const seen: string[] = []
    const trip = workflow('trip', {}, async (ctx) => {
      await ctx.step(
        'flight',
        async (step) => {
          const flight = await airline.book(step.idempotencyKey)
          await cancel()
          return flight
        },
        { undo: (flight, step) => takeBack(flight, step) },
      )
    })
    let booked = 0
    const report = await crashEverywhere(trip, undefined, {
      ends: 'cancelled',
      services,
      during: (t, run) => void (cancel = () => t.holdfast.cancel(run)),
      check: ({ services: world, story }) => {
        seen.push(story)
        booked += world.airline.booked
        assert.deepEqual(world.airline.left, [], story)
      },
    })
    expect(report.boundaries).toBeGreaterThanOrEqual(3)
    const place = `at commit 1 of ${report.boundaries}`
    expect(seen).toContain(
      `the process died right after it was recorded that step "flight" was about to begin, ${place}`,
    )
    expect(booked).toBeGreaterThan(0)
  })
})
