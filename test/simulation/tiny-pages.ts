// Pages so small that a simulation of a few runs leaves chores, and so often that topics go: every other seed has them.

import type { PageLimits } from '../../src/core/model/chore.ts'

export const tinyPages: PageLimits = {
  withEnd: 1,
  withEnds: 1,
  watchers: 1,
  messages: 1,
  subscribers: 1,
  passedOn: 1,
  late: 1,
  missed: 1,
  sent: 1,
  topicWaits: 1,
  topicRestMs: 50,
  rememberedMs: 600,
}
