// `holdfast doctor`: a sound store is reported as such, and a broken one by name and leaves with a code.

import Database from 'libsql'
import { describe, expect, it } from 'vitest'
import { shop } from './seed.ts'
import { greet } from './workflows.ts'

async function brokenShop() {
  const { holdfast, run, store } = await shop()
  await holdfast.work()
  const greeted = await holdfast.start(greet, 'Ada')
  await greeted.result()
  const breakIt = (sql: string): void => {
    const database = new Database(store.slice('sqlite:'.length))
    database.prepare(sql).run([greeted.id])
    database.close()
  }
  return { run, store, breakIt, id: greeted.id }
}

describe('holdfast doctor', () => {
  it('says ok of every invariant of a sound store', async () => {
    const { run } = await brokenShop()
    const { code, stdout, stderr } = await run(['doctor'])
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(/^history_gapless +ok$/m)
    expect(stdout.split('\n').filter((line) => line !== '' && !/^[a-z_]+ +ok$/.test(line))).toEqual([])
  })

  it('names what is broken and by whom, and leaves with 70', async () => {
    const { run, breakIt, id } = await brokenShop()
    breakIt('delete from journal where run_id = ? and seq = 2')
    const { code, stdout, stderr } = await run(['doctor'])
    expect(code).toBe(70)
    expect(stdout).toMatch(new RegExp(`^history_gapless +broken by +${id}$`, 'm'))
    expect(stdout).toMatch(/^status_fields_match +ok$/m)
    expect(stderr).toContain('history_gapless')
    expect(stderr).toContain('Were rows changed by hand')
  })

  it('says the same to a program', async () => {
    const { run, breakIt, id, store } = await brokenShop()
    breakIt('update runs set ended_at = null where id = ?')
    const { code, stdout } = await run(['doctor', '--json'])
    expect(code).toBe(70)
    const answer = JSON.parse(stdout) as { store: string; isSound: boolean; checks: { name: string }[] }
    expect(answer).toMatchObject({ store, isSound: false })
    expect(answer.checks).toContainEqual({ name: 'status_fields_match', offenders: [id] })
    expect(answer.checks).toContainEqual({ name: 'history_gapless', offenders: [] })
  })
})
