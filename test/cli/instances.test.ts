// Instances of deciders by the command line: inputs that are decided, and what is read of an instance by its id.

import { describe, expect, it } from 'vitest'
import { encryptingCodec } from '../../src/encryption/index.ts'
import { documents, shop } from './seed.ts'
import { greet, tally } from './tally.ts'
import type { Scene } from './world.ts'

const count = JSON.stringify({ type: 'Count', tallyId: '42' })

async function tallies() {
  const { holdfast, run } = await shop({ workflows: [greet, tally] })
  const env = { HOLDFAST_WORKFLOWS: 'test/cli/tally.ts' }
  return { holdfast, run: (argv: readonly string[], scene: Scene = {}) => run(argv, { env, ...scene }) }
}

describe('holdfast execute', () => {
  it('prints the events and the state, without a worker', async () => {
    const { holdfast, run } = await tallies()
    expect(await run(['execute', 'demo.tally', count])).toMatchObject({
      code: 0,
      stderr: '',
      stdout: '{"type":"Counted"}\nstate 1\n',
    })
    const { stdout } = await run(['execute', 'demo.tally', '-', '--json', '--command-id', 'c-1'], { stdin: count })
    expect(JSON.parse(stdout)).toEqual({ outcome: 'accepted', events: [{ type: 'Counted' }], state: 2 })
    await run(['execute', 'demo.tally', count, '--command-id', 'c-1'])
    expect(await holdfast.state(tally, '42')).toBe(2)
  })

  it('exits with 5 for a rejection, and says which', async () => {
    const { holdfast, run } = await tallies()
    for (let at = 0; at < 5; at += 1) await holdfast.execute(tally, { type: 'Count', tallyId: '42' })
    const text = await run(['execute', 'demo.tally', count])
    expect(text).toEqual({ code: 5, stdout: '', stderr: 'error: The input was rejected: "full" (INPUT_REJECTED)\n' })
    const json = await run(['execute', 'demo.tally', count, '--json'])
    expect(JSON.parse(json.stdout)).toEqual({ outcome: 'rejected', rejection: 'full' })
    expect(json.code).toBe(5)
  })

  it('refuses a misspelt decider, a workflow that is none, and an input that is missing or names no instance', async () => {
    const { run } = await tallies()
    const misspelt = await run(['execute', 'demo.taly', count])
    expect(misspelt).toMatchObject({ code: 2, stdout: '' })
    expect(misspelt.stderr).toContain('Did you mean "demo.tally"?')
    expect((await run(['execute', 'demo.greet', count])).stderr).toContain('is no decider')
    expect(await run(['execute', 'demo.tally'])).toMatchObject({ code: 2 })
    expect((await run(['execute', 'demo.tally', '{"type":"Count"}'])).stderr).toContain('INVALID_INPUT')
  })
})

describe('holdfast enqueue', () => {
  it('decides the first input at once, and leaves the next to a worker', async () => {
    const { holdfast, run } = await tallies()
    const first = await run(['enqueue', 'demo.tally', count, '--json'])
    expect(JSON.parse(first.stdout)).toMatchObject({ outcome: 'accepted', state: 1 })
    const next = await run(['enqueue', 'demo.tally', count, '--command-id', 'c-2'])
    expect(next).toMatchObject({ code: 0, stdout: 'Queued as c-2; a worker decides it.\n' })
    expect(await holdfast.backlog(tally, '42')).toMatchObject({ inputs: 1 })
  })
})

describe('holdfast inspect', () => {
  it('IF-O4 shows the state, what may follow, what is pending, and the last events', async () => {
    const { holdfast, run } = await tallies()
    await holdfast.execute(tally, { type: 'Count', tallyId: '42' }, { commandId: 'c-1' })
    await holdfast.execute(tally, { type: 'Count', tallyId: '42' })
    const { code, stdout, stderr } = await run(['inspect', 'demo.tally', '42', '--limit', '1'])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toMatch(
      /^demo\.tally v1 {2}42 {2}counting, waiting\n {2}run {9}\S+\n {2}created .*\n {2}state {7}2\n/,
    )
    expect(stdout).toContain('  count       2\n  may follow  Count → full\n  effect      note#4  pending, run ')
    expect(stdout).toMatch(/\n\n +\d+ {2}\S+ \S+Z {2}\{"type":"Counted"\} {2}after Count\n$/)
    const json = await run(['inspect', 'demo.tally', '42', '--json'])
    expect(documents(json.stdout)).toMatchObject([{ state: 2, unreadable: null, history: [{ seq: 3 }, { seq: 6 }] }])
    expect(await run(['inspect', 'demo.tally', '7'])).toMatchObject({ code: 3, stdout: '' })
  })
})

describe('holdfast diagram', () => {
  it('IF-O2 draws what the view declares, without a store', async () => {
    const { run } = await tallies()
    const drawn = await run(['diagram', 'demo.tally'])
    expect(drawn).toEqual({
      code: 0,
      stderr: '',
      stdout:
        'stateDiagram-v2\n  [*] --> empty\n  empty --> counting : Count [note]\n  counting --> full : Count [note]\n',
    })
    expect((await run(['diagram', 'demo.tally', '--format', 'dot'])).stdout).toMatch(
      /^digraph "demo\.tally" \{\n {2}rankdir=LR;/,
    )
  })

  it('IF-O2 IF-O4 marks what instances did, and what they never did', async () => {
    const { holdfast, run } = await tallies()
    for (let at = 0; at < 3; at += 1) await holdfast.execute(tally, { type: 'Count', tallyId: '42' })
    const { stdout } = await run(['diagram', 'demo.tally', '--observed'])
    expect(stdout).toContain('  empty --> counting : Count [note] (1×)\n')
    expect(stdout).toContain('  counting --> full : Count [note] (never seen)\n')
    expect(stdout).toContain('  counting --> counting : Count [note] (2×) (not declared)\n')
    const [json] = documents((await run(['diagram', 'demo.tally', '--observed', '--limit', '5', '--json'])).stdout)
    expect(json).toMatchObject({ format: 'mermaid', observed: { instances: 1, isCapped: false } })
  })

  it('IF-O2 refuses a misspelt decider, a workflow that is none, and another format', async () => {
    const { run } = await tallies()
    const misspelt = await run(['diagram', 'demo.taly'])
    expect([misspelt.code, misspelt.stderr]).toEqual([2, expect.stringContaining('Did you mean "demo.tally"?')])
    expect((await run(['diagram', 'demo.greet'])).stderr).toContain('is no decider')
    expect(await run(['diagram', 'demo.tally', '--format', 'svg'])).toMatchObject({ code: 2 })
  })
})

describe('an instance by its id', () => {
  it('IF-O4 has a state at an earlier entry and at an earlier time', async () => {
    const { holdfast, run } = await tallies()
    await holdfast.execute(tally, { type: 'Count', tallyId: '42' })
    await holdfast.execute(tally, { type: 'Count', tallyId: '42' })
    expect((await run(['state', 'demo.tally', '42', '--at', '3'])).stdout).toBe('1\n')
    expect((await run(['state', 'demo.tally', '42', '--at', '2100-01-01'])).stdout).toBe('2\n')
    const early = await run(['state', 'demo.tally', '42', '--at', '2001-01-01T00:00:00Z'])
    expect([early.code, early.stderr]).toEqual([3, expect.stringContaining('that had begun by then')])
    expect((await run(['state', 'demo.tally', '42', '--at', 'yesterday'])).code).toBe(2)
  })

  it('shows an event that cannot be read here as the reason, and the others as they are', async () => {
    const codec = encryptingCodec({ keys: { k: Buffer.alloc(32, 1) }, current: 'k' })
    const { holdfast, run } = await shop({ workflows: [greet, tally], codec })
    await holdfast.execute(tally, { type: 'Count', tallyId: '42' })
    const env = { HOLDFAST_WORKFLOWS: 'test/cli/tally.ts' }
    const { code, stdout } = await run(['history', 'demo.tally', '42'], { env })
    expect([code, stdout]).toEqual([0, expect.stringContaining('PAYLOAD_CORRUPT')])
    const seen = await run(['inspect', 'demo.tally', '42'], { env })
    expect([seen.code, seen.stdout]).toEqual([0, expect.stringContaining('\nunreadable: Event "Counted", entry 3')])
  })

  it('has a state, events and a history', async () => {
    const { holdfast, run } = await tallies()
    await holdfast.execute(tally, { type: 'Count', tallyId: '42' }, { commandId: 'c-1' })
    await holdfast.execute(tally, { type: 'Count', tallyId: '42' })
    expect(await run(['state', 'demo.tally', '42'])).toMatchObject({ code: 0, stdout: '2\n' })
    expect(JSON.parse((await run(['state', 'demo.tally', '42', '--json'])).stdout)).toEqual({
      type: 'demo.tally',
      id: '42',
      state: 2,
    })
    expect((await run(['events', 'demo.tally', '42'])).stdout).toBe('{"type":"Counted"}\n{"type":"Counted"}\n')
    expect((await run(['events', 'demo.tally', '42', '--limit', '1'])).stdout).toBe('{"type":"Counted"}\n')
    const { stdout } = await run(['history', 'demo.tally', '42'])
    expect(stdout).toMatch(/^ {4}\d {2}\d{4}-.*Z {2}\{"type":"Counted"\} {2}after Count, command c-1\n.*after Count\n$/)
    const json = await run(['history', 'demo.tally', '42', '--json'])
    expect(json.stderr).toBe('')
    const [first] = documents(json.stdout)
    expect(first).toMatchObject({ event: { type: 'Counted' }, cause: { input: 'Count', commandId: 'c-1' } })
  })

  it('is not found if there is none, with exit code 3', async () => {
    const { run } = await tallies()
    for (const name of ['state', 'events', 'history']) {
      const { code, stderr } = await run([name, 'demo.tally', '43'])
      expect({ code, stderr }).toEqual({
        code: 3,
        stderr: 'error: There is no instance "43" of "demo.tally" in this store. (RUN_NOT_FOUND)\n',
      })
    }
  })

  it('is shown by --id with --type, and --key says so', async () => {
    const { holdfast, run } = await tallies()
    await holdfast.execute(tally, { type: 'Count', tallyId: '42' })
    expect((await run(['show', '--type', 'demo.tally', '--id', '42'])).stdout).toMatch(/^demo\.tally v1 {2}waiting\n/)
    expect((await run(['journal', '--type', 'demo.tally', '--id', '42'])).code).toBe(0)
    const byKey = await run(['show', '--type', 'demo.tally', '--key', '42'])
    expect(byKey).toMatchObject({ code: 3 })
    expect(byKey.stderr).toContain('Did you mean --id instead of --key?')
    expect((await run(['show', '--type', 'demo.tally', '--id', '7'])).code).toBe(3)
    expect((await run(['show', '--id', '42'])).stderr).toContain('add its --type')
    expect((await run(['show', '--id', '42', '--key', '42', '--type', 'demo.tally'])).code).toBe(2)
  })

  it('is asked for by the type that was meant, if nothing matches a misspelt one', async () => {
    const { holdfast, run } = await tallies()
    await holdfast.execute(tally, { type: 'Count', tallyId: '42' })
    const unnamed = { env: { HOLDFAST_WORKFLOWS: '' } }
    expect((await run(['runs', '--type', 'tally'], unnamed)).stderr).toContain('Did you mean "demo.tally"?')
    expect((await run(['runs', '--type', 'demo.taly'])).stderr).toContain('Did you mean "demo.tally"?')
    expect((await run(['runs', '--type', 'demo.greet'])).stderr).toBe('No run matches.\n')
  })

  it('stands in the list of runs, with the parent of its effects', async () => {
    const { holdfast, run } = await tallies()
    await holdfast.execute(tally, { type: 'Count', tallyId: '42' })
    const [instance] = (await holdfast.find({ type: 'demo.tally' })).runs
    const { stdout } = await run(['runs'])
    expect(stdout).toMatch(/^RUN +STATUS +TYPE +ID +AGE +PARENT\n/)
    expect(stdout).toMatch(new RegExp(`demo\\.tally/note +42 .*${instance?.id}\n`))
    expect(stdout).toMatch(/demo\.tally +42 /)
  })
})
