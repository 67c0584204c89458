// Deciders and real processes: many writers of few instances, and processes that are killed or stopped while they perform an
// effect.

import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createHoldfast, type Holdfast } from 'holdfast'
import { silentLogger } from 'holdfast/testing'
import { childProgram } from '../support/child-program.ts'
import { migratedSchema } from '../support/postgres-shared.ts'
import { until } from '../support/until.ts'
import { tally, type DeciderRequest, type DeciderTask } from './tally.ts'

interface Place {
  readonly store: string
  readonly log: string
}

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), 'holdfast-deciders-'))
  onTestFinished(() => rmSync(made, { recursive: true }))
  return made
}

const places: readonly { readonly name: string; readonly make: () => Promise<Place> }[] = [
  {
    name: 'sqlite',
    make: async () => {
      const path = join(folder(), 'runs.db')
      const first = await createHoldfast({ store: `sqlite:${path}`, logger: silentLogger })
      await first.close()
      return { store: `sqlite:${path}`, log: `${path}.log` }
    },
  },
  {
    name: 'postgres',
    make: async () => {
      const { url, schema } = await migratedSchema()
      return { store: `${url}?schema=${schema}`, log: join(folder(), 'effects.log') }
    },
  },
]

async function child(task: DeciderTask): Promise<ChildProcess> {
  const program = await childProgram('test/chaos/decider-child.ts')
  const made = spawn(process.execPath, [program, JSON.stringify(task)], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  onTestFinished(() => void made.kill('SIGKILL'))
  await once(made, 'message')
  return made
}

async function asked(made: ChildProcess, request: DeciderRequest): Promise<readonly string[]> {
  const accepted: string[] = []
  const done = new Promise<void>((resolve, reject) => {
    made.on('message', (message: { accepted?: readonly string[]; done?: string; error?: string }) => {
      accepted.push(...(message.accepted ?? []))
      if (message.error !== undefined) reject(new Error(message.error))
      if (message.done === request.kind) resolve()
    })
  })
  made.send(request)
  await done
  return accepted
}

async function opened(place: Place): Promise<{ holdfast: Holdfast; counting: ReturnType<typeof tally> }> {
  const counting = tally({ log: place.log, effects: 'end' })
  const holdfast = await createHoldfast({ store: place.store, workflows: [counting], logger: silentLogger })
  onTestFinished(() => holdfast.close())
  return { holdfast, counting }
}

function performed(place: Place): readonly string[] {
  return existsSync(place.log) ? readFileSync(place.log, 'utf8').trim().split('\n') : []
}

/** Inputs of each writer: a few instances that all of them want, and some that hardly anybody else does. */
function targetsOf(process: number, writers: number, hot: number, cold: number): readonly (readonly string[])[] {
  return Array.from({ length: writers }, (_, writer) => {
    const nth = process * writers + writer
    const own = Array.from({ length: 8 }, (_one, at) => `cold${(nth * 8 + at) % cold}`)
    return Array.from({ length: 24 }, (_one, at) =>
      at % 3 === 2 ? (own[(at - 2) / 3] ?? '') : `hot${(nth + at) % hot}`,
    )
  })
}

describe.each(places)('deciders in several processes on $name', ({ make }) => {
  it('IF-C1 IF-C4 decide every accepted command of 64 writers once, in gapless journals whose fold is the state', async () => {
    const place = await make()
    const { holdfast, counting } = await opened(place)
    const tasks = [0, 1, 2, 3].map((at) => ({ ...place, name: `p${at}`, effects: 'end' }) as const)
    const children = await Promise.all(tasks.map(child))
    await Promise.all(children.slice(0, 2).map((made) => asked(made, { kind: 'work', lease: '20s' })))
    const writers = 16
    const accepted = await Promise.all(
      children.map((made, at) => asked(made, { kind: 'write', writers, targets: targetsOf(at, writers, 4, 500) })),
    )
    const commands = accepted.flat()
    expect(commands).toHaveLength(4 * writers * 24)
    const seen: string[] = []
    for (let after: string | undefined; ;) {
      const page = await holdfast.find({ type: 'tally', limit: 200, ...(after === undefined ? {} : { after }) })
      for (const run of page.runs) {
        const id = run.idempotencyKey ?? ''
        const entries = await holdfast.journal(run.id, { limit: 10_000 })
        expect(entries.map(({ seq }) => seq)).toEqual(entries.map((_, at) => at + 1))
        const events = await holdfast.events(counting, id)
        const by = events.map((event) => (event.type === 'Added' ? event.by : ''))
        seen.push(...by)
        const folded = { sum: by.length, by: Object.fromEntries(by.map((one) => [one, 1])), mails: 0 }
        expect(await holdfast.state(counting, id)).toEqual(folded)
      }
      if (page.next === null) break
      after = page.next
    }
    expect(seen.toSorted()).toEqual(commands.toSorted())
    for (const { name, offenders } of await holdfast.doctor())
      expect({ name, offenders }).toEqual({ name, offenders: [] })
  })

  it('IF-C3 IF-R6 perform an effect again whose process died before it could say so, and decide one result', async () => {
    const place = await make()
    const { holdfast, counting } = await opened(place)
    const victim = await child({ ...place, name: 'victim', effects: 'dies' })
    const heir = await child({ ...place, name: 'heir', effects: 'end' })
    await asked(victim, { kind: 'work', lease: '1s' })
    await holdfast.execute(counting, { type: 'Mail', id: '1', by: 'me' })
    await once(victim, 'exit')
    await asked(heir, { kind: 'work', lease: '1s' })
    await until('its result is decided', async () => (await holdfast.state(counting, '1'))?.mails === 1)
    expect(performed(place)).toEqual([`${victim.pid} tally:1:4`, `${heir.pid} tally:1:4`])
    await holdfast.execute(counting, { type: 'Add', id: '1', by: 'later' })
    expect(await holdfast.events(counting, '1')).toEqual([
      { type: 'Added', by: 'me' },
      { type: 'Mailed' },
      { type: 'Added', by: 'later' },
    ])
  })

  it('IF-C2 IF-C6 decide inputs while the process that performs an effect is stopped, which changes nothing later', async () => {
    const place = await make()
    const { holdfast, counting } = await opened(place)
    const victim = await child({ ...place, name: 'victim', effects: 'hangs' })
    const heir = await child({ ...place, name: 'heir', effects: 'end' })
    await asked(victim, { kind: 'work', lease: '1s' })
    await holdfast.execute(counting, { type: 'Mail', id: '1', by: 'me' })
    await until('it performs the effect', () => performed(place).length === 1)
    victim.kill('SIGSTOP')
    for (const by of ['a', 'b', 'c']) {
      expect(await holdfast.execute(counting, { type: 'Add', id: '1', by })).toMatchObject({ outcome: 'accepted' })
    }
    await asked(heir, { kind: 'work', lease: '1s' })
    await until('another one has performed it', async () => (await holdfast.state(counting, '1'))?.mails === 1)
    victim.kill('SIGCONT')
    await holdfast.execute(counting, { type: 'Add', id: '1', by: 'later' })
    expect(await holdfast.state(counting, '1')).toMatchObject({ sum: 5, mails: 1 })
  })
})
