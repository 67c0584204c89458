// The way to the database, with a pool that says what a test wants: what is tried again, what is not, and in which state
// connections are given back.

import { describe, expect, it } from 'vitest'
import {
  Database,
  type ClientLike,
  type DatabaseOptions,
} from '../../../../../src/stores/postgres/connection/database.ts'
import { statement } from '../../../../../src/stores/postgres/dialect.ts'
import type { Execution, Row, DetailedHint } from '../../../../../src/stores/postgres/execution.ts'

const look = statement('get.read', 'select 1')
const lookAgain = statement('find.read', 'select 2')
const change = statement('beat.session', 'update rows set one = 1')

type Say = (text: string, name: string | undefined) => unknown

const said = (code: string): Error => Object.assign(new Error(`said ${code}`), { code })

/** A pool of one connection. `say` may throw, or answer what ended a transaction; by default everything succeeds. */
function rig(say: Say = () => undefined, options: Partial<DatabaseOptions> & { readonly pipeline?: boolean } = {}) {
  const sent: string[] = []
  const names: (string | undefined)[] = []
  const released: (Error | boolean | undefined)[] = []
  const hints: DetailedHint[] = []
  const { pipeline = true, ...rest } = options
  let passed = 0
  let under = 0
  let most = 0
  const client: ClientLike = {
    pipeline,
    async query({ text, name }) {
      sent.push(text)
      names.push(name)
      most = Math.max(most, (under += 1))
      await Promise.resolve()
      under -= 1
      const answer = say(text, name)
      const rows: readonly Row[] = text.includes(' as mark') ? [{ mark: 'open' }] : [{ text }]
      return { rows, command: typeof answer === 'string' ? answer : text.toUpperCase() }
    },
    release: (error) => released.push(error),
  }
  const database = new Database({
    pool: { connect: async () => client, end: async () => undefined },
    settings: null,
    theirSettings: null,
    ourSettings: 'select 1',
    random: () => 0,
    storageMs: 1_000,
    monotonic: () => (passed += 10),
    onHints: (seen) => hints.push(...seen),
    ...rest,
  })
  return { database, sent, names, released, hints, mostAtOnce: () => most }
}

const read = (x: Execution): Promise<readonly Row[]> => x.execute(look, [])

/** Throws this the first times a text comes. */
function failing(text: string, code: string, times = 1): Say {
  let left = times
  return (one) => {
    if (one === text && left > 0) {
      left -= 1
      throw said(code)
    }
    return undefined
  }
}

describe('a transaction', () => {
  it('begins, works and commits, and says what was committed afterwards', async () => {
    const { database, sent, released, hints } = rig()
    const answer = await database.transaction('beat.commit', async (x) => {
      x.hints.push({ kind: 'ready', type: 'a' })
      expect(hints).toEqual([])
      return read(x)
    })
    expect(answer).toEqual([{ text: 'select 1' }])
    expect(sent).toEqual(['begin', 'select 1', 'commit'])
    expect(released).toEqual([undefined])
    expect(hints).toEqual([{ kind: 'ready', type: 'a' }])
  })

  it('reports its statements as they are sent, and its end', async () => {
    const seen: string[] = []
    const { database } = rig(undefined, { onStatement: (name) => seen.push(name) })
    await database.transaction('beat.commit', read)
    await database.alone(read, 'start.commit')
    await database.alone(read)
    expect(seen).toEqual(['get.read', 'beat.commit', 'get.read', 'start.commit', 'get.read'])
  })

  it.each(['40001', '40P01', '55P03'])('that others were in the way of (%s) is done anew, all of it', async (code) => {
    const { database, sent, released } = rig(failing('select 1', code, 2))
    await database.transaction('beat.commit', read)
    const failed = ['begin', 'select 1', 'rollback']
    expect(sent).toEqual([...failed, ...failed, 'begin', 'select 1', 'commit'])
    expect(released).toEqual([undefined, undefined, undefined])
  })

  it.each(['begin', 'settings', 'select 1'])(
    'says what failed first (%s), not what failed because of it: that is no reason to give up',
    async (first) => {
      let [isAborted, failures] = [false, 0]
      const { database, sent } = rig(
        (text) => {
          if (text === 'rollback') isAborted = false
          else if (isAborted) throw said('25P02')
          else if (text === first && failures === 0) {
            isAborted = true
            failures += 1
            throw said('40P01')
          }
        },
        { settings: 'settings' },
      )
      // Who waits for the second hears of it sooner.
      const late = (x: Execution): Promise<unknown> => Promise.all([read(x), read(x)])
      await database.alone((x) => Promise.all([late(x), x.execute(lookAgain, [])]))
      expect(sent.filter((text) => text === 'select 1')).toHaveLength(4)
    },
  )

  it('IF-S7 that never began writes nothing: what follows would be kept, each by itself', async () => {
    const { database, sent } = rig(failing('begin', '57014'))
    const tried = database.transaction('beat.commit', (x) =>
      Promise.all([x.execute(look, []), x.execute(change, []), x.execute(lookAgain, [])]),
    )
    await expect(tried).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', details: { sqlState: '57014' } })
    expect(sent).toEqual(['begin', 'select 1', 'rollback'])
  })

  it('IF-S7 that never began answers nothing, even if it had nothing to write', async () => {
    const { database, sent } = rig(failing('begin', '40001'))
    await database.transaction('beat.commit', read)
    expect(sent).toEqual(['begin', 'select 1', 'rollback', 'begin', 'select 1', 'commit'])
  })

  it('writes in the order in which it is asked to, once it has begun', async () => {
    const { database, sent } = rig()
    await database.transaction('beat.commit', async (x) => {
      await Promise.all([x.execute(look, []), x.execute(change, []), x.execute(lookAgain, [])])
      await Promise.all([x.execute(change, []), x.execute(look, [])])
    })
    expect(sent).toEqual(['begin', 'select 1', change.text, 'select 2', change.text, 'select 1', 'commit'])
  })

  it('is not tried for longer than the storage timeout', async () => {
    const { database, hints } = rig(failing('select 1', '40P01', Number.POSITIVE_INFINITY), { storageMs: 50 })
    const tried = database.transaction('beat.commit', (x) => {
      x.hints.push({ kind: 'ready', type: 'a' })
      return read(x)
    })
    await expect(tried).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', details: { sqlState: '40P01' } })
    expect(hints).toEqual([])
  })

  it.each([
    ['22P02', 'ENTRY_REJECTED'],
    ['57014', 'STORE_UNAVAILABLE'],
    ['42601', 'BUG'],
  ])('that fails with %s is not tried again', async (state, code) => {
    const { database, sent } = rig(failing('select 1', state))
    await expect(database.transaction('beat.commit', read)).rejects.toMatchObject({ code })
    expect(sent).toEqual(['begin', 'select 1', 'rollback'])
  })

  it('IF-S7 that is ended with ROLLBACK though it was to be committed is not taken for done', async () => {
    const { database, hints } = rig((text) => (text === 'commit' ? 'ROLLBACK' : undefined))
    const tried = database.transaction('beat.commit', async (x) => void x.hints.push({ kind: 'ready', type: 'a' }))
    await expect(tried).rejects.toMatchObject({ code: 'BUG' })
    expect(hints).toEqual([])
  })

  it('IF-S7 whose work throws is rolled back', async () => {
    const { database, sent } = rig()
    const tried = database.transaction('beat.commit', () => Promise.reject(said('23505')))
    await expect(tried).rejects.toMatchObject({ code: 'ENTRY_REJECTED' })
    expect(sent.at(-1)).toBe('rollback')
  })

  it.each([new RangeError('Invalid string length'), new TypeError('the driver cannot send this')])(
    'whose text cannot be built or sent is a defect, and not tried again: %s',
    async (defect) => {
      const { database, sent, released } = rig()
      const build = (): never => {
        throw defect
      }
      const seen = database.alone(async (x) => x.execute(look, [build()]))
      await expect(seen).rejects.toMatchObject({ code: 'BUG', cause: defect })
      expect(sent).toEqual([])
      expect(released).toEqual([defect])
    },
  )

  it('that gets no connection is unavailable, whatever the pool says', async () => {
    const cause = new TypeError('Cannot read properties of null')
    const pool = { connect: () => Promise.reject(cause), end: async () => undefined }
    const { database } = rig(() => undefined, { pool })
    await expect(database.alone(read)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', cause })
  })

  it('whose COMMIT is not answered leaves open what became of it, whatever the driver says', async () => {
    const cause = new TypeError('Cannot read properties of null')
    const { database } = rig((text) => {
      if (text === 'commit') throw cause
    })
    await expect(database.lend(async () => 1)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', cause })
    await expect(database.transaction('beat.commit', read)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', cause })
  })

  it.each(['begin', 'select 1', 'commit'])('whose connection breaks at %s is not tried again', async (place) => {
    const broken = new Error('Connection terminated unexpectedly')
    let isBroken = false
    const { database, sent, released } = rig((text) => {
      isBroken ||= text === place
      if (isBroken) throw broken
    })
    await expect(database.transaction('beat.commit', read)).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      cause: broken,
    })
    expect(sent.filter((text) => text === 'begin')).toHaveLength(1)
    // Nobody gets this connection again.
    expect(released).toEqual([broken])
  })
})

describe('names of prepared statements', () => {
  it.each(['42P05', '26000'])('are switched off for a connection that answers %s', async (code) => {
    const { database, names } = rig((_, name) => {
      if (name !== undefined) throw said(code)
    })
    await database.transaction('beat.commit', read)
    expect(names.filter((name) => name !== undefined)).toEqual([look.name])
    await database.alone((x) => x.execute(lookAgain, []))
    expect(names.filter((name) => name !== undefined)).toHaveLength(1)
  })

  it('are switched off for calls that were under way at once, too', async () => {
    const { database } = rig((_, name) => {
      if (name !== undefined) throw said('42P05')
    })
    await Promise.all([database.alone(read), database.alone(read), database.transaction('beat.commit', read)])
  })

  it('that fail in a transaction which a user writes in are reported as they are, and do not come back', async () => {
    const { database, names } = rig((_, name) => {
      if (name !== undefined) throw said('26000')
    })
    const lend = () => database.lend(({ x }) => read(x))
    await expect(lend()).rejects.toMatchObject({ code: '26000' })
    await lend()
    expect(names.filter((name) => name !== undefined)).toHaveLength(1)
  })
})

describe('a connection', () => {
  it('that was opened without our settings gets them in every transaction, and a single statement is one', async () => {
    const { database, sent } = rig(undefined, { settings: 'settings' })
    await database.alone(read)
    await database.transaction('beat.commit', read)
    const all = ['begin', 'settings', 'select 1', 'commit']
    expect(sent).toEqual([...all, ...all])
  })

  it.each([
    [true, 4],
    [false, 1],
  ])('with a pipeline (%s) is sent %i statements at a time', async (pipeline, most) => {
    const { database, sent, mostAtOnce } = rig(undefined, { settings: 'settings', pipeline })
    await database.transaction('beat.commit', (x) => Promise.all([read(x), x.execute(lookAgain, [])]))
    expect(mostAtOnce()).toBe(most)
    expect(sent).toEqual(['begin', 'settings', 'select 1', 'select 2', 'commit'])
  })

  it('without a pipeline goes on after a statement that failed, so that the rollback is sent', async () => {
    const { database, sent, released } = rig(failing('settings', '57014'), { settings: 'settings', pipeline: false })
    await expect(database.alone(read)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    expect(sent).toEqual(['begin', 'settings', 'rollback'])
    expect(released).toEqual([undefined])
  })

  it('that cannot be had is unavailable', async () => {
    const pool = { connect: () => Promise.reject(new Error('timeout')), end: async () => undefined }
    const { database } = rig(undefined, { pool })
    await expect(database.alone(read)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
  })

  it('is not asked for once the store is closed', async () => {
    const { database, sent } = rig()
    expect(database.close()).toBe(true)
    expect(database.close()).toBe(false)
    await expect(database.alone(read)).rejects.toMatchObject({ code: 'CLOSED' })
    expect(sent).toEqual([])
  })
})
