// Projections by the command line: how far they are, and what an operator does with one.

import { describe, expect, it } from 'vitest'
import { subscription } from '../../src/index.ts'
import { shop } from './seed.ts'
import { greet, tally } from './tally.ts'

async function projected() {
  const { holdfast, run } = await shop({ workflows: [greet, tally] })
  const failing = subscription('notes', {
    from: tally,
    maxAttempts: 1,
    handle: (_event, { seq }) => {
      if (seq > 4) throw new Error('the index is full')
    },
  })
  const running = await holdfast.project(failing, { auto: false })
  const count = (): Promise<unknown> => holdfast.execute(tally, { type: 'Count', tallyId: '42' })
  await count()
  await running.tick()
  return { run, running, count }
}

describe('holdfast projections', () => {
  it('IF-O6 lists them with their lag, and says of a parked one at which event and what to do', async () => {
    const { run, running, count } = await projected()
    await count()
    const behind = await run(['projections', '--json'])
    const [view] = (JSON.parse(behind.stdout) as { readonly projections: readonly object[] }).projections
    expect(view).toMatchObject({ name: 'notes', status: 'active', isHeld: true, failure: null, rebuild: null })
    expect((view as { readonly lag: { readonly events: number } }).lag.events).toBeGreaterThan(0)
    await running.tick()
    const parked = await run(['projections', 'notes'])
    expect(parked).toMatchObject({ code: 0 })
    expect(parked.stdout).toContain('NAME')
    expect(parked.stdout).toMatch(/notes +parked/)
    const said = parked.stdout + parked.stderr
    expect(said).toContain('after 1 attempts: the index is full')
    const [, position = ''] = /--skip (\d+)/.exec(said) ?? []
    expect(await run(['projections', 'notes', '--skip', '1'])).toMatchObject({ code: 4 })
    expect(await run(['projections', 'notes', '--skip', position])).toMatchObject({ code: 0 })
    expect((await running.lag()).events).toBeGreaterThanOrEqual(0)
    expect(await running.tick()).not.toBeNull()
  })

  it('pauses and resumes one, and asks for a rebuild and gives it up', async () => {
    const { run, running, count } = await projected()
    const paused = await run(['projections', 'notes', '--pause'])
    expect(paused.stdout).toContain('holdfast projections notes --resume')
    await count()
    expect(await running.tick()).toBeNull()
    await run(['projections', 'notes', '--resume', '--json'])
    expect(JSON.parse((await run(['rebuild', 'notes', '--json'])).stdout)).toEqual({ name: 'notes', rebuild: 'asked' })
    expect((await run(['projections'])).stdout).toContain('0 %')
    expect(await run(['rebuild', 'notes', '--abandon'])).toMatchObject({ code: 0 })
  })

  it('refuses what it cannot do', async () => {
    const { run } = await projected()
    expect(await run(['projections', '--pause'])).toMatchObject({ code: 2 })
    expect(await run(['projections', 'notes', '--pause', '--resume'])).toMatchObject({ code: 2 })
    const unknown = await run(['projections', 'note', '--pause'])
    expect(unknown).toMatchObject({ code: 3 })
    expect(unknown.stderr).toContain('Did you mean "notes"?')
    const unseen = await run(['projections', 'note'])
    expect(unseen).toMatchObject({ code: 3, stdout: '' })
    expect(unseen.stderr).toContain('Did you mean "notes"?')
  })
})
