// An event of an instance on one line.

import type { HistoricEvent } from '../../client/deciders/instance-views.ts'
import { visible } from '../../core/text/printable.ts'
import { jsonLine } from './plain-json.ts'
import { pointInTime } from './text.ts'

/** `    3  2026-11-16 00:41:45.883Z  {"type":"Paid"}  after Pay, command payment-7` */
export function eventLine({ seq, at, event, cause }: HistoricEvent): string {
  const { input, from, commandId } = cause
  const source = input === null ? from.kind : input
  const command = commandId === null ? '' : `, command ${visible(commandId)}`
  return `${String(seq).padStart(5)}  ${pointInTime(at, { isExact: true })}  ${jsonLine(event)}  after ${visible(source)}${command}`
}
