// `ctx.until` polls a condition at an interval, and checks it at once when a signal arrives. It is made of a step, a signal
// and a sleep, and each check is a step of its own, so that a replay does not check again.

import type { Host } from '../../core/definition/definition.ts'
import { someTime, toMs } from '../../core/definition/duration.ts'
import { checkOptions } from '../../core/text/suggest.ts'
import type { StepTools } from '../../core/runtime/attempt.ts'
import type { Context, Falsy, UntilOptions } from './context.ts'
import { notAFunction } from './misuse.ts'
import { quotedText } from '../../core/text/printable.ts'

export function untilMs(name: string, options: UntilOptions, host: Host): number {
  const where = `until ${quotedText(name)}`
  checkOptions(options, ['every'], where)
  return options.every === undefined ? host.untilIntervalMs : toMs(options.every, `every of ${where}`, someTime)
}

export async function until<Result>(
  ctx: Context,
  name: string,
  check: (step: StepTools) => Result | PromiseLike<Result>,
  everyMs: number,
): Promise<Exclude<Awaited<Result>, Falsy>> {
  if (typeof check !== 'function') throw notAFunction(`ctx.until ${quotedText(name)}`)
  for (;;) {
    const found = await ctx.step(name, check)
    if (found) return found as Exclude<Awaited<Result>, Falsy>
    await ctx.race({ signal: ctx.receive(name), due: ctx.sleep(everyMs) })
  }
}
