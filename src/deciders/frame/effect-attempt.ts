// One attempt of one effect: it is the argument of the handler, too. Its key is that of the effect, the same in every run that
// performs it.

import type { EffectTools } from '../../core/definition/decider-model.ts'
import { Attempt } from '../../core/runtime/attempt.ts'

type AttemptOf = ConstructorParameters<typeof Attempt>

/** What the attempts of one effect have in common. */
export interface AttemptedEffect extends Pick<EffectTools, 'effectId' | 'workflow' | 'createdAt' | 'services'> {
  readonly type: string
}

export class EffectAttempt extends Attempt implements EffectTools {
  readonly effectId: string
  readonly workflow: EffectTools['workflow']
  readonly createdAt: Date
  readonly services: EffectTools['services']

  constructor(frame: AttemptOf[0], { type, effectId, workflow, createdAt, services }: AttemptedEffect, number: number) {
    super(frame, type, number)
    this.effectId = effectId
    this.workflow = workflow
    this.createdAt = createdAt
    this.services = services
  }

  override get idempotencyKey(): string {
    const { type, id } = this.workflow
    return `${type}:${id}:${this.effectId}`
  }

  override toJSON(): object {
    const { effectId, workflow, createdAt } = this
    return { ...super.toJSON(), effectId, workflow, createdAt }
  }
}
