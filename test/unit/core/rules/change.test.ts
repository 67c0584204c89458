// A row is written, and those who wait on the run are notified if it has ended with that.

import { expect, it } from 'vitest'
import type { Rewrite } from '../../../../src/core/rules/rewrite.ts'
import { change, type ChangeWork } from '../../../../src/core/rules/change.ts'
import type { Run } from '../../../../src/core/model/run.ts'
import { PlainUnitOfWork } from './unit-of-work.ts'

/** A store whose rows are changed in place, also the one that the caller of the rule has. */
class LiveRows extends PlainUnitOfWork implements ChangeWork {
  write(before: Run, { run }: Rewrite): void {
    Object.assign(before, run)
  }
}

it('an end is reported to those who wait, also by a store that changes the row which it handed out', () => {
  const rows = new LiveRows()
  const run = rows.add('ending', { watched: true })
  rows.add('watcher', { status: 'waiting' })
  const wait = { kind: 'run', target: 'ending', runId: 'watcher', effect: 'notify' } as const
  rows.waits.push({ ...wait, delivery: null, openedAt: 0, since: 0, missed: null })
  rows.lasts.set('ending', { seq: 1, kind: 'cancelled', meta: { reason: null }, data: null })
  const ended: Run = { ...run, status: 'cancelled', endedAt: rows.now }
  change(rows, run, { run: ended, append: [] }, null)
  expect(rows.messageNameOf('watcher')).toEqual(['ended ending'])
})
