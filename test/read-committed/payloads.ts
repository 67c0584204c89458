// Payloads under another key, and who needs which key.

import { countKeys, rewriteObjection } from '../../src/core/rules/claims/readable.ts'
import type { Entry } from '../../src/core/model/entry.ts'
import type { KeyCount, PayloadRewrite, PayloadsRewritten } from '../../src/store.ts'
import type { Execution } from './database/call.ts'

export function otherKeys(x: Execution, keys: readonly string[], atMost: number): Promise<readonly KeyCount[]> {
  return x.run('otherKeys.read', (tx) => countKeys(tx.select(x.tables.runs, {}), keys, atMost))
}

export async function rewritePayloads(x: Execution, request: PayloadRewrite): Promise<PayloadsRewritten> {
  const { runs, journal, messages } = x.tables
  const { runId, seq, keyId } = request
  const [run] = await x.run('rewritePayloads.lock', (tx) => tx.lock(runs, { at: ['id', [runId]] }))
  const objection = rewriteObjection(run, seq)
  if (objection !== null) return objection
  const entries = new Map(request.entries.map((one) => [one.seq, one.data]))
  const texts = new Map(request.messages.map((one) => [one.id, one.data]))
  await x.run('rewritePayloads.write', async (tx) => {
    await tx.update(runs, { at: ['id', [runId]] }, (row) => ({ ...row, keyId }))
    const isGiven = (entry: Entry): boolean => entry.data !== null && entries.has(entry.seq)
    await tx.update(journal, { at: ['run', [runId]], where: ({ entry }) => isGiven(entry) }, (row) => ({
      ...row,
      entry: { ...row.entry, data: entries.get(row.entry.seq) ?? null } as Entry,
    }))
    await tx.update(messages, { at: ['run', [runId]], where: ({ id }) => texts.has(id) }, (row) => ({
      ...row,
      data: texts.get(row.id) ?? row.data,
    }))
  })
  return 'written'
}
