import { describe, expect, it } from 'vitest'
import { Attachments } from '../../../../src/core/runtime/attachments.ts'
import type { WaitTarget } from '../../../../src/core/model/wait-target.ts'
import type { NewRun } from '../../../../src/core/model/new-run.ts'

const news: WaitTarget = { kind: 'topic', name: 'news', delivery: 'all', retainMs: 0 }
const other: WaitTarget = { kind: 'run', runId: 'other' }

describe('what is attached to entries', () => {
  it('goes with the transition that appends them, until they are durable', () => {
    const attachments = new Attachments()
    expect(attachments.between(0, 9)).toEqual({ takes: [], outbound: null })
    attachments.attach(2, { takes: 'a' })
    attachments.attach(3, { takes: 'b', watches: [news] })
    expect(attachments.between(1, 2)).toEqual({ takes: ['a'], outbound: null })
    expect(attachments.between(2, 3)).toEqual({
      takes: ['b'],
      outbound: { starts: [], watches: [news], unwatches: [] },
    })
    expect(attachments.taken).toEqual(['a', 'b'])
    attachments.settle(2)
    expect(attachments.taken).toEqual(['b'])
    attachments.forgetAfter(2)
    expect(attachments.between(0, 9)).toEqual({ takes: [], outbound: null })
  })

  it('a watch that is over before it was sent is never sent', () => {
    const attachments = new Attachments()
    attachments.attach(1, { watches: [news, other] })
    attachments.attach(2, { unwatches: [news] })
    expect(attachments.between(0, 2).outbound).toEqual({ starts: [], watches: [other], unwatches: [] })
    expect(attachments.between(1, 2).outbound).toEqual({ starts: [], watches: [], unwatches: [news] })
  })

  it('what is watched again after it was let go is both, in that order', () => {
    const attachments = new Attachments()
    attachments.attach(1, { unwatches: [news] })
    attachments.attach(2, { watches: [news] })
    expect(attachments.between(0, 2).outbound).toEqual({ starts: [], watches: [news], unwatches: [news] })
    attachments.attach(3, { unwatches: [news] })
    expect(attachments.between(0, 3).outbound).toEqual({ starts: [], watches: [], unwatches: [news] })
  })

  it('a child that is started and watched by two entries of one transition is watched from its start on', () => {
    const attachments = new Attachments()
    const start = {
      run: { id: 'child', first: { data: null } } as NewRun,
      awaited: true,
      onParentEnd: 'cancel',
    } as const
    const watched: WaitTarget = { kind: 'run', runId: 'child' }
    attachments.attach(1, { starts: [start] })
    attachments.attach(2, { watches: [watched] })
    expect(attachments.between(0, 2).outbound).toEqual({ starts: [start], watches: [], unwatches: [] })
    expect(attachments.between(1, 2).outbound).toEqual({ starts: [], watches: [watched], unwatches: [] })
    attachments.attach(3, { unwatches: [watched] })
    attachments.attach(4, { watches: [watched] })
    expect(attachments.between(0, 4).outbound).toEqual({ starts: [start], watches: [], unwatches: [] })
  })

  it('a child whose end nobody waits for any more is started all the same, and not watched', () => {
    const attachments = new Attachments()
    const start = {
      run: { id: 'child', first: { data: null } } as NewRun,
      awaited: true,
      onParentEnd: 'cancel',
    } as const
    attachments.attach(1, { starts: [start] })
    attachments.attach(2, { unwatches: [{ kind: 'run', runId: 'child' }] })
    const started = { ...start, awaited: false }
    expect(attachments.between(0, 2).outbound).toEqual({ starts: [started], watches: [], unwatches: [] })
  })

  it('a child whose end is waited for with the commit that starts it is started as watched, and not looked for', () => {
    const attachments = new Attachments()
    const start = {
      run: { id: 'child', first: { data: null } } as NewRun,
      awaited: false,
      onParentEnd: 'cancel',
    } as const
    attachments.attach(1, { starts: [start] })
    attachments.attach(2, { watches: [{ kind: 'run', runId: 'child' }, other] })
    const started = { ...start, awaited: true }
    expect(attachments.between(0, 2).outbound).toEqual({ starts: [started], watches: [other], unwatches: [] })
  })
})
