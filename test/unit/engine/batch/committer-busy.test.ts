// A run that another transaction has locked: those that were sent with it do not wait for it.

import { expect, it } from 'vitest'
import type { Committed } from '../../../../src/store.ts'
import { CommitterRig } from '../../../support/committer-rig.ts'
import { turn } from '../../../support/manual-ports.ts'
import type { Flush } from '../../../support/scripted-store.ts'

const busy: Committed = { outcome: 'refused', reason: 'busy' }

/** Answers as a store does that commits all but one. */
function answerAllBut(rig: CommitterRig, flush: Flush, runId: string): void {
  const rest = flush.transitions.filter((transition) => transition.runId !== runId)
  const answers = rig.store.apply(rest)
  flush.answerWith(
    flush.transitions.map((transition) =>
      transition.runId === runId ? busy : (answers[rest.indexOf(transition)] as Committed),
    ),
  )
}

it('what is busy is sent again alone, and the others are answered at once', async () => {
  const rig = new CommitterRig(['a', 'b', 'c'])
  for (const runId of ['a', 'b', 'c']) rig.submit(runId, ['one'])
  await turn()
  const [flush] = rig.store.waiting as [Flush]
  answerAllBut(rig, flush, 'b')
  await turn()
  expect(rig.outcomes).toHaveLength(2)
  // Others go on meanwhile, and a later write of the busy run waits behind its first.
  rig.submit('a', ['two'])
  rig.submit('b', ['two'])
  await turn()
  const [alone, next] = rig.store.waiting as [Flush, Flush]
  expect(alone.runIds).toEqual(['b'])
  expect(next.runIds).toEqual(['a'])
  next.answer()
  await turn()
  expect(rig.outcomes).toHaveLength(3)
  alone.answer()
  await turn()
  expect(rig.outcomes).toHaveLength(4)
  await rig.finish()
  expect(rig.outcomes).toHaveLength(5)
})

it('what is busy for long is asked for again and again, and never answered as refused', async () => {
  const rig = new CommitterRig(['a'])
  rig.submit('a', ['one'])
  for (let times = 0; times < 3; times += 1) {
    await turn()
    ;(rig.store.waiting[0] as Flush).answerWith([busy])
    await turn()
    rig.ports.clock.advance(10_000)
  }
  await rig.finish()
  expect(rig.outcomes).toMatchObject([[expect.any(String), { seq: 1 }]])
})
