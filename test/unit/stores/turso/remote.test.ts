// A database on a server: what is sent, and what becomes of it when the server forgets a stream, hangs up or refuses. The
// server speaks the protocol and is ours; a real one is not reached by tests.

import { inspect } from 'node:util'
import { openLibsqlStore } from 'holdfast/turso'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createHoldfast, workflow } from '../../../../src/index.ts'
import { createVirtualClock } from '../../../../src/testing/index.ts'
import { createContractBench } from '../../../../src/testing/contract/index.ts'
import { startLibsqlServer, type LibsqlServer } from '../../../support/libsql-server.ts'
import { temporaryPaths } from '../sqlite/folder.ts'

const newPath = temporaryPaths()
let server: LibsqlServer
beforeAll(async () => {
  server = await startLibsqlServer()
})
afterAll(() => server.stop())

const greet = workflow('libsql.greet', async (ctx, name: string) => ctx.step('greet', () => `Hello ${name}`))

async function open() {
  const clock = createVirtualClock()
  const store = await openLibsqlStore({ url: server.addressOf(newPath()), clock })
  await store.migrate()
  return { store, clock, bench: createContractBench({ store, clock }) }
}

describe('createHoldfast', () => {
  it('opens libsql: of a server, and runs are there when it is opened again', async () => {
    const store = server.addressOf(newPath())
    const first = await createHoldfast({ store, workflows: [greet] })
    await first.work()
    const run = await first.start(greet, 'Ada')
    expect(await run.result()).toBe('Hello Ada')
    await first.close()
    const second = await createHoldfast({ store, workflows: [greet] })
    expect(await second.run(run.id).result()).toBe('Hello Ada')
    await second.close()
  })

  it('opens libsql: of a file', async () => {
    const holdfast = await createHoldfast({ store: `libsql:${newPath()}`, workflows: [greet] })
    await holdfast.work()
    expect(await (await holdfast.start(greet, 'Ada')).result()).toBe('Hello Ada')
    await holdfast.close()
  })
})

describe('a store on a server', () => {
  it('is for several processes, and its time is that of the database', async () => {
    const store = await openLibsqlStore({ url: server.addressOf(newPath()) })
    await store.migrate()
    expect(store.capabilities).toEqual({
      notifies: false,
      multiProcess: true,
      transactions: false,
      projections: true,
    })
    const { now } = await store.claim({ session: 's', selectors: [], limit: 1 })
    expect(Math.abs(now - Date.now())).toBeLessThan(60_000)
    await store.close()
  })

  it('sends its token with every request, from the address or from the option', async () => {
    const { store } = await open()
    await store.close()
    expect((await server.seen()).tokens).toEqual(['secret-token'])
    const url = server.addressOf(newPath())
    const other = await openLibsqlStore({ url, authToken: 'other-token' })
    await other.migrate()
    await other.close()
    expect((await server.seen()).tokens).toEqual(['other-token'])
  })

  it('goes on when the server forgot its streams', async () => {
    const { store, bench } = await open()
    const run = await bench.start()
    await server.forget()
    expect(await store.get([run.id])).toEqual([run])
    await server.forget()
    const other = await bench.start()
    expect(await store.find({}, { limit: 10 })).toEqual([other, run])
    await store.close()
  })

  it('sees what others wrote since it last looked', async () => {
    const { store, clock, bench } = await open()
    const selectors = [{ type: 'contract.plain', version: 1 }]
    expect(await store.claim({ session: 's', selectors, limit: 1 })).toMatchObject({ runs: [], more: false })
    const run = await bench.start({ type: 'contract.plain' })
    expect(run.createdAt).toBe(clock.now())
    expect((await store.claim({ session: 's', selectors, limit: 1 })).runs).toHaveLength(1)
    await store.close()
  })

  it('of which the answer is lost is unavailable, and the same start sent again is one run', async () => {
    let lost = 0
    for (let answered = 0; answered < 12; answered += 1) {
      const { store, bench } = await open()
      const given = bench.newRun()
      await server.breakAfter(answered)
      const first = await store.start([given]).catch((error: unknown) => error)
      await server.breakAfter(1_000_000)
      if (!Array.isArray(first)) {
        lost += 1
        expect(first).toMatchObject({ code: 'STORE_UNAVAILABLE' })
      }
      // A transaction that was left open on the server ends with its stream.
      await server.forget()
      const [again] = await store.start([given])
      expect(again).toMatchObject({ created: true, run: { id: given.id } })
      expect(await store.count({}, 10)).toBe(1)
      expect((await store.doctor()).filter(({ offenders }) => offenders.length > 0)).toEqual([])
      await store.close()
    }
    expect(lost).toBeGreaterThan(3)
  })

  it('that refuses the token says so, and shows it nowhere', async () => {
    const store = await openLibsqlStore({ url: server.addressOf(newPath(), 'wrong-token') })
    const error = await store.migrate().catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({
      code: 'STORE_REFUSED',
      message: expect.stringContaining('refuses the token') as string,
    })
    expect(inspect(error)).not.toContain('wrong-token')
    await store.close()
  })

  it('that is not there is refused, with where it was looked for and without the token', async () => {
    const store = await openLibsqlStore({ url: 'libsql://127.0.0.1:9?tls=0&authToken=secret-token' })
    const error = await store.migrate().catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE', details: { server: '127.0.0.1:9' } })
    expect(inspect(error)).not.toContain('secret-token')
    await store.close()
  })

  it('a file takes no token', async () => {
    const opening = openLibsqlStore({ url: 'libsql:app.db', authToken: 'x' })
    await expect(opening).rejects.toMatchObject({ code: 'INVALID_OPTION' })
  })
})
