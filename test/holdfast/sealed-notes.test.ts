// Notes of who pauses, resumes and retries runs, in an encrypted database: each is shown at its own entry to who has the key, and
// nowhere else, and nobody without a key can put one in.

import { describe, expect, it } from 'vitest'
import { workflow, type JournalEntry } from 'holdfast'
import { canary, EncryptedFile, type Row } from './encrypted-corpus.ts'
import { gate, until } from './gate.ts'

const listener = workflow('listener', async (ctx, _input: string) => ctx.receive('pay'))
const all = [listener]

describe('of all notes in an encrypted database', () => {
  it('a note of who controls is shown to who has the key, and nowhere but at its run and what was done to it', async () => {
    const file = new EncryptedFile()
    await file.fill()
    const holdfast = await file.open()
    const isNote = ({ table, place }: Row): boolean =>
      table === 'journal' && ['paused', 'resumed', 'retried'].includes(place.kind)
    const notes = file.rows().filter(isNote)
    const kinds = ['paused', 'paused', 'paused', 'resumed', 'resumed', 'retried', 'retried']
    expect(notes.map(({ place }) => place.kind).toSorted()).toEqual(kinds)
    const shown = async ({ place, seq }: Row): Promise<Partial<JournalEntry> | undefined> =>
      (await holdfast.journal(place.runId)).find((entry) => entry.seq === seq)
    for (const here of notes) {
      const entry = await shown(here)
      expect(entry).toMatchObject({
        meta: { note: expect.stringMatching(new RegExp(`${here.place.kind} (?:again )?for ${canary}`)) as string },
      })
      expect(entry).not.toHaveProperty('unreadable')
      for (const there of notes.filter((one) => one !== here)) {
        file.put(here, there.text)
        expect(await shown(here)).toMatchObject({ meta: { note: null }, unreadable: { key: null } })
        file.put({ ...here, text: there.text }, here.text)
      }
      file.put(here, '"forged in plain text"')
      expect(await shown(here)).toMatchObject({ meta: { note: null }, unreadable: { key: null } })
      file.put({ ...here, text: '"forged in plain text"' }, here.text)
      const meta = `json_set(meta, '$.note', 'FORGED: approved')`
      for (const forgery of [`meta = ${meta}`, `meta = ${meta}, data = null`]) {
        file.attacker.prepare(`update journal set ${forgery} where rowid = ?`).run(here.rowid)
        const forged = await shown(here)
        expect(JSON.stringify(forged)).not.toContain('FORGED')
        expect(forged?.unreadable === undefined).toBe(!forgery.includes('data'))
      }
    }
  })

  it('two notes of one kind about one run change no places, also with all that stands beside them in plain text', async () => {
    const file = new EncryptedFile()
    const holdfast = await file.open({ workflows: all })
    await holdfast.work({ signals: false })
    const run = await holdfast.start(listener, 'x')
    for (const note of ['do NOT pay', 'approved']) {
      await until(async () => (await run.status()) === 'waiting')
      await holdfast.pause(run, { note: `paused: ${note}` })
      await holdfast.resume(run, { note: `resumed: ${note}` })
    }
    for (const kind of ['paused', 'resumed']) {
      const found = file.attacker
        .prepare('select seq, meta, data, transition_id as id from journal where kind = ?')
        .all(kind)
      const [one, two] = found as {
        readonly seq: number
        readonly meta: string
        readonly data: string
        readonly id: string
      }[]
      const put = 'update journal set meta = ?, data = ?, transition_id = ? where run_id = ? and seq = ?'
      const forge = (meta: string): void => {
        file.attacker.prepare(put).run(meta, two?.data, 'swapped', run.id, one?.seq)
        file.attacker.prepare(put).run(meta, one?.data, one?.id, run.id, two?.seq)
      }
      for (const sealedFor of [undefined, one?.seq, two?.seq]) {
        forge(JSON.stringify({ ...(JSON.parse(one?.meta ?? '') as object), sealedFor }))
        const notes = (await holdfast.journal(run)).filter((entry) => entry.kind === kind)
        expect(notes).toHaveLength(2)
        for (const entry of notes) expect(entry).toMatchObject({ meta: { note: null }, unreadable: { key: null } })
      }
    }
  })

  it('notes of the engine itself are shown in its own words, whatever a row says', async () => {
    const file = new EncryptedFile()
    const holdfast = await file.open({ workflows: all })
    const run = await holdfast.start(listener, 'x')
    await holdfast.pause(run)
    const forge = (meta: unknown): void => {
      file.attacker.prepare(`update journal set meta = ? where kind = 'paused'`).run(JSON.stringify(meta))
    }
    forge({ reason: 'crashes', note: 'FORGED: died 7 times in a row' })
    expect((await holdfast.journal(run))[1]?.meta).toMatchObject({
      note: expect.stringMatching(/^Its processes died/) as string,
    })
    forge({ reason: 'unreadable', entry: { seq: 1, name: null }, key: null, why: 'it is damaged', note: 'FORGED' })
    const shown = [await holdfast.journal(run), await holdfast.get(run), await holdfast.find()]
    expect(JSON.stringify(shown)).not.toContain('FORGED')
    expect((await holdfast.get(run)).unreadable?.note).toMatch(/^The payload of entry 1 cannot be read: it is damaged/)
    forge({ reason: 'maintenance', note: 'FORGED' })
    expect(await holdfast.journal(run)).toMatchObject([{}, { meta: { note: null }, unreadable: {} }])
  })

  it('a note about a run that is being performed is encrypted while its holder is asked, and in the journal', async () => {
    const file = new EncryptedFile()
    const [begun, go] = [gate(), gate()]
    const busy = workflow('busy', async (ctx) => {
      await ctx.step('long', async () => {
        begun.open()
        await go.passed
      })
      return ctx.step('next', () => 'not before it is resumed')
    })
    const holdfast = await file.open({ workflows: [busy] })
    await holdfast.work()
    const run = await holdfast.start(busy)
    await begun.passed
    expect(await holdfast.pause(run, { note: canary })).toMatchObject({ outcome: 'pausing' })
    const { control_request: asked } = file.attacker.prepare('select control_request from runs').get() as {
      readonly control_request: string
    }
    expect(JSON.parse(asked)).toMatchObject({
      note: null,
      sealedNote: expect.stringMatching(/^enc1\.k1\./) as string,
    })
    go.open()
    await until(async () => (await run.status()) === 'paused')
    const last = (await holdfast.journal(run)).at(-1)
    expect(last).toMatchObject({ kind: 'paused', meta: { reason: 'operator', note: canary }, data: undefined })
  })
})
