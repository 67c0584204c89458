// What a run waits for, and what ended its wait, in words.

import { completionPrefix } from '../../core/completion/completion-token.ts'
import { formatMs } from '../../core/definition/duration.ts'
import type { WokenBy, WokenMeta } from '../../core/model/entry.ts'
import type { RecordedCondition } from '../../core/model/wait-condition.ts'
import { visible } from '../../core/text/printable.ts'
import { pointInTime } from './text.ts'

const endText = {
  succeeded: 'ended',
  failed: 'failed',
  cancelled: 'was cancelled',
  'not-found': 'was found not to exist',
} as const

/** The end of a wait, after the time that it took: of a race, which of its waits came first. */
export function wokenText({ winner, by }: WokenMeta, isRace: boolean): string {
  if (!isRace || winner === '')
    return by === undefined ? '' : `${by.kind === 'refused' ? ': ' : ', until '}${causeText(by)}`
  return `: ${visible(winner)} came first${by === undefined ? '' : ` (${causeText(by)})`}`
}

/** What ended a wait, if it was not time. */
function causeText({ kind, name, ended }: WokenBy): string {
  switch (kind) {
    case 'ended':
      return `run ${visible(name)} ${endText[ended?.status ?? 'succeeded']}`
    case 'refused':
      return `run ${visible(name)} could not be started`
    case 'broadcast':
      return `a broadcast of the topic ${visible(name)} came`
    case 'failure':
      return 'its completion token was refused'
    default:
      return name.startsWith(completionPrefix) ? 'its completion token was used' : `the signal ${visible(name)} came`
  }
}

export function conditionText(condition: RecordedCondition): string {
  switch (condition.kind) {
    case 'time':
      return `until ${pointInTime(new Date(condition.at))}`
    case 'delay':
      return `for ${formatMs(condition.ms)}`
    case 'signal':
      if (condition.name.startsWith(completionPrefix)) return 'for its completion token'
      return `for the ${condition.topic === undefined ? 'signal' : 'topic'} ${visible(condition.name)}`
    case 'run':
      return `for run ${visible(condition.runId)}`
    case 'start':
      return `for the start of run ${visible(condition.runId)}`
  }
}
