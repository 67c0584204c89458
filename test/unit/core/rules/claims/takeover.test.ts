// What becomes of a run that loses its holder or its time, as tables; and what holds for all of them.

import { describe, expect, it } from 'vitest'
import { isTerminal, mayMove, type Run, type UndoState } from '../../../../../src/core/model/run.ts'
import {
  giveBack,
  takeOver,
  timeOut,
  type Takeover,
  type TakeoverRules,
} from '../../../../../src/core/rules/claims/takeover.ts'
import type { Rewrite } from '../../../../../src/core/rules/rewrite.ts'
import { newRun, terminalKinds } from '../../model/new-run.ts'

const now = 5_000
const rules: TakeoverRules = {
  maxCrashes: 3,
  workflows: [
    { type: 'strict', version: 1, maxCrashes: null, onCrashes: 'fail' },
    { type: 'patient', version: 1, maxCrashes: 4, onCrashes: 'fail' },
  ],
  failures: { crashed: '"crashed"', 'timed-out': '"late"', expired: '"expired"' },
}
const held = { status: 'running', session: 's', readiness: 'leased', due: null, deadline: 4_000, crashes: 1 } as const
const cancelling = {
  ...held,
  status: 'cancelling',
  controlRequest: { kind: 'cancel', reason: 'enough', at: 1 },
} as const
const pausing = { ...held, controlRequest: { kind: 'pause', reason: 'operator', note: 'wait', at: 1 } } as const
const late = { timeoutAt: now }
const poison = { crashes: 3 }

const summaryOf = ({ run, append }: Rewrite): string => [...append.map(({ kind }) => kind), '→', run.status].join(' ')

// Columns: nothing to undo, something to undo, undo work begun.
const undos: readonly UndoState[] = ['none', 'possible', 'due']

const taken: readonly (readonly [string, Partial<Run>, readonly [string, string, string]])[] = [
  ['runs', held, ['crashed → pending', 'crashed → pending', 'crashed → pending']],
  ['shall pause', pausing, ['crashed paused → paused', 'crashed paused → paused', 'crashed paused → paused']],
  ['is being cancelled', cancelling, ['crashed cancelled → cancelled', 'crashed → cancelling', 'crashed → cancelling']],
  [
    'kills its holders',
    { ...held, ...poison },
    ['crashed paused → paused', 'crashed paused → paused', 'crashed paused → paused'],
  ],
  [
    'kills its holders, and shall fail for that',
    { ...held, ...poison, type: 'strict' },
    ['crashed failed → failed', 'crashed failing → pending', 'crashed failed → failed'],
  ],
  [
    'shall pause, and kills its holders',
    { ...pausing, ...poison },
    ['crashed paused → paused', 'crashed paused → paused', 'crashed paused → paused'],
  ],
  [
    'shall pause, kills its holders, and shall fail for that',
    { ...pausing, ...poison, type: 'strict' },
    ['crashed failed → failed', 'crashed failing paused → paused', 'crashed failed → failed'],
  ],
  [
    'has a higher bound of its own',
    { ...held, ...poison, type: 'patient' },
    ['crashed → pending', 'crashed → pending', 'crashed → pending'],
  ],
  [
    'kills who cancels it',
    { ...cancelling, ...poison },
    ['crashed cancelled → cancelled', 'crashed cancelled → cancelled', 'crashed cancelled → cancelled'],
  ],
]

describe('a run whose holder died', () => {
  it.each(taken)('and that %s', (_, changes, expected) => {
    expect(undos.map((undo) => summaryOf(takeOver(newRun({ ...changes, undo }), rules, now)))).toEqual(expected)
  })

  it('and that is over time fails, or undoes first, however many holders died', () => {
    for (const more of [{}, poison]) {
      const answers = (['none', 'possible'] as const).map((undo) =>
        summaryOf(takeOver(newRun({ ...held, ...late, ...more, undo }), rules, now)),
      )
      expect(answers).toEqual(['crashed failed → failed', 'crashed failing → pending'])
    }
  })

  it.each([
    [1, 'ready', 0],
    [2, 'isolated', 0],
    [3, 'isolated', 1_000],
    [4, 'isolated', 2_000],
    [5, 'isolated', 4_000],
    [8, 'isolated', 32_000],
    [9, 'isolated', 60_000],
    [1_000, 'isolated', 60_000],
  ])('and that has crashed %d times is claimed: %s, %d ms later', (crashes, readiness, laterMs) => {
    const patient = { ...rules, maxCrashes: 10_000 }
    const { run } = takeOver(newRun({ ...held, crashes }), patient, now)
    expect([run.readiness, run.due]).toEqual([readiness, now + laterMs])
  })

  it('and that is paused for its crashes says how many there were, and what to look for', () => {
    const { append, isConvicted } = takeOver(newRun({ ...held, ...poison }), rules, now)
    const meta = append.at(-1)?.meta as { readonly reason: string; readonly note: string }
    expect([meta.reason, isConvicted]).toEqual(['crashes', true])
    expect(meta.note).toContain('3 times in a row')
    expect(meta.note).toContain('process.exit')
  })

  it('and that shall pause keeps no control request that nobody holds it to hear', () => {
    for (const undo of undos) {
      for (const why of [poison, late, {}]) {
        expect(takeOver(newRun({ ...pausing, ...why, undo }), rules, now).run.controlRequest).toBeNull()
      }
    }
  })

  it('has crashed once at least, also when its holder had committed something', () => {
    const { run, append } = takeOver(newRun({ ...held, crashes: 0 }), rules, now)
    expect([run.crashes, append[0]?.meta]).toEqual([1, { session: 's', crashes: 1 }])
  })

  it('counts the crashes of its undo work anew', () => {
    const { run } = takeOver(
      newRun({ ...held, ...poison, type: 'strict', undo: 'possible', timeoutAt: 9_000 }),
      rules,
      now,
    )
    expect(run).toMatchObject({ crashes: 0, undo: 'due', timeoutAt: null, expiresAt: null })
  })

  it('and that was being cancelled still knows why, whichever session goes on', () => {
    const goesOn = takeOver(newRun({ ...cancelling, undo: 'possible' }), rules, now)
    expect(goesOn.run.controlRequest).toEqual(cancelling.controlRequest)
    const ends = takeOver(newRun(cancelling), rules, now)
    expect(ends.append.at(-1)?.meta).toEqual({ reason: 'enough', notUndone: [] })
  })
})

describe('a run that is given back', () => {
  it.each<[string, Partial<Run>, readonly [string, string, string]]>([
    ['runs', held, ['→ pending', '→ pending', '→ pending']],
    ['shall pause', pausing, ['paused → paused', 'paused → paused', 'paused → paused']],
    ['is being cancelled', cancelling, ['cancelled → cancelled', '→ cancelling', '→ cancelling']],
  ])('and that %s', (_, changes, expected) => {
    expect(undos.map((undo) => summaryOf(giveBack(newRun({ ...changes, undo }), now)))).toEqual(expected)
  })

  it('counts no crash, and forgets none of earlier holders', () => {
    expect(giveBack(newRun(held), now).run.crashes).toBe(0)
    expect(giveBack(newRun({ ...held, crashes: 3 }), now).run.crashes).toBe(2)
    expect(giveBack(newRun({ ...held, crashes: 0 }), now).run.crashes).toBe(0)
  })

  it('has the crashes that its holder knows of, but never more than it has', () => {
    expect(giveBack(newRun({ ...held, crashes: 2 }), now, 2).run).toMatchObject({ crashes: 2, readiness: 'isolated' })
    expect(giveBack(newRun({ ...held, crashes: 3 }), now, 2).run.crashes).toBe(2)
    expect(giveBack(newRun({ ...held, crashes: 0 }), now, 2).run).toMatchObject({ crashes: 0, readiness: 'ready' })
  })
})

describe('a run whose time is over', () => {
  it.each([
    ['timed-out', { timeoutAt: now, expiresAt: now }],
    ['timed-out', { timeoutAt: now }],
    ['expired', { expiresAt: now }],
    ['expired', { timeoutAt: now + 1, expiresAt: now }],
  ] as const)('fails: %s', (reason, changes) => {
    const { run, append, reason: summaryOf } = timeOut(newRun(changes), rules, now)
    expect(summaryOf).toBe(reason)
    expect(append).toEqual([{ kind: 'failed', name: null, meta: null, data: rules.failures[reason] }])
    expect(run).toMatchObject({ status: 'failed', readiness: 'idle', due: null, expiresAt: null, endedAt: now })
  })

  it('and that has something to undo does that first, without a bound on its time', () => {
    const { run, append, reason } = timeOut(newRun({ status: 'waiting', ...late, undo: 'possible' }), rules, now)
    expect(append).toEqual([{ kind: 'failing', name: null, meta: null, data: rules.failures['timed-out'] }])
    expect(run).toMatchObject({ status: 'pending', readiness: 'ready', due: now, undo: 'due', timeoutAt: null })
    expect([run.endedAt, reason]).toEqual([null, null])
  })
})

describe('whatever happens', () => {
  const everything: readonly { readonly before: Run; readonly after: Takeover | Rewrite }[] = [
    ...[held, pausing, cancelling].flatMap((one) =>
      undos.flatMap((undo) =>
        [null, 4].flatMap((deletedAt) =>
          [{}, poison, late, { ...poison, ...late }].flatMap((more) => {
            const before = newRun({ ...one, ...more, undo, deletedAt })
            return [takeOver(before, rules, now), giveBack(before, now)].map((after) => ({ before, after }))
          }),
        ),
      ),
    ),
    ...undos.flatMap((undo) =>
      (['pending', 'waiting'] as const).map((status) => {
        const before = newRun({ status, undo, ...late })
        return { before, after: timeOut(before, rules, now) }
      }),
    ),
  ]

  it('moves only as the status machine allows', () => {
    for (const { before, after } of everything) {
      const [from, to] = [before.status, after.run.status]
      expect(mayMove(from, to) || (from === 'pending' && to === 'pending'), `${from} → ${to}`).toBe(true)
    }
  })

  it('nobody holds it afterwards, and it is ready unless it is over, paused or deleted', () => {
    for (const { before, after } of everything) {
      const { status, readiness, session, deadline, deletedAt, due } = after.run
      expect([session, deadline]).toEqual([null, null])
      const ready = !isTerminal(status) && status !== 'paused' && deletedAt === null
      const isSuspect = after.run.crashes >= 2
      expect([readiness, due]).toEqual(ready ? [isSuspect ? 'isolated' : 'ready', now] : ['idle', null])
      expect(deletedAt).toBe(before.deletedAt)
    }
  })

  it('an end has one terminal entry, which stands last, and anything else has none', () => {
    for (const { after } of everything) {
      const kinds = after.append.map(({ kind }) => kind)
      const ended = isTerminal(after.run.status)
      expect(kinds.filter((kind) => terminalKinds.has(kind))).toEqual(ended ? [after.run.status] : [])
      if (ended) expect(kinds.at(-1)).toBe(after.run.status)
      expect(after.run.endedAt).toBe(ended ? now : null)
      expect(after.run.seq).toBe(3 + kinds.length)
    }
  })

  it('the reason is given exactly when it failed', () => {
    for (const { after } of everything) {
      if ('reason' in after) expect(after.reason !== null).toBe(after.run.status === 'failed')
    }
  })
})
