// The deploy gate for deciders: a build folds the instances of a store, and those of exported journals.

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { decider, decision } from '../../src/index.ts'
import { createHoldfast } from '../../src/holdfast.ts'
import { replay } from '../../src/testing/index.ts'
import { till } from './builds/till.ts'
import * as euros from './builds/till-euros.ts'
import { cli, file, folder, type Ending } from './world.ts'

const quiet = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }

/** A module that exports one build of the till. */
function build(name: keyof typeof euros): string {
  return file(
    `${name}.ts`,
    `export { ${name} } from ${JSON.stringify(join(process.cwd(), 'test/cli/builds/till-euros.ts'))}\n`,
  )
}

/** A store with tills: the first have a snapshot, the last one is closed, and one has nothing but its first payment. */
async function tills(): Promise<{
  readonly store: string
  readonly check: (module: string, ...more: string[]) => Promise<Ending>
}> {
  const store = `sqlite:${join(folder(), 'tills.db')}`
  const holdfast = await createHoldfast({ store, workflows: [till], logger: quiet })
  const pay = (id: string, cents: number) => holdfast.execute(till, { type: 'Pay', id, cents })
  for (const id of ['1', '2', '3']) for (const cents of [100, 200, 300]) await pay(id, cents)
  await pay('4', 100)
  await pay('5', 100)
  await pay('5', 0)
  await holdfast.close()
  return { store, check: (module, ...more) => cli(['check', module, '--against', store, ...more]) }
}

describe('check --against a store with instances', () => {
  it('IF-V1 IF-V2 passes a build that folds what was kept to the same states', async () => {
    const { check, store } = await tills()
    for (const module of ['test/cli/builds/till.ts', build('compatible')]) {
      expect(await check(module)).toEqual({
        code: 0,
        stdout: `Replayed 4 runs from ${store}, and this build agrees with every one.\n`,
        stderr: '',
      })
    }
  })

  it('IF-V1 IF-V2 counts the instances with an event that the build cannot read, once for each way', async () => {
    const { check } = await tills()
    const { code, stdout } = await check(build('withoutUpcasters'))
    expect(code).toBe(6)
    expect(stdout).toMatch(
      /disagrees with 4\.\n\n4 runs of shop\.till v1 have an event that this build cannot read: for example /,
    )
    expect(stdout).toContain('Event "Paid", entry 3 of instance')
    expect(stdout).toContain('the upcaster of "Paid" from version 1 threw: Cannot read properties of undefined')
    expect(stdout).toContain('with upcast, renamed and retired its events')
    expect(stdout).not.toContain('ctx.patched')
  })

  it('IF-V1 IF-V2 counts the instances whose snapshot says another state, or whose state cannot be brought up to date', async () => {
    const { check } = await tills()
    const wrong = await check(build('wrongState'))
    expect(wrong.code).toBe(6)
    expect(wrong.stdout).toMatch(/disagrees with 3\.\n\n3 runs of shop\.till v1 would have another state: /)
    expect(wrong.stdout).toMatch(
      /up to entry \d+ give another state than they did\. It was: \{"euros":300,.*Now it is: \{"euros":3,/,
    )
    const failing = await check(build('failingState'))
    expect([failing.code, failing.stdout]).toEqual([
      6,
      expect.stringMatching(
        /3 runs of shop\.till v1 would fail: .*\n.*upcastState of decider "shop\.till" cannot read a state of version 1: no rate/,
      ),
    ])
  })

  it('IF-V1 notices a fold that has changed where its text has not, unless stateVersion says that it is meant', async () => {
    const { check } = await tills()
    const text = (stateVersion: number) =>
      readFileSync('test/cli/builds/till.ts', 'utf8')
        .replace("'../../../src/index.ts'", JSON.stringify(join(process.cwd(), 'src/index.ts')))
        .replace('state.cents + event.cents', 'plus(state.cents, event.cents)')
        .replace('snapshotEvery: 4,', `stateVersion: ${stateVersion},`)
        .concat('const plus = (one: number, other: number) => one + 2 * other\n')
    const changed = await check(file('changed.ts', text(1)))
    expect([changed.code, changed.stdout]).toEqual([
      6,
      expect.stringContaining('3 runs of shop.till v1 would have another state'),
    ])
    expect((await check(file('meant.ts', text(2)))).code).toBe(0)
    const ended = await check(file('changed.ts', text(2)), '--ended')
    expect([ended.code, ended.stdout]).toEqual([
      6,
      expect.stringContaining('1 run of shop.till v1 would end otherwise'),
    ])
  })
})

describe('an exported instance', () => {
  it('IF-V1 IF-V2 keeps its state, so that a later build is compared with it, in the gate and in a test', async () => {
    const { store } = await tills()
    const place = folder()
    const exported = await cli([
      'export',
      '--type',
      'shop.till',
      '--id',
      '4',
      '--store',
      store,
      '--workflows',
      'test/cli/builds/till.ts',
    ])
    expect(JSON.parse(exported.stdout)).toMatchObject({
      kept: { seq: 3, stateVersion: 1, data: '{"cents":100,"isClosed":false}' },
    })
    writeFileSync(join(place, 'four.json'), exported.stdout)
    expect((await cli(['check', build('compatible'), '--against', place])).code).toBe(0)
    const wrong = await cli(['check', build('wrongState'), '--against', place])
    expect([wrong.code, wrong.stdout]).toEqual([
      6,
      expect.stringContaining('1 run of shop.till v1 would have another state'),
    ])
    const recorded = JSON.parse(exported.stdout) as Parameters<typeof replay>[1]
    await replay(euros.compatible, recorded)
    await expect(replay(euros.wrongState, recorded)).rejects.toMatchObject({ code: 'DRIFT', details: { seq: 3 } })
    await expect(replay(euros.withoutUpcasters, recorded)).rejects.toMatchObject({ code: 'EVENT_UNREADABLE' })
    // Code that does not say how older states become present ones means another state.
    const other = decider('shop.till', {
      initial: () => 0,
      evolve: (count, _event: { type: 'Paid' | 'Closed' }) => count + 1,
      decide: (_count, _input: { type: 'Pay'; id: string }) => decision({ type: 'Closed' }),
      id: 'id',
      stateVersion: 2,
    })
    await replay(other, recorded)
    await expect(replay(other, { ...recorded, kept: { seq: 3 } } as never)).rejects.toMatchObject({
      code: 'INVALID_OPTION',
    })
  })

  it('has no state where the code that exports it does not know it', async () => {
    const { store } = await tills()
    const exported = await cli(['export', '--type', 'shop.till', '--id', '4', '--store', store])
    expect(exported.code).toBe(0)
    expect(JSON.parse(exported.stdout)).not.toHaveProperty('kept')
    const broken = await cli([
      'export',
      '--type',
      'shop.till',
      '--id',
      '4',
      '--store',
      store,
      '--workflows',
      build('withoutUpcasters'),
    ])
    expect(JSON.parse(broken.stdout)).not.toHaveProperty('kept')
  })
})
