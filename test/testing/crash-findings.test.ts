// Workflows that are wrong are found out, and the error says what to change.

import assert from 'node:assert/strict'
import { describe, expect, it } from 'vitest'
import { workflow, type HoldfastError } from '../../src/index.ts'
import { crashEverywhere } from '../../src/testing/index.ts'
import * as planted from './planted.ts'

async function findingOf(trying: Promise<unknown>): Promise<HoldfastError> {
  const error: unknown = await trying.then(
    () => new Error('It passed'),
    (thrown: unknown) => thrown,
  )
  expect(error).toMatchObject({ code: 'CRASH_UNSAFE', family: 'usage' })
  return error as HoldfastError
}

const services = planted.freshBank
const chargedOnce = ({ services: { bank } }: { services: { bank: planted.Bank } }): void =>
  assert.equal(bank.charges.length, 1)

describe('a step that is not idempotent', () => {
  it('is named, with the crash that shows it and what to change', async () => {
    const found = await findingOf(crashEverywhere(planted.careless, 99, { services, check: chargedOnce }))
    expect(found.message.split('\n')).toEqual([
      'Workflow "careless" does not always end as it should. The check failed.',
      'What happened: the process died after step "charge" had run and before its result was recorded, at commit 2 of 3.',
      expect.stringMatching(/^It says: /) as string,
      expect.anything() as string,
      expect.anything() as string,
      expect.anything() as string,
      'Step "charge" did its work 2 times, because the first result was not recorded. It never read its idempotencyKey.',
      'What to change: a process may die after a step has done its work and before that is recorded, and then the step is run ' +
        'again. For "charge": pass its idempotencyKey to the service that it calls (`({ idempotencyKey }) => bank.charge(…, ' +
        '{ idempotencyKey })`), or make it check before it acts.',
      'To repeat this trial alone: crashEverywhere(…, { only: {"crash":{"commit":2,"when":"before"},"seed":1} })',
    ])
    expect(found.cause).toBeInstanceOf(assert.AssertionError)
    expect(found.details).toMatchObject({
      fault: 'check',
      only: { crash: { commit: 2, when: 'before' }, seed: 1 },
      repeated: [{ step: 'charge', isUndo: false, times: 2, hasReadKey: false }],
    })
  })

  it('fails again when that trial alone is repeated, and no other does', async () => {
    const only = { crash: { commit: 2, when: 'before' } } as const
    const again = await findingOf(crashEverywhere(planted.careless, 99, { services, check: chargedOnce, only }))
    expect(again.details['only']).toEqual({ ...only, seed: 1 })
    const other = { crash: { commit: 2, when: 'after' } } as const
    await crashEverywhere(planted.careless, 99, { services, check: chargedOnce, only: other })
  })

  it('passes without a check, but the report names it', async () => {
    const { withoutKey } = await crashEverywhere(planted.careless, 99, { services })
    expect(withoutKey).toEqual(['charge', 'check-stock'])
  })

  it('that spoils its key is reported', async () => {
    const found = await findingOf(crashEverywhere(planted.wrongKey, 99, { services, check: chargedOnce }))
    expect(found.message).toContain('It read its idempotencyKey.')
    expect(found.message).toContain('the service that it calls ignores it')
  })

  it('is found by the output, too', async () => {
    const found = await findingOf(crashEverywhere(planted.receipts, 99, { services }))
    expect(found.message).toContain('Expected: succeeded 1\nGot:      succeeded 2\n')
    expect(found.message).toContain('For "charge": pass its idempotencyKey')
  })

  it('may be an undo', async () => {
    const check = ({ services: { bank } }: { services: { bank: planted.Bank } }): void =>
      assert.deepEqual(bank.charges, [99, -99])
    const found = await findingOf(crashEverywhere(planted.carelessUndo, 99, { services, check, ends: 'failed' }))
    expect(found.message).toContain('The undo of step "charge" did its work 2 times')
  })

  it('an effect outside of any step is found as well', async () => {
    const found = await findingOf(crashEverywhere(planted.effectInBody, 99, { services, check: chargedOnce }))
    expect(found.details).toMatchObject({ fault: 'check' })
  })
})

describe('a body that does not always go the same way', () => {
  const file = import.meta.filename.replace(/[^/]+$/, 'planted.ts')

  it.each([
    { name: 'chance', planted: planted.randomBranch, reads: 'Math.random()' },
    { name: 'the hour of the day', planted: planted.clockBranch, reads: 'new Date()' },
    { name: 'the time in a name', planted: planted.clockName, reads: 'Date.now()' },
    { name: 'the time in its output', planted: planted.clockOutput, reads: 'Date.now()' },
  ])('because of $name is found before any process dies, with the place', async ({ planted: wrong, reads }) => {
    const found = await findingOf(crashEverywhere(wrong as typeof planted.clockBranch, undefined))
    expect(found.details).toMatchObject({ fault: 'replay', story: 'nothing went wrong, and no process died' })
    expect(found.message).toContain(`The body reads ${reads}, at ${file}:`)
    expect(found.message).toContain('Take random values and time from ctx.random(), ctx.uuid() and ctx.now()')
  })

  it('is shown with what was recorded and what is asked for instead', async () => {
    const found = await findingOf(crashEverywhere(planted.clockName, undefined))
    expect(found.message).toMatch(
      /\n- entry 2 of the journal: step-succeeded "batch-\d+"\n\+ the body asks for: step "batch-\d+", at \S+planted\.ts:\d+:\d+\n/,
    )
  })

  it.each([
    { name: 'a counter', planted: planted.counter },
    { name: 'a cache', planted: planted.cache },
    { name: 'a map that changes', planted: planted.mapOrder },
  ])('because of $name of its module is found', async ({ planted: wrong }) => {
    const found = await findingOf(crashEverywhere(wrong as typeof planted.cache, 'Ada'))
    expect(found.message).toContain('no variable of the module')
  })

  it('the machine has its own clock and chance back afterwards', async () => {
    const [real, chance] = [Date, Math.random]
    await findingOf(crashEverywhere(planted.clockBranch, undefined))
    expect(Date).toBe(real)
    expect(Math.random).toBe(chance)
  })
})

describe('a run that', () => {
  it('waits for what no code sends learns what to send', async () => {
    const approval = workflow('approval', {}, async (ctx) => ctx.receive('approved'))
    const found = await findingOf(crashEverywhere(approval, undefined))
    expect(found.message).toContain('A run of "approval" is waiting, and waits for signal "approved".')
    expect(found.message).toContain("during: async (t, run) => { await t.drain(); await run.signal('approved', …) }")
  })

  it('has a step that never returns is refused', async () => {
    const hanging = workflow('hanging', {}, async (ctx) => ctx.step('hangs', () => new Promise(() => undefined)))
    const found = await findingOf(crashEverywhere(hanging, undefined, { patience: 10, atMost: '1h' }))
    expect(found.message).toContain('step "hangs", whose function has not returned')
    expect(found.message).toContain('let the step return, or give it a timeout')
  })

  it('never comes to its end when it is replayed is given up, and shown with what it waits for', async () => {
    const found = await findingOf(crashEverywhere(planted.neverSure, undefined, { replays: 1 }))
    expect(found.details).toMatchObject({ fault: 'not-ended', only: { replayed: true } })
    expect(found.message).toMatch(/It has committed 3\d\d times so far\./)
  })

  it('depends on which parallel step is first is refused, unless that is allowed', async () => {
    const found = await findingOf(crashEverywhere(planted.firstWins, undefined))
    expect(found.message).toContain('What happened: steps finished in the order "post", "express".')
    expect(found.message).toContain('Expected: succeeded "express"\nGot:      succeeded "post"')
    expect(found.message).toContain('use the array that Promise.all returns')
    const report = await crashEverywhere(planted.firstWins, undefined, { sameOutput: false })
    expect(report.orders).toBe(2)
  })

  it('returns something of chance is refused, unless that is allowed', async () => {
    const chance = workflow('chance', {}, async (ctx) => ctx.uuid())
    const found = await findingOf(crashEverywhere(chance, undefined))
    expect(found.message).toContain('"chance" ends otherwise from one run to the next, though no process died.')
    await crashEverywhere(chance, undefined, { sameOutput: false })
  })

  it('fails is reported as failing, unless that is expected', async () => {
    const failing = workflow('failing', { retry: { maxAttempts: 1 } }, async () => {
      throw new Error('As always')
    })
    const found = await findingOf(crashEverywhere(failing, undefined))
    expect(found.message).toContain('Expected: succeeded\nGot:      failed Error: As always')
    expect(found.message).toContain("pass ends: 'failed'")
    await crashEverywhere(failing, undefined, { ends: 'failed' })
  })

  it('starts a workflow that the test does not name is asked to name it', async () => {
    const child = workflow('child', {}, async () => 1)
    const parent = workflow('parent', { retry: { maxAttempts: 1 } }, async (ctx) => ctx.child(child))
    const found = await findingOf(crashEverywhere(parent, undefined))
    expect(found.message).toContain('name every workflow that takes part in `workflows`')
  })

  it('is disturbed from outside is reported with what the test threw', async () => {
    const quick = workflow('quick', {}, async () => 1)
    const during = (): never => {
      throw new Error('Nobody is there')
    }
    const found = await findingOf(crashEverywhere(quick, undefined, { during }))
    expect(found.message).toContain('It threw: Nobody is there')
  })
})
