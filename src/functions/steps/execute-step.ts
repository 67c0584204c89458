// `ctx.execute`: an input of a decider as a step. The key of the step is the id of the command, so an input whose answer was lost
// with its process is not decided again. It is tried again for as long as the instance cannot take it.

import type { DeciderTypes, Executed, TypedDecider } from '../../core/definition/decider-model.ts'
import type { Host } from '../../core/definition/definition.ts'
import { HoldfastError, isHoldfastError } from '../../core/errors/error.ts'
import { shown } from '../../core/text/suggest.ts'
import type { StepTools } from '../../core/runtime/attempt.ts'
import type { Context } from '../api/context.ts'

export function executeStep<Types extends DeciderTypes>(
  ctx: Pick<Context, 'step'>,
  host: Pick<Host, 'execute'>,
  decider: TypedDecider<Types>,
  input: Types['input'],
): Promise<Executed<Types>> {
  const type: unknown = (decider as { readonly type?: unknown } | null | undefined)?.type
  if (typeof type !== 'string') {
    const message = `ctx.execute takes a decider, made by decider(). Got ${shown(decider)}.`
    return Promise.reject(new HoldfastError('INVALID_OPTION', message))
  }
  const execute = async ({ idempotencyKey }: StepTools): Promise<Executed<Types>> => {
    const answer = (await host.execute?.(decider, input, { commandId: idempotencyKey })) as Executed<Types>
    return answer.outcome === 'accepted' ? { ...answer } : answer
  }
  return ctx.step(`execute:${type}`, execute, { retry: { maxAttempts: Infinity, retryable: mayPass } })
}

/**
 * What the caller or the decider is to blame for is so at every attempt. The rest passes: the instance is paused, another process
 * holds it, its mailbox is full, or the store is away.
 */
function mayPass(error: unknown): boolean {
  if (!isHoldfastError(error)) return true
  return error.family !== 'usage' && error.code !== 'RUN_EXISTS' && error.code !== 'INPUT_CONFLICT'
}
