// A page of what a run has sent ends before the first message whose payload was left behind.

import { expect, it } from 'vitest'
import { sendTarget } from '../../../../../../src/core/model/chore.ts'
import { pageOf, requestOf } from '../../../../../../src/stores/postgres/exchange/load/sent-page.ts'

const sender = '01b8d1a4-e000-7000-8000-000000000001'
const sent = (seq: number, data: string | null) => ({
  seq,
  kind: 'broadcast-sent',
  name: 'news',
  meta: '{}',
  data,
  at: 1,
  transition_id: null,
})

it('ends a page before the first payload that is beyond its bytes', () => {
  const page = pageOf([sent(2, '1'), sent(5, '2'), sent(9, null), sent(11, null)])
  expect([page.sentEntries.map(({ seq }) => seq), page.sentUpTo]).toEqual([[2, 5], 8])
  expect(pageOf([sent(2, '1')]).sentUpTo).toBeNull()
})

it('asks for what was sent to the receiver of the chore alone, in bytes that have a bound', () => {
  const target = sendTarget(sender, { kind: 'topic', name: 'news' })
  const request = requestOf({ kind: 'send', target, position: 3, after: null })
  expect(request).toMatchObject({ id: sender, first: 3, kind: 'broadcast-sent', receiver: 'news' })
  expect(request.bytes).toBeGreaterThan(0)
})
