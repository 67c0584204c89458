// Puts an input into the mailbox of its instance, behind those that were enqueued before. An instance that does not exist yet
// has no mailbox: its first input is decided at once, so that one that is rejected leaves nothing.

import type { Definition } from '../../core/definition/definition.ts'
import { assertNotPure } from '../../core/runtime/pure-call.ts'
import { randomUuid } from '../../core/runtime/ports.ts'
import { findInstanceRun } from '../../engine/deciders/cached-instance.ts'
import { inputMessage, inputsFull } from '../../engine/deciders/input-message.ts'
import type { Engine } from '../../engine/engine.ts'
import { abortable } from '../abort-option.ts'
import { checkedInput, decided, type CheckedInput } from './execute.ts'
import type { Enqueued, ExecuteOptions } from './executor.ts'

/** @internal */
export async function enqueueInput(
  engine: Engine,
  decider: Definition | string,
  input: unknown,
  options: ExecuteOptions = {},
): Promise<Enqueued> {
  assertNotPure('holdfast.enqueue()')
  const checked = await checkedInput(engine, { decider, input, options, call: 'enqueue()' })
  return abortable('enqueue()', options.abortSignal, () => enqueued(engine, checked))
}

async function enqueued(engine: Engine, checked: CheckedInput): Promise<Enqueued> {
  const { definition, id, input } = checked
  const commandId = checked.command ?? randomUuid(engine.ports.random)
  return engine.instances.inOrder(definition, id, async (submitted) => {
    const run = await findInstanceRun(engine, definition.type, id)
    if (run === null) return decided(engine, { ...checked, command: commandId })
    const message = await inputMessage(engine, run.id, input, commandId)
    const sent = engine.send(message)
    submitted()
    const { outcome } = await sent
    switch (outcome) {
      case 'delivered':
      case 'queued':
        if (engine.localWorker === null) engine.unclaimedWarning.expect(run.type, run.id)
        return { outcome: 'queued', commandId }
      case 'full':
        throw inputsFull(engine.limits, definition.type, id)
      default:
        // It is over, or was removed in between: its journal, or that of the next one, says what becomes of the input.
        return decided(engine, { ...checked, command: commandId })
    }
  })
}
