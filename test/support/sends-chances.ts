// What transitions send, drawn at random: to runs and topics that other draws use, too.

import type { Draft } from '../../src/core/model/entry.ts'
import type { Run } from '../../src/core/model/run.ts'
import type { Transition } from '../../src/core/model/transition.ts'
import type { Chances } from './chances.ts'
import { broadcastOf, messageTo } from './exchange-chances.ts'

/** Some transitions send, before all else that they say; not those that name the place of one of their entries. */
export function withSends(chances: Chances, made: Transition, rows: readonly Run[]): Transition {
  const maySend = made.append.length > 0 && (made.base ?? null) === null
  return maySend && chances.oneIn(4) ? { ...made, append: [...sendsOf(chances, rows), ...made.append] } : made
}

/** What a run sends with a transition: signals and broadcasts, some of them to receivers that take few. */
function sendsOf(chances: Chances, rows: readonly Run[]): readonly Draft[] {
  return Array.from({ length: 1 + chances.below(3) }, (): Draft => {
    if (chances.oneIn(3)) {
      const { id: _id, data, ...meta } = broadcastOf(chances)
      return { kind: 'broadcast-sent', name: 'b', meta: { ...meta, ...bound(chances, 'mostKept') }, data }
    }
    const { runId: to, kind, name: signal, data, policy } = messageTo(chances, chances.pick(rows).id, true)
    const sentAs = kind === 'topic-signal' ? kind : 'signal'
    return {
      kind: 'signal-sent',
      name: 's',
      meta: { to, signal, kind: sentAs, policy, ...bound(chances, 'mostUnread') },
      data,
    }
  })
}

function bound<Name extends string>(chances: Chances, name: Name): Partial<Record<Name, number>> {
  return chances.oneIn(3) ? ({ [name]: 1 + chances.below(3) } as Record<Name, number>) : {}
}
