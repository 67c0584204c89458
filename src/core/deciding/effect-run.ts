// Effects are runs: the effect `charge` of decider `order` is performed by a run of type `order/charge`, which the transition
// starts that asks for it. So leases, crashes, shutdown, retries and dead letters are those of runs.
//
// The id of that run follows from the instance and the number of the entry, so a journal says which run performs what, and one
// entry never starts two.

import type { EffectRequest } from '../definition/decider-model.ts'
import { effectType } from '../rules/effect-type.ts'
import type { NewRun } from '../model/new-run.ts'
import { derivedRunId } from '../model/run-id.ts'
import type { Run } from '../model/run.ts'
import type { ChildStart } from '../model/transition.ts'
import type { Payloads } from '../payload/payload.ts'
import type { Digest } from '../runtime/ports.ts'

/** The id of the run that performs the effect of that entry of an instance. */
export function effectRunId(digest: Pick<Digest, 'sha256'>, runId: string, seq: number): string {
  return derivedRunId(runId, digest.sha256(`${runId}:${seq}`))
}

/** The metadata of such a run: the instance and the effect, in the words of its decider. */
export interface EffectOrigin {
  /** The id of the instance. */
  readonly id: string
  /** The name of the effect in the journal of the instance: `charge#17`. */
  readonly effect: string
}

export interface EffectStartOptions {
  readonly instance: Pick<Run, 'id' | 'shard' | 'type' | 'version' | 'priority'> & { readonly instanceId: string }
  readonly request: EffectRequest
  readonly payloads: Payloads
  readonly digest: Pick<Digest, 'sha256'>
  readonly transition: string
}

/** The start of the run that performs an effect. A large effect is offloaded before it is settled. */
export function effectStart(options: EffectStartOptions): ChildStart | Promise<ChildStart> {
  const { instance, request, payloads, digest } = options
  const id = effectRunId(digest, instance.id, request.seq)
  const place = payloads.place(id, 1, 'started', null)
  const text = payloads.encode(request.effect, place)
  const data = payloads.keep(text, place)
  const keyId = payloads.keyOf(text)
  return typeof data === 'string'
    ? started(options, id, data, keyId)
    : data.then((kept) => started(options, id, kept, keyId))
}

function started(
  { instance, request, transition }: EffectStartOptions,
  id: string,
  data: string,
  keyId: string | null,
): ChildStart {
  const origin: EffectOrigin = { id: instance.instanceId, effect: request.name }
  const run: NewRun = {
    id,
    shard: instance.shard,
    type: effectType(instance.type, request.type),
    version: instance.version,
    key: null,
    keyScope: 'workflow',
    idempotencyKey: null,
    parentId: instance.id,
    tags: [],
    metadata: JSON.stringify(origin),
    feed: false,
    keyId,
    priority: instance.priority,
    due: null,
    timeoutMs: null,
    expiresInMs: null,
    lease: null,
    leaseMs: null,
    transition,
    first: { kind: 'started', name: null, meta: null, data },
  }
  return { run, awaited: true, onParentEnd: 'cancel' }
}
