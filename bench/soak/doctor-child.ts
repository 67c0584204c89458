// The process that checks all invariants whenever it is asked. It is not the worker's, whose memory and event loop it would
// spoil, and it reads everything: the longer a soak lasts, the longer that takes.

import { createHoldfast } from 'holdfast'
import { logger } from '../logger.ts'
import { serveParent } from './child-process.ts'
import { openPlace, type Place } from './place.ts'
import type { Visit } from './sample.ts'

export interface DoctorTask {
  readonly place: Place
}

export type Diagnosis = Visit['violations']

await serveParent(async (task) => {
  const { place } = task as DoctorTask
  const store = await openPlace(place)
  const holdfast = await createHoldfast({ store, logger, migrate: false })
  return {
    async answer(): Promise<Diagnosis> {
      const checked = await holdfast.doctor()
      return checked.filter(({ offenders }) => offenders.length > 0)
    },
    async close() {
      await holdfast.close()
      await store.close()
    },
  }
})
