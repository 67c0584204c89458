// An attacker who can write to the database, but has no key, rewrites what is kept in plain text beside the payloads: kinds, names,
// statuses and meta. None of it makes a text be read as something else, and no row that the engine did not write keeps a worker
// busy, or anybody from seeing the other runs.

import { describe, expect, it } from 'vitest'
import { workflow, type Holdfast } from 'holdfast'
import { EncryptedFile } from './encrypted-corpus.ts'
import { until } from './gate.ts'

const child = workflow('child', async (ctx, _input: string) => ctx.receive('end'))
const parent = workflow('parent', { retry: 'none' }, async (ctx, input: string) => [
  'saw',
  await ctx.child(child, input),
])
const listener = workflow('listener', { retry: 'none' }, async (ctx) => ['got', await ctx.receive('pay')])
const undone: unknown[] = []
const steps = workflow('steps', { retry: 'none' }, async (ctx) => {
  const price = await ctx.step('price', () => 10, { undo: (result) => void undone.push(result) })
  const limit = await ctx.step('limit', () => 20)
  if ((await ctx.receive('go')) === 'fail') throw new Error('failed')
  return { price, limit }
})
const other = workflow('other', async () => 'ok')

const workflows = [child, parent, listener, steps, other]

interface Rest {
  readonly status: string
  readonly output: unknown
  readonly note: string | undefined
  readonly story: readonly string[]
}

/** Lets a new process have a go, until the run moves no more. */
async function restOf(file: EncryptedFile, runId: string): Promise<Rest> {
  const holdfast = await file.open({ workflows })
  await holdfast.work({ signals: false })
  await until(async () => ['failed', 'paused', 'succeeded', 'cancelled'].includes(await holdfast.run(runId).status()))
  const view = await holdfast.get(runId)
  const story = (await holdfast.journal(runId)).map(({ kind }) => kind)
  await holdfast.close()
  return { status: view.status, output: view.output, note: view.unreadable?.note, story }
}

/** A parent that waits for its child, which has ended without the body having been notified. */
async function parentOfEnded(file: EncryptedFile): Promise<{ readonly id: string; readonly childId: string }> {
  const holdfast = await file.open({ workflows })
  const worker = await holdfast.work({ signals: false })
  const run = await holdfast.start(parent, 'paid 1000000 to EVIL')
  await until(async () => (await holdfast.find({ type: 'child', status: 'waiting' })).runs.length === 1)
  await until(async () => (await run.status()) === 'waiting')
  await worker.stop()
  const [started] = (await holdfast.find({ type: 'child' })).runs
  await holdfast.cancel(started?.id ?? '')
  await holdfast.close()
  return { id: run.id, childId: started?.id ?? '' }
}

async function waiting(holdfast: Holdfast, type: 'steps' | 'listener'): Promise<string> {
  const run = await holdfast.start(type)
  await until(async () => (await run.status()) === 'waiting')
  return run.id
}

describe('what a parent gets from the end of a child', () => {
  it('does not pass off the input of the child as its output by a status that no end has', async () => {
    const file = new EncryptedFile()
    const { id, childId } = await parentOfEnded(file)
    const input = file.rows().find(({ place }) => place.runId === childId && place.kind === 'started')
    for (const status of ['started', 'step-succeeded', 'recorded', 'constructor', 'succeeded']) {
      const data = JSON.stringify({ status, seq: 1, data: input?.text, reason: null })
      const { changes } = file.attacker.prepare(`update messages set data = ? where kind = 'ended'`).run(data)
      expect(changes).toBe(1)
      const { status: found, story } = await restOf(file, id)
      expect([status, found, story.filter((kind) => kind === 'woken')]).toEqual([status, 'paused', []])
      const holdfast = await file.open({ workflows })
      await holdfast.resume(id)
      await holdfast.close()
    }
  })

  it.each([
    ['a success without an output', { status: 'succeeded', seq: 2, data: null, reason: null }],
    ['a failure without an error', { status: 'failed', seq: 2, data: null, reason: null }],
    ['no status', {}],
    ['a number', 7],
    ['null', null],
    ['a list', []],
  ])('is not %s: the run is paused, with the message, and no worker is kept busy', async (_, damaged) => {
    const file = new EncryptedFile()
    const { id } = await parentOfEnded(file)
    file.attacker.prepare(`update messages set data = ? where kind = 'ended'`).run(JSON.stringify(damaged))
    const { status, note, story } = await restOf(file, id)
    expect([status, story.filter((kind) => kind === 'woken')]).toEqual(['paused', []])
    expect(note).toMatch(/^Message "ended:[^"]+" is damaged: .* Put its row back as it was, then resume the run\./)
    const { token } = file.attacker.prepare('select token from runs where id = ?').get(id) as { readonly token: number }
    expect(token).toBeLessThan(5)
  })

  it('is not read from what an entry says of it, if that is none of the ends that there are', async () => {
    const file = new EncryptedFile()
    const holdfast = await file.open({ workflows })
    const worker = await holdfast.work({ signals: false })
    const run = await holdfast.start(parent, 'x')
    await until(async () => (await holdfast.find({ type: 'child', status: 'waiting' })).runs.length === 1)
    const [started] = (await holdfast.find({ type: 'child' })).runs
    await holdfast.signal(started?.id ?? '', 'end', 'safe')
    expect(await run.result()).toEqual(['saw', 'safe'])
    await worker.stop()
    await holdfast.close()
    const forge = (meta: string): void => {
      file.attacker.prepare(`update journal set meta = ${meta} where run_id = ? and kind = 'woken'`).run(run.id)
    }
    for (const meta of [
      `json_set(meta, '$.by.ended.status', 'started')`,
      `json_remove(meta, '$.by.ended')`,
      `json_set(meta, '$.by.kind', 'signal')`,
      `json_set(meta, '$.by.kind', 'started')`,
      `json_remove(meta, '$.by')`,
      `'{x'`,
    ]) {
      forge(meta)
      const [entry] = (await (await file.open({ workflows })).journal(run.id)).filter(({ seq }) => seq === 3)
      const replayed = await (await file.open({ workflows })).replay(run.id)
      expect([meta, entry?.kind === 'damaged' || meta.includes("'signal'"), replayed.outcome]).toEqual([
        meta,
        true,
        'throws',
      ])
      forge(
        `'${JSON.stringify({ winner: 'child', trueAt: 1, seenAt: 1, by: { id: 'ended:x', kind: 'ended', name: started?.id, ended: { status: 'succeeded', reason: null } } })}'`,
      )
    }
  })
})

describe('a wait for a signal', () => {
  it.each([
    ['ended', '{"status":"not-found"}'],
    ['ended', '{"status":"succeeded","seq":1,"data":null,"reason":null}'],
    ['ended', 'null'],
    ['ended', '{x'],
    ['refused', '{"taken":"id","by":"x"}'],
    ['refused', '7'],
    ['weird', '"x"'],
  ])('takes no message of another kind: %s %s pauses the run, and its body sees nothing', async (kind, data) => {
    const file = new EncryptedFile()
    const holdfast = await file.open({ workflows })
    const run = await holdfast.start(listener)
    await holdfast.signal(run, 'pay', { amount: 5 }, { id: 'one' })
    await holdfast.close()
    file.attacker.prepare('update messages set kind = ?, data = ?').run(kind, data)
    const { status, note, story } = await restOf(file, run.id)
    expect([status, story]).toEqual(['paused', ['started', 'waiting', 'paused']])
    expect(note).toContain('Message "one" is damaged')
  })

  it('does not get a signal whose payload was taken out of the journal', async () => {
    const file = new EncryptedFile()
    const holdfast = await file.open({ workflows })
    const run = await holdfast.start(steps)
    const worker = await holdfast.work({ signals: false })
    await until(async () => (await run.status()) === 'waiting')
    await holdfast.signal(run, 'go', 'on')
    expect(await run.result()).toEqual({ price: 10, limit: 20 })
    await worker.stop()
    for (const column of ['data = null', `meta = json_remove(meta, '$.by'), data = null`]) {
      file.attacker.prepare(`update journal set ${column} where run_id = ? and kind = 'woken'`).run(run.id)
      expect((await holdfast.replay(run)).outcome).toBe('throws')
    }
  })
})

describe('a repaired result', () => {
  it('is not moved to another step by the number in its meta: the run is paused', async () => {
    const file = new EncryptedFile()
    const holdfast = await file.open({ workflows })
    await holdfast.work({ signals: false })
    const id = await waiting(holdfast, 'steps')
    await holdfast.pause(id)
    const journal = await holdfast.journal(id)
    const [price, limit] = ['price', 'limit'].map(
      (name) => journal.find(({ kind, name: of }) => kind === 'step-succeeded' && of === name)?.seq ?? 0,
    )
    await holdfast.resume(id, { amend: [{ seq: limit ?? 0, result: 1_000_000 }] })
    await until(async () => (await holdfast.run(id).status()) === 'waiting')
    await holdfast.signal(id, 'other')
    await holdfast.close()
    const redirect = `update journal set meta = json_set(meta, '$.seq', ?) where run_id = ? and kind = 'amended'`
    file.attacker.prepare(redirect).run(price, id)
    const again = await file.open({ workflows })
    await again.signal(id, 'go', 'fail')
    await again.close()
    const { status, note } = await restOf(file, id)
    expect(status).toBe('paused')
    expect(note).toMatch(/^Entry \d+ \("limit"\) is damaged: the outcome that it repairs is another one/)
    expect(undone).toEqual([])
    // Put back as it was, it goes on.
    file.attacker.prepare(redirect).run(limit, id)
    const after = await file.open({ workflows })
    await after.resume(id)
    await after.close()
    expect((await restOf(file, id)).status).toBe('failed')
    expect(undone).toEqual([10])
  })
})

describe('a row that the engine did not write', () => {
  const damage = [
    [`update journal set meta = '{x' where run_id = ? and kind = 'step-succeeded'`, 'Entry 3'],
    [`update journal set meta = null where run_id = ? and kind = 'step-succeeded'`, 'Entry 3'],
    [`update journal set data = null where run_id = ? and kind = 'step-succeeded'`, 'Entry 3'],
    [`update journal set kind = 'step-finished' where run_id = ? and seq = 2`, 'Entry 2'],
    [`update journal set meta = '7' where run_id = ? and kind = 'waiting'`, 'Entry 5'],
    [`update journal set meta = '{"conditions":[null]}' where run_id = ? and kind = 'waiting'`, 'Entry 5'],
    [`update journal set meta = '{"maxAttempts":"9"}' where run_id = ? and kind = 'started'`, 'Entry 1'],
    [`update journal set kind = 'weird' where run_id = ? and kind = 'started'`, 'Entry 1'],
  ] as const

  it.each(damage)('pauses its run, with the entry, and keeps no worker busy: %s', async (statement, damaged) => {
    const file = new EncryptedFile()
    const holdfast = await file.open({ workflows })
    await holdfast.work({ signals: false })
    const id = await waiting(holdfast, 'steps')
    await holdfast.signal(id, 'go', 'on')
    await holdfast.close()
    const reset = `update runs set status = 'pending', readiness = 'ready', due = 0, ended_at = null, seq = 5 where id = ?`
    file.attacker.prepare('delete from journal where run_id = ? and seq > 5').run(id)
    file.attacker.prepare(reset).run(id)
    file.attacker.prepare(statement).run(id)
    const { status, note, story } = await restOf(file, id)
    expect(status).toBe('paused')
    expect(note).toMatch(new RegExp(`^${damaged}.* is damaged`))
    expect(story).toContain('damaged')
    const { token } = file.attacker.prepare('select token from runs where id = ?').get(id) as { readonly token: number }
    expect(token).toBeLessThan(8)
  })

  it.each([
    ['tags', '{x'],
    ['tags', '{"a":1}'],
    ['metadata', '{x'],
    ['metadata', '7'],
    ['control_request', '{x'],
    ['control_request', '{"kind":"pause"}'],
    ['wake_names', '{"token":1,'],
  ])('in %s (%s) keeps nobody from finding, showing or performing other runs', async (column, text) => {
    const file = new EncryptedFile()
    const holdfast = await file.open({ workflows })
    const damaged = await holdfast.start(listener)
    await holdfast.work({ signals: false })
    await until(async () => (await damaged.status()) === 'waiting')
    file.attacker.prepare(`update runs set ${column} = ? where id = ?`).run(text, damaged.id)
    const well = await holdfast.start(other)
    expect(await well.result()).toBe('ok')
    const { runs } = await holdfast.find()
    const shown = runs.find(({ id }) => id === damaged.id)
    expect(runs).toHaveLength(2)
    if (column !== 'wake_names')
      expect(shown?.unreadable?.note).toContain(`The row of this run is damaged: ${column} is not`)
    expect(runs.find(({ id }) => id === well.id)?.unreadable).toBeNull()
    // The doctor looks at the others, and names this one.
    const report = await holdfast.doctor()
    const named = report.filter(({ offenders }) => offenders.includes(damaged.id)).map(({ name }) => name)
    if (column !== 'wake_names') expect(named).toContain('rows_well_formed')
    await holdfast.signal(damaged, 'pay', 5)
    expect(await damaged.result()).toEqual(['got', 5])
  })

  it.each([
    ['the time at which it ends', 'timeout_at = -9223372036854775808'],
    ['a time beside it, when it has to end', 'timeout_at = -1, expires_at = 9223372036854775807'],
    ['its counts, when it has to end', 'timeout_at = -1, inbox = 9223372036854775807, crashes = 9223372036854775807'],
  ])('with a number that is larger than any of the engine keeps no worker from starting: %s', async (_, columns) => {
    const file = new EncryptedFile()
    const first = await file.open({ workflows })
    const worker = await first.work({ signals: false })
    const run = await first.start(listener, undefined, { timeout: '1h' })
    await until(async () => (await run.status()) === 'waiting')
    await worker.stop()
    await first.close()
    expect(file.attacker.prepare(`update runs set ${columns}`).run().changes).toBe(1)
    const holdfast = await file.open({ workflows })
    await holdfast.work({ signals: false })
    expect(await (await holdfast.start(other)).result()).toBe('ok')
    await until(async () => (await holdfast.run(run.id).status()) === 'failed')
    await holdfast.close()
  })

  it('in a journal is named by the doctor, which checks all other runs as before', async () => {
    const file = new EncryptedFile()
    const holdfast = await file.open({ workflows })
    await holdfast.work({ signals: false })
    const [one, two] = [await waiting(holdfast, 'steps'), await waiting(holdfast, 'listener')]
    file.attacker.prepare(`update journal set meta = '{x' where run_id = ? and kind = 'waiting'`).run(one)
    file.attacker.prepare(`update runs set due = 1 where id = ?`).run(two)
    const report = await holdfast.doctor()
    const of = (id: string): readonly string[] =>
      report.filter(({ offenders }) => offenders.includes(id)).map(({ name }) => name)
    expect(of(one)).toEqual(['rows_well_formed'])
    expect(of(two)).toContain('status_fields_match')
  })

  it.each(['{x', 'null', '{"status":"started","seq":1,"data":"x","reason":null}'])(
    'keeps nobody from encrypting all other runs anew: %s is left as it is, counted and named',
    async (data) => {
      const file = new EncryptedFile()
      const { id } = await parentOfEnded(file)
      file.attacker.prepare(`update messages set data = ? where kind = 'ended'`).run(data)
      const key = file.addKey('k2')
      const holdfast = await file.open({ workflows, codec: key })
      const well = await (await file.open({ workflows })).start(other)
      const done = await holdfast.rekey()
      expect(done).toMatchObject({ unreadable: 1, rewritten: 2, next: null, missingKeys: [] })
      expect(done.unreadableRuns).toEqual([
        { runId: id, why: expect.stringMatching(/^Message "ended:.* is damaged: no run can have ended so/) as string },
      ])
      const left = file.rows().filter(({ text }) => text.startsWith('enc1.k1.'))
      expect(new Set(left.map(({ place }) => place.runId))).toEqual(new Set([id]))
      expect(file.rows().some(({ place, text }) => place.runId === well.id && text.startsWith('enc1.k2.'))).toBe(true)
    },
  )
})
