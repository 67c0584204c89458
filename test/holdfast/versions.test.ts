// Versions side by side: a run keeps the one that it began with, and only workers that have it perform it.

import { describe, expect, it } from 'vitest'
import { workflow, type HoldfastError, type VersionChoice } from 'holdfast'
import { virtualWorld } from './virtual-world.ts'

const greet = (version: number) =>
  workflow('greet', { version }, async (ctx, name: string) => {
    await ctx.sleep('1 min')
    return `${name} ${version}`
  })

describe('a version', () => {
  it('HE-V3 WC-V1 survives a change of the newest: a run ends on the code that it began with', async () => {
    const { open, clock, after } = virtualWorld()
    const [one, two] = [greet(1), greet(2)]
    const old = await open({ workflows: [one] })
    const run = await old.start(one, 'Ada')
    await after(old.close())
    const next = await open({ workflows: [two] })
    await next.work()
    await clock.advance('1h')
    expect(await next.run(run).status()).toBe('pending')
    const both = await open({ workflows: [one, two] })
    await both.work()
    expect(await after(both.run(run).result())).toBe('Ada 1')
    expect(await after((await both.start('greet', 'Bo')).result())).toBe('Bo 2')
  })

  it('HE-V2 is the one that is asked for, else what versionFor says, else the newest; an unknown one is refused', async () => {
    const { open } = virtualWorld()
    const choices: VersionChoice[] = []
    const holdfast = await open({
      workflows: [greet(1), greet(3), greet(2)],
      versionFor: (choice) => {
        choices.push(choice)
        return choice.input === 'nobody' ? 9 : choice.tags.includes('canary') ? 3 : choice.key === 'new' ? undefined : 1
      },
    })
    const versionOf = async (
      ...rest: [string, { tags?: string[]; key?: string; version?: number }?]
    ): Promise<number> => (await holdfast.get(await holdfast.start('greet', ...rest))).version
    expect(await versionOf('Ada')).toBe(1)
    expect(await versionOf('Ada', { tags: ['canary'] })).toBe(3)
    expect(await versionOf('Ada', { key: 'new' })).toBe(3)
    expect(choices[0]).toEqual({ type: 'greet', versions: [1, 2, 3], input: 'Ada', key: undefined, tags: [] })
    expect(await versionOf('nobody', { version: 2 })).toBe(2)
    for (const start of [holdfast.start('greet', 'nobody'), holdfast.start('greet', 'Ada', { version: 4 })]) {
      const error = (await start.catch((reason: unknown) => reason)) as HoldfastError
      expect(error.code).toBe('WORKFLOW_UNKNOWN')
      expect(error.message).toContain('Registered: version')
    }
  })

  it('HE-V1 is 1 where nothing is said, and what a definition says is not asked again', async () => {
    const { open } = virtualWorld()
    const plain = workflow('plain', () => 1)
    const two = greet(2)
    const holdfast = await open({ workflows: [plain, greet(1), two], versionFor: () => 1 })
    expect((await holdfast.get(await holdfast.start(plain))).version).toBe(1)
    expect((await holdfast.get(await holdfast.start(two, 'Ada'))).version).toBe(2)
  })

  it('HE-V3 can be counted before its code goes: live runs are found by version', async () => {
    const { open } = virtualWorld()
    const holdfast = await open({ workflows: [greet(1), greet(2)] })
    await holdfast.start('greet', 'Ada', { version: 1 })
    await holdfast.start('greet', 'Bo')
    expect(await holdfast.count({ type: 'greet', version: 1, status: ['pending', 'running', 'waiting'] })).toEqual({
      count: 1,
      isCapped: false,
    })
  })

  it('SW-V1 PQ-V1 may also stand in the name: another name is another workflow', async () => {
    const { open, after } = virtualWorld()
    const one = workflow('zip.v1', () => 'one')
    const two = workflow('zip.v2', () => 'two')
    const holdfast = await open({ workflows: [one, two] })
    await holdfast.work()
    expect(await after((await holdfast.start(one)).result())).toBe('one')
    expect(await after((await holdfast.start('zip.v2')).result())).toBe('two')
  })
})
