// The guard before a release: a package whose source cannot be found is never published.

import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'

const folder = mkdtempSync(join(tmpdir(), 'holdfast-publish-'))
afterAll(() => rmSync(folder, { recursive: true }))

function guard(fields: object): { readonly status: number | null; readonly stderr: string } {
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'shop', ...fields }))
  return spawnSync(process.execPath, [resolve('tools/check-publish.mjs')], { cwd: folder, encoding: 'utf8' })
}

describe('a package without the address of its source', () => {
  it('is not published, and the error names each missing field and the command that sets them', () => {
    const { status, stderr } = guard({})
    expect(status).toBe(1)
    expect(stderr).toBe(
      'This package cannot be published: package.json has no repository, homepage, bugs. Set the public address with: ' +
        'npm pkg set repository.url=<address> homepage=<address> bugs.url=<address>\n',
    )
  })

  it.each([{ bugs: {} }, { bugs: { email: 'a@example.com' } }, { bugs: ' ' }, { bugs: null }])(
    'is not published for %j alone',
    (bugs) => {
      const known = { repository: { type: 'git', url: 'https://example.com/a.git' }, homepage: 'https://example.com' }
      const { status, stderr } = guard({ ...known, ...bugs })
      expect([status, stderr]).toEqual([1, expect.stringMatching(/has no bugs\. .*npm pkg set bugs\.url=<address>\n$/)])
    },
  )

  it('is not published with the addresses of this checkout, which lead nowhere', () => {
    const { repository, homepage, bugs } = JSON.parse(readFileSync('package.json', 'utf8')) as Record<string, unknown>
    const { status, stderr } = guard({ repository, homepage, bugs })
    expect(status).toBe(1)
    expect(stderr).toBe(
      'This package cannot be published: repository, homepage, bugs in package.json is an address under .example, which ' +
        'leads nowhere. Set the public address with: npm pkg set repository.url=<address> homepage=<address> bugs.url=<address>\n',
    )
  })

  it('is published once it has them', () => {
    const address = 'https://example.com/a'
    expect(guard({ repository: address, homepage: address, bugs: { url: address } })).toMatchObject({
      status: 0,
      stderr: '',
    })
  })

  it('is checked by npm before every release', () => {
    const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as { readonly scripts: Record<string, string> }
    expect(scripts['prepublishOnly']).toMatch(/^node tools\/check-publish\.mjs\b/)
  })
})
