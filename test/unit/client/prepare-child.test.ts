// A run that another one starts: checked as a start is, and placed where its parent can start it with its own commit.

import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Client } from '../../../src/client/client.ts'
import { jsonCodec } from '../../../src/core/payload/codec.ts'
import { createRunIds, shardOf } from '../../../src/core/model/run-id.ts'
import { Payloads } from '../../../src/core/payload/payload.ts'
import { shardForNew } from '../../../src/core/rules/shard-routing.ts'
import { Engine } from '../../../src/engine/engine.ts'
import { workflow } from '../../../src/functions/api/workflow.ts'
import { MemoryStore } from '../../../src/stores/memory/store.ts'
import { systemPorts } from '../../../src/system.ts'

const plain = workflow('plain', { tags: ['t'] }, (_ctx, n: number) => n)
const checked = workflow('checked', { input: z.string().transform((text) => text.length) }, (_ctx, n) => n)
const patient = workflow('patient', { input: z.string().refine(async (text) => text !== '') }, (_ctx, text) => text)

function world(shards: number) {
  const ports = systemPorts()
  const store = new MemoryStore({ clock: ports.clock })
  const capabilities = { ...store.capabilities, shards }
  const sharded = new Proxy(store, {
    get: (target, key) => (key === 'capabilities' ? capabilities : (Reflect.get(target, key) as unknown)),
  })
  const definitions = [plain, checked, patient]
  const engine = new Engine({ store: sharded, ports, payloads: new Payloads(jsonCodec()), definitions })
  const client = new Client(engine, undefined)
  const parentId = createRunIds(ports).next(5)
  const prepare = (
    definition: Parameters<typeof client.prepareChild>[0]['workflow'],
    input: unknown,
    options: Readonly<Record<string, unknown>> = {},
  ) => client.prepareChild({ parentId, workflow: definition, input, options })
  return { prepare, parentId }
}

describe('a child', () => {
  it('belongs to its parent, lives in its shard, and is leased to nobody', () => {
    const { prepare, parentId } = world(8)
    const run = prepare(plain, 3, { priority: 7, tags: ['u'], maxAttempts: 2 })
    expect(run).toMatchObject({
      type: 'plain',
      version: 1,
      shard: 5,
      parentId,
      priority: 7,
      tags: ['t', 'u'],
      lease: null,
      key: null,
      first: { kind: 'started', meta: { maxAttempts: 2 }, data: '3' },
    })
    expect(shardOf((run as { readonly id: string }).id)).toBe(5)
  })

  it('with a key lives in the shard of that', () => {
    const { prepare } = world(8)
    const routed = { key: 'k', idempotencyKey: null }
    const shard = shardForNew(routed, 8, systemPorts().random)
    expect(prepare(plain, 3, { key: 'k' })).toMatchObject({ key: 'k', shard })
  })

  it('is ready at once unless its schema needs time', async () => {
    const { prepare } = world(1)
    expect(prepare(checked, 'four')).toMatchObject({ first: { data: '4' } })
    const later = prepare(patient, 'x')
    expect(later).toBeInstanceOf(Promise)
    expect(await later).toMatchObject({ first: { data: '"x"' } })
  })

  it('is refused for what would be wrong with a start', async () => {
    const { prepare } = world(1)
    expect(() => prepare(checked, 3)).toThrow(expect.objectContaining({ code: 'INVALID_INPUT' }) as Error)
    await expect(prepare(patient, '')).rejects.toMatchObject({ code: 'INVALID_INPUT' })
    expect(() =>
      prepare(
        workflow('other', () => 1),
        3,
      ),
    ).toThrow(expect.objectContaining({ code: 'WORKFLOW_UNKNOWN' }) as Error)
    for (const options of [{ onConflict: 'return' }, { parent: 'x' }, { priorty: 1 }, { id: 'x' }]) {
      expect(() => prepare(plain, 3, options)).toThrow(expect.objectContaining({ code: 'INVALID_OPTION' }) as Error)
    }
    expect(() => prepare(plain, () => 1)).toThrow(expect.objectContaining({ code: 'NOT_STORABLE' }) as Error)
  })
})
