// What stands in the way of a start, and what it is answered.

import { describe, expect, it } from 'vitest'
import type { NewRun, Started } from '../../../../src/core/model/new-run.ts'
import type { Run } from '../../../../src/core/model/run.ts'
import { startInRounds, startRun, type StartWork } from '../../../../src/core/rules/start.ts'
import { newRun } from '../model/new-run.ts'

const given = { id: 'new', key: 'k', idempotencyKey: 'i', transition: 'mine', lease: null } as NewRun

/** A store in which these runs are in the way. */
function work(found: { readonly twin?: string; readonly same?: Run; readonly rival?: Run }): StartWork {
  return {
    twin: () => (found.twin === undefined ? undefined : { run: newRun({ id: 'new' }), transition: found.twin }),
    sameStart: () => found.same,
    keyRival: () => found.rival,
    hasEnded: (session) => session === 'dead',
    follow: () => ({ run: newRun({ id: 'new', status: 'waiting' }) }),
    insert: (_given, isLeased) => newRun({ id: 'new', session: isLeased ? 'holder' : null }),
  }
}

describe('a start', () => {
  const same = newRun({ id: 'same' })
  const rival = newRun({ id: 'rival' })

  it('meets its id first, then its idempotency key, then its key', () => {
    const answers = [
      startRun(work({ twin: 'other', same, rival }), given),
      startRun(work({ same, rival }), given),
      startRun(work({ rival }), given),
      startRun(work({}), given),
    ]
    expect(answers.map(({ created, taken, run }) => [created, taken, run.id])).toEqual([
      [false, 'id', 'new'],
      [false, 'idempotency-key', 'same'],
      [false, 'key', 'rival'],
      [true, null, 'new'],
    ])
  })

  it('whose answer was lost has created its run, whatever else is in its way by now', () => {
    expect(startRun(work({ twin: 'mine', same, rival }), given)).toMatchObject({ created: true, taken: null })
  })

  it('without keys is not kept from anything by runs that have some', () => {
    expect(startRun(work({ same, rival }), { ...given, key: null, idempotencyKey: null }).created).toBe(true)
  })

  it('leases its run to a session that lives, and to no other', () => {
    const leased = (session: string): string | null =>
      startRun(work({}), { ...given, lease: { session, token: 1 } }).run.session
    expect([leased('alive'), leased('dead')]).toEqual(['holder', null])
  })
})

describe('starts in rounds', () => {
  const started = (id: string): Started => ({ created: true, taken: null, run: newRun({ id }) })
  const two = [given, { ...given, id: 'other' }]

  it('are answered in their order, each once it is known what is in its way', async () => {
    const rounds: string[][] = []
    const answers = await startInRounds(two, async (open, known) => {
      rounds.push(open.map(({ id }) => id))
      const last = open.at(-1) as NewRun
      known.set(last, started(last.id))
    })
    expect(rounds).toEqual([['new', 'other'], ['new']])
    expect(answers.map(({ run }) => run.id)).toEqual(['new', 'other'])
  })

  it('that never find out come to an end all the same', async () => {
    let rounds = 0
    const vain = startInRounds(two, async () => void (rounds += 1))
    await expect(vain).rejects.toMatchObject({ code: 'BUG' })
    expect(rounds).toBe(100)
  })
})
