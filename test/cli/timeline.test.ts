import { describe, expect, it } from 'vitest'
import { timeline } from '../../src/cli/output/timeline.ts'
import { widthOf } from '../../src/cli/output/text.ts'
import type { JournalEntry, RunView } from '../../src/index.ts'
import { hazardous } from './world.ts'

const began = Date.UTC(2026, 10, 16)
const id = '019a8b6e-7c1d-7000-8f3a-5b2c9d4e6f70'

const succeeded: RunView = {
  id,
  type: 'shop.order',
  version: 2,
  status: 'succeeded',
  key: 'order-42',
  keyScope: 'workflow',
  idempotencyKey: null,
  parentId: null,
  tags: ['vip'],
  metadata: { region: 'eu' },
  priority: 0,
  createdAt: new Date(began),
  updatedAt: new Date(began + 4_000),
  endedAt: new Date(began + 4_000),
  dueAt: null,
  crashes: 0,
  controlRequest: null,
  pause: null,
  deletedAt: null,
  deleteReason: null,
  lastError: null,
  unreadable: null,
  output: { parcel: 'p-1' },
}

type Kind = JournalEntry['kind']

/** Entries in short: when, what, whose, and what the engine noted. */
function journal(
  ...short: readonly (readonly [ms: number, kind: Kind, name?: string | null, meta?: object | null, data?: unknown])[]
) {
  return short.map(
    ([ms, kind, name = null, meta = null, data], at) =>
      ({ seq: at + 1, at: new Date(began + ms), kind, name, meta, data }) as JournalEntry,
  )
}

const paint = (_: unknown, text: string): string => text

function drawn(view: RunView, entries: readonly JournalEntry[], width = 80, more: { readonly all?: boolean } = {}) {
  return timeline(view, entries, { width, paint, now: began + 5_000, ...more })
}

const eventful = journal(
  [0, 'started', null],
  [400, 'attempt-failed', 'charge', { attempt: 1, ms: 300, delayMs: 200 }, new Error('no answer')],
  [900, 'step-succeeded', 'charge', { attempt: 2, ms: 300, undo: true }],
  [1_400, 'step-succeeded', 'label', { attempt: 1, ms: 300 }],
  [1_600, 'step-succeeded', 'reserve', { attempt: 1, ms: 600 }],
  [1_600, 'waiting', 'sleep', { conditions: [{ tag: 'sleep', kind: 'delay', ms: 1_000 }] }],
  [2_600, 'woken', 'sleep', { winner: 'sleep', trueAt: began + 2_600, seenAt: began + 2_600 }],
  [3_500, 'crashed', null, { session: 's', crashes: 1 }],
  [3_900, 'step-succeeded', 'ship', { attempt: 1, ms: 300 }],
  [4_000, 'succeeded', null],
)

describe('the timeline of a run', () => {
  it('shows what it is and what it did, where it began', () => {
    expect(drawn(succeeded, eventful)).toEqual([
      'shop.order v2  succeeded',
      `  run         ${id}`,
      '  key         order-42 (unique in: workflow)',
      '  tags        vip',
      '  metadata    {"region":"eu"}',
      '  created     2026-11-16 00:00:00Z, took 4 s',
      '  journal     10 entries',
      '  output      {"parcel":"p-1"}',
      '',
      '                   0                    4 s',
      '  0 ms  started    ●',
      '100 ms  charge     ░░░███                    300 ms, attempt 2',
      '   1 s  reserve          ████                600 ms',
      ' 1.1 s  label            ███                 300 ms',
      ' 1.6 s  sleep               ·······          waited 1 s',
      ' 2.6 s  crashed                   ╳╳╳╳╳╳     its process died; another took over',
      ' 3.6 s  ship                            ███  300 ms',
      '   4 s  succeeded                         ●',
    ])
  })

  it('shows a failure, what was undone and what was not', () => {
    const view: RunView = {
      ...succeeded,
      status: 'failed',
      lastError: 'Error: no parcel',
      tags: [],
      metadata: {},
      key: null,
    }
    const lines = drawn(
      view,
      journal(
        [0, 'started'],
        [500, 'step-succeeded', 'charge', { attempt: 1, ms: 500, undo: true }],
        [900, 'step-failed', 'ship', { attempt: 3, ms: 400 }, new Error('no parcel')],
        [900, 'failing', null, { cause: 3, notUndone: [] }, new Error('no parcel')],
        [1_500, 'undo-attempt-failed', 'charge', { attempt: 1, ms: 100, delayMs: 400 }, new Error('bank away')],
        [2_000, 'undone', 'charge', { attempt: 2, ms: 100 }],
        [4_000, 'failed', null, { cause: 3, notUndone: ['label'] }, new Error('no parcel')],
      ),
      100,
    ).join('\n')
    expect(lines).toContain('error       Error: no parcel')
    expect(lines).toMatch(/ship .* gave up at attempt 3: no parcel/)
    expect(lines).toMatch(/failing .*✗ .* no parcel/)
    expect(lines).toMatch(/undo charge .*░.*▒.* 100 ms, attempt 2/)
    expect(lines).toMatch(/failed .*✗ .* no parcel \(not undone: label\)/)
  })

  it('shows pauses, repairs, a retry and a new beginning', () => {
    const lines = drawn(
      succeeded,
      journal(
        [0, 'started'],
        [100, 'step-succeeded', 'charge', { attempt: 1, ms: 100 }],
        [100, 'paused', null, { reason: 'drift', message: 'charge is not asked for', recorded: {}, found: [] }],
        [1_900, 'amended', null, { seq: 2, dropped: true }],
        [2_000, 'resumed', null, { note: 'renamed' }],
        [2_500, 'failed', null, null, 'no'],
        [3_000, 'retried', null, { note: null }],
        [3_500, 'continued', null, { type: 'shop.order', version: 3 }],
        [3_600, 'step-succeeded', 'charge', { attempt: 1, ms: 100 }],
        [3_700, 'progressed', 'progress', { fraction: 0.5 }, 'half'],
        [4_000, 'cancelled', null, { reason: 'too late', notUndone: [] }],
      ),
      100,
    ).join('\n')
    expect(lines).toMatch(/paused +‖{10,} +drift: charge is not asked for/)
    expect(lines).toContain('entry 2 was dropped')
    expect(lines).toMatch(/resumed .*▶ .*renamed/)
    expect(lines).toContain('as shop.order v3')
    expect(lines.match(/s {2}charge /g)).toHaveLength(2)
    expect(lines).toContain('50 % half')
    expect(lines).toMatch(/cancelled .*■ .*too late/)
  })

  it.each([
    [{ status: 'pending' }, /pending .*▷.* a worker has yet to take it/],
    [{ status: 'pending', dueAt: new Date(began + 65_000) }, /goes on in 1 min/],
    [
      { status: 'running', controlRequest: { kind: 'cancel', reason: 'no', at: new Date(began) } },
      /running .*▷+ .*asked to cancel/,
    ],
    [{ status: 'cancelling' }, /cancelling .*▷+ .*undo/],
  ] satisfies [Partial<RunView>, RegExp][])('says what a live run is about: %j', (change, shown) => {
    const lines = drawn({ ...succeeded, endedAt: null, ...change }, journal([0, 'started']), 120)
    expect(lines.join('\n')).toMatch(shown)
  })

  it('draws a wait that is not over until now', () => {
    const view: RunView = { ...succeeded, status: 'waiting', endedAt: null }
    const conditions = [
      { tag: 'ok', kind: 'signal', name: 'approved' },
      { tag: 'late', kind: 'time', at: began + 60_000 },
    ]
    const lines = drawn(view, journal([0, 'started'], [2_500, 'waiting', 'race', { conditions }]), 140)
    expect(lines.at(-1)).toMatch(/race +·{20,} +waits for the signal approved, or until 2026-11-16 00:01:00Z/)
  })

  it('shows what ended a wait, and what was issued and exposed', () => {
    const other = '019a8b6e-7c1d-7000-8f3a-5b2c9d4e6f71'
    const topic = { name: 'news', delivery: 'all', retainMs: 0 }
    const woken = (winner: string, kind: string, name: string): object => ({
      winner,
      trueAt: 0,
      seenAt: 0,
      by: { id: 'm', kind, name, place: { runId: id, seq: 0, name: 'm' } },
    })
    const waiting = (...conditions: object[]): object => ({ conditions })
    const lines = drawn(
      succeeded,
      journal(
        [0, 'started'],
        [
          100,
          'waiting',
          'race',
          waiting({ tag: 'ok', kind: 'signal', name: 'approved' }, { tag: 'late', kind: 'delay', ms: 9_000 }),
        ],
        [200, 'woken', 'race', woken('ok', 'signal', 'approved')],
        [300, 'waiting', 'news', waiting({ tag: 'news', kind: 'signal', name: 'news', topic })],
        [400, 'woken', 'news', woken('news', 'broadcast', 'news')],
        [500, 'waiting', 'child', waiting({ tag: 'child', kind: 'run', runId: other })],
        [600, 'woken', 'child', woken('child', 'ended', other)],
        [600, 'waiting', 'start', waiting({ tag: 'start', kind: 'start', runId: other })],
        [700, 'woken', 'start', woken('start', 'refused', other)],
        [700, 'issued', 'token'],
        [800, 'waiting', 'form', waiting({ tag: 'form', kind: 'signal', name: 'token:10' })],
        [900, 'woken', 'form', woken('form', 'signal', 'token:10')],
        [900, 'waiting', 'second form', waiting({ tag: 'form', kind: 'signal', name: 'token:11' })],
        [900, 'waiting', 'lone', waiting({ tag: 'got', kind: 'signal', name: 'paid' })],
        [900, 'woken', 'lone', woken('got', 'signal', 'paid')],
        [900, 'exposed', 'stage', { call: 'stage' }, 'packing'],
        [4_000, 'succeeded', null],
      ),
      200,
    ).join('\n')
    expect(lines).toMatch(/race .*waited 100 ms: ok came first \(the signal approved came\)/)
    expect(lines).toMatch(/news .*waited 100 ms, until a broadcast of the topic news came/)
    expect(lines).toMatch(new RegExp(`child .*waited 100 ms, until run ${other} ended`))
    expect(lines).toMatch(new RegExp(`start .*waited 100 ms: run ${other} could not be started`))
    expect(lines).toMatch(/lone .*waited 0 ms, until the signal paid came/)
    expect(lines).toMatch(/token .*a completion token was issued/)
    expect(lines).toMatch(/form .*until its completion token was used/)
    expect(lines).toMatch(/second form .*waits for its completion token/)
    expect(lines).toMatch(/stage .*exposed "packing"/)
  })

  it('shows that a child failed, and never cuts its id', () => {
    const other = '019a8b6e-7c1d-7000-8f3a-5b2c9d4e6f71'
    const entries = journal(
      [0, 'started'],
      [100, 'waiting', 'ship', { conditions: [{ tag: 'ship', kind: 'run', runId: other }] }],
      [
        200,
        'woken',
        'ship',
        {
          winner: 'ship',
          trueAt: 0,
          seenAt: 0,
          by: { id: 'm', kind: 'ended', name: other, ended: { status: 'failed', reason: null } },
        },
      ],
      [300, 'waiting', 'pack', { conditions: [{ tag: 'pack', kind: 'run', runId: other }] }],
    )
    expect(drawn(succeeded, entries, 140).join('\n')).toMatch(
      new RegExp(`ship .*·✗ .*waited 100 ms, until run ${other} failed`),
    )
    for (const width of [30, 50, 60, 70, 80, 90, 100, 110]) {
      const lines = drawn(succeeded, entries, width)
      expect(lines.filter((line) => line.includes(id))).toHaveLength(1)
      expect(lines.filter((line) => line.includes(other))).toHaveLength(2)
    }
  })

  it('fits every width, wide letters included', () => {
    const wide = journal(
      [0, 'started'],
      [900, 'step-succeeded', '注文を確認する手順#2', { attempt: 1, ms: 300 }],
      [1_000, 'step-failed', 'x'.repeat(300), { attempt: 1, ms: 300 }, new Error('y'.repeat(5_000))],
    )
    for (const width of [40, 60, 80, 132, 500]) {
      for (const line of drawn({ ...succeeded, key: 'k'.repeat(400) }, [...eventful, ...wide], width)) {
        expect(widthOf(line)).toBeLessThanOrEqual(Math.max(width, 50))
      }
    }
  })

  it('has bars on every terminal but the narrowest', () => {
    for (let width = 60; width < 170; width += 1) {
      expect(drawn(succeeded, eventful, width).join('\n')).toContain('█')
      expect(drawn(succeeded, eventful.slice(0, 3), width).join('\n')).toContain('█')
    }
    expect(drawn(succeeded, eventful, 40).join('\n')).not.toContain('█')
  })

  it('sums up 5,000 entries, shows what went wrong among them, and says how to see all', () => {
    const many = journal(
      [0, 'started'],
      ...Array.from({ length: 4_998 }, (_, at) =>
        at === 2_500
          ? ([at / 2, 'step-failed', `step#${at}`, { attempt: 1, ms: 1 }, new Error('lost')] as const)
          : ([at / 2, 'step-succeeded', `step#${at}`, { attempt: 1, ms: 1 }] as const),
      ),
      [4_000, 'succeeded'],
    )
    const lines = drawn(succeeded, many)
    expect(lines.length).toBeLessThan(80)
    expect(lines.join('\n')).toMatch(/step#2500 .*gave up at attempt 1: lost/)
    expect(lines.filter((line) => line.includes('⋮'))).toHaveLength(2)
    expect(lines.at(-1)).toBe(`4,959 lines are hidden. See all: holdfast show ${id} --all, or holdfast journal ${id}`)
    expect(drawn(succeeded, many, 80, { all: true }).filter((line) => line.includes('step#'))).toHaveLength(4_998)
  })

  it('lets nothing from data reach the terminal raw', () => {
    const evil = '\u001B[2J\u202E\u0000\u2028\n'
    const view: RunView = {
      ...succeeded,
      type: evil,
      key: evil,
      idempotencyKey: evil,
      tags: [evil],
      metadata: { [evil]: evil },
      lastError: evil,
      deletedAt: new Date(began),
      deleteReason: evil,
      output: evil,
      controlRequest: { kind: 'pause', reason: evil, at: new Date(began) },
    }
    const lines = drawn(
      view,
      journal(
        [0, 'started'],
        [1, 'step-failed', evil, { attempt: 1, ms: 1 }, new Error(evil)],
        [1, 'attempt-failed', evil, { attempt: 1, ms: 1, delayMs: 1 }, evil],
        [1, 'waiting', evil, { conditions: [{ tag: evil, kind: 'signal', name: evil }] }],
        [1, 'woken', evil, { winner: evil, trueAt: 0, seenAt: 0 }],
        [1, 'waiting', evil, { conditions: [{ tag: evil, kind: 'start', runId: evil }] }],
        [1, 'woken', evil, { winner: evil, trueAt: 0, seenAt: 0, by: { id: evil, kind: 'signal', name: evil } }],
        [1, 'exposed', evil, { call: evil }, evil],
        [1, 'undo-failed', evil, { attempt: 1, ms: 1 }, evil],
        [1, 'paused', null, { reason: 'operator', note: evil }],
        [1, 'paused', null, { reason: 'drift', message: evil }],
        [1, 'resumed', null, { note: evil }],
        [1, 'logged', evil, null, evil],
        [1, 'patched', evil],
        [1, 'recorded', evil, null, evil],
        [1, 'progressed', evil, { fraction: 0 }, evil],
        [1, 'continued', null, { type: evil, version: 1 }],
        [1, 'failed', null, { cause: null, notUndone: [evil] }, evil],
        [1, 'cancelled', null, { reason: evil, notUndone: [evil] }],
      ),
      200,
    )
    for (const line of lines) expect(line).not.toMatch(/\n|(?![\n])[\p{Cc}\p{Cf}\p{Zl}]/u)
    expect(hazardous.test(lines.join(''))).toBe(false)
  })
})
