import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { openPostgresStore } from '../../../../../src/stores/postgres/index.ts'
import { checkCertificateFiles } from '../../../../../src/stores/postgres/connection/address.ts'

const folder = mkdtempSync(join(tmpdir(), 'holdfast-certificates-'))
afterAll(() => rmSync(folder, { recursive: true }))
const address = (option: string, file: string): string =>
  `postgres://app@127.0.0.1:1/app?sslmode=verify-full&${option}=${encodeURIComponent(file)}`

describe('a file for TLS in the address of a store', () => {
  it('that does not exist is an error of the option, before anything is connected', async () => {
    const file = join(folder, 'ca.pem')
    await expect(openPostgresStore({ url: address('sslrootcert', file) })).rejects.toMatchObject({
      code: 'INVALID_OPTION',
      message: expect.stringContaining(
        `sslrootcert in the address of the store names the file "${file}", which does not`,
      ) as unknown,
      details: { option: 'sslrootcert', file },
    })
  })

  it.each(['sslcert', 'sslkey'])('that is a folder is an error of the option: %s', async (option) => {
    await expect(checkCertificateFiles(address(option, folder))).rejects.toMatchObject({
      code: 'INVALID_OPTION',
      message: expect.stringContaining(
        `${option} in the address of the store names the file "${folder}", which is a folder`,
      ) as unknown,
    })
  })

  it('is shown without the characters that could mislead a reader', async () => {
    await expect(checkCertificateFiles(address('sslrootcert', 'a\u202Eb.pem'))).rejects.toThrow(
      String.raw`"a\u{202e}b.pem"`,
    )
  })

  it('that can be read is left to the driver, and so is an address without one', async () => {
    writeFileSync(join(folder, 'some.pem'), '')
    await expect(checkCertificateFiles(address('sslrootcert', join(folder, 'some.pem')))).resolves.toBeUndefined()
    await expect(checkCertificateFiles('postgres://127.0.0.1/app')).resolves.toBeUndefined()
  })
})
