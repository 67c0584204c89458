// The view of a decider: what is checked when it is defined, what its functions complete, and the pictures that are drawn of it.

import { describe, expect, it } from 'vitest'
import { diagram, type Observed } from '../../../src/index.ts'
import { decider, decision } from '../../../src/deciders/index.ts'

interface State {
  readonly status: 'new' | 'open' | 'paid'
  readonly total: number
}
type In = { readonly type: 'Create' | 'Pay' | 'Note'; readonly id: string }
const base = {
  initial: (): State => ({ status: 'new', total: 0 }),
  evolve: (state: State, _event: { type: 'Moved' }) => state,
  decide: (_state: State, _input: In) => decision({ type: 'Moved' }).effect({ type: 'mail' }),
  id: 'id',
  isTerminal: ({ status }: State) => status === 'paid',
  effects: { mail: () => undefined },
} as const
const definition = {
  initial: 'new',
  terminal: ['paid'],
  transitions: [
    { from: 'new', input: 'Create', to: 'open', effects: ['mail'], timers: ['payment'], description: 'begins' },
    { from: 'open', input: 'Pay', to: 'paid' },
    { from: 'open', input: 'Note', to: 'open' },
  ],
} as const
const stateInfo = ({ status, total }: State) => ({ status, fields: { total } })
const order = decider('order', { ...base, view: { stateInfo, definition } })
const state = (status: State['status']): State => ({ status, total: 5 })

describe('a view', () => {
  it('IF-O1 gives status, fields and end of a state, and what may follow', () => {
    const { view } = order.model
    expect(view?.stateInfo(state('open'))).toEqual({ status: 'open', fields: { total: 5 }, isTerminal: false })
    expect(view?.stateInfo(state('paid')).isTerminal).toBe(true)
    expect(view?.transitions(state('open')).map(({ input, to }) => [input, to])).toEqual([
      ['Pay', 'paid'],
      ['Note', 'open'],
    ])
    expect(view?.definition?.transitions[0]).toEqual({ ...definition.transitions[0] })
    expect(decider('order', base).model.view).toBeNull()
  })

  it('IF-O1 may say for each state by itself what follows, and whether it is the end', () => {
    const { view } = decider('order', {
      ...base,
      view: {
        stateInfo: ({ status }) => ({ status, isTerminal: status === 'open' }),
        transitions: ({ total }) => (total > 3 ? [{ input: 'Pay', to: 'paid', effects: ['mail'] }] : []),
      },
    }).model
    expect(view?.stateInfo(state('open'))).toEqual({ status: 'open', fields: {}, isTerminal: true })
    expect(view?.transitions(state('open'))).toEqual([
      { input: 'Pay', to: 'paid', effects: ['mail'], timers: [], description: null },
    ])
    expect(view?.definition).toBeNull()
  })

  const wrong: readonly (readonly [string, object, string])[] = [
    ['no stateInfo', {}, 'needs stateInfo'],
    ['a misspelt option', { stateInfo, defintion: definition }, 'Did you mean "definition"?'],
    [
      'an empty status',
      { stateInfo, definition: { ...definition, initial: '' } },
      'initial of definition of view of decider "order" must be a name',
    ],
    ['an edge out of the end', { stateInfo, definition: { ...definition, terminal: ['open'] } }, 'which is terminal'],
    [
      'an edge twice',
      {
        stateInfo,
        definition: {
          ...definition,
          transitions: [...definition.transitions, { from: 'open', input: 'Pay', to: 'paid' }],
        },
      },
      'by "Pay" twice',
    ],
    [
      'a status to which nothing leads',
      { stateInfo, definition: { ...definition, terminal: ['payed'] } },
      'has the status "payed", and no transition leads to it',
    ],
    [
      'an edge without a target',
      { stateInfo, definition: { ...definition, transitions: [{ from: 'new', input: 'Create' }] } },
      'to of a transition',
    ],
    ['no list of edges', { stateInfo, definition: { initial: 'new' } }, 'transitions of definition'],
  ]
  it.each(wrong)('IF-O1 with %s is refused', (_what, view, why) => {
    expect(() => decider('order', { ...base, view } as never)).toThrow(
      expect.objectContaining({ code: 'INVALID_OPTION', message: expect.stringContaining(why) as string }) as Error,
    )
  })

  it('IF-O1 whose functions fail or give no status says so', () => {
    const bad = (info: () => unknown) => decider('order', { ...base, view: { stateInfo: info as never } }).model.view
    expect(() =>
      bad(() => {
        throw new Error('no')
      })?.stateInfo(state('open')),
    ).toThrow('stateInfo of view of decider "order" failed: no')
    expect(() => bad(() => 'open')?.stateInfo(state('open'))).toThrow('must return { status }. It returned "open"')
    expect(() => bad(() => ({ status: 5 }))?.stateInfo(state('open'))).toThrow('must be a name')
  })
})

const at = new Date('2026-11-16T00:41:45.000Z')
const seen = (from: string, input: string, to: string, count = 1): Observed['transitions'][number] => ({
  from,
  input,
  to,
  count,
  outcome: 'accepted',
  firstAt: at,
  lastAt: at,
  effects: ['mail'],
  timers: ['#'],
})
const observed: Observed = {
  instances: 3,
  isCapped: false,
  initial: ['new'],
  terminal: ['lost'],
  transitions: [
    seen('new', 'Create', 'open', 3),
    seen('open', 'Lose', 'lost'),
    { ...seen('open', 'Pay', 'open'), outcome: 'rejected' },
  ],
}

describe('a picture', () => {
  it('IF-O2 is a Mermaid diagram of the declared state machine', () => {
    expect(diagram(order)).toBe(`stateDiagram-v2
  [*] --> new
  new --> open : Create [mail] ⏱payment
  open --> paid : Pay
  open --> open : Note
  paid --> [*]
`)
  })

  it('IF-O2 is a DOT graph, from left to right, with double circles at the ends', () => {
    const text = diagram(order, { format: 'dot' })
    expect(text).toContain('digraph "order" {\n  rankdir=LR;\n')
    expect(text).toContain('"paid" [shape=doublecircle];')
    expect(text).toContain('"new" -> "open" [label="Create [mail] ⏱payment", tooltip="begins"];')
    expect(text).not.toContain('dashed')
  })

  it('IF-O4 IF-O2 marks edges that were never seen, and those that were never declared, with counts and times', () => {
    expect(diagram(order, { observed }).split('\n')).toEqual([
      'stateDiagram-v2',
      '  [*] --> new',
      '  new --> open : Create [mail] ⏱payment (3×)',
      '  open --> paid : Pay (never seen)',
      '  open --> open : Note (never seen)',
      '  open --> lost : Lose [mail] ⏱ (1×) (not declared)',
      '  paid --> [*]',
      '  lost --> [*]',
      '',
    ])
    const text = diagram(order, { format: 'dot', observed })
    expect(text).toContain('[label="Pay (never seen)", style=dashed, color=gray50')
    expect(text).toContain('color=red, fontcolor=red, tooltip="last 2026-11-16T00:41:45.000Z"]')
  })

  it('IF-O4 is drawn of observations alone if nothing is declared, and refused without either', () => {
    const undeclared = decider('order', { ...base, view: { stateInfo } })
    expect(diagram(undeclared, { observed })).toContain('open --> lost : Lose [mail] ⏱ (1×)\n')
    expect(() => diagram(undeclared)).toThrow('declares no state machine')
    expect(() => diagram(order, { format: 'svg' as never })).toThrow('must be one of mermaid, dot. Got "svg".')
  })

  it('IF-O2 keeps any name a name: nothing in it is read as Mermaid or DOT', () => {
    const odd = 'a "b"; --> c\\'
    const transitions = [{ from: 'end', input: 'Go:"x"', to: odd }]
    const weird = decider('weird', {
      ...base,
      view: { stateInfo, definition: { initial: 'end', transitions } },
    } as never) as typeof order
    expect(diagram(weird)).toBe(`stateDiagram-v2
  state "end" as s1_
  state "a #34;b#34;#59; --#62; c#92;" as s2_
  [*] --> s1_
  s1_ --> s2_ : Go#58;#34;x#34;
`)
    expect(diagram(weird, { format: 'dot' })).toContain('"end" -> "a \\"b\\"; --> c\\\\" [label="Go:\\"x\\""];')
  })
})
