import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import { HoldfastError } from '../../../../../src/core/errors/error.ts'
import { openPostgresStore } from '../../../../../src/stores/postgres/index.ts'

const broken = [
  ['a port that no host has', 'postgres://app:s3cret@127.0.0.1:99999/app'],
  ['a port that is no number', 'postgres://app:s3cret@127.0.0.1:s3cret/app'],
  ['a host that is not closed', 'postgres://app:s3cret@[::1/app'],
  ['a % without a code in the name of the database', 'postgres://app:s3cret@127.0.0.1:1/%E0%A4%A'],
  ['two million characters', `postgres://${'app:s3cret@'.repeat(200_000)}`],
] as const

describe('an address that the driver cannot parse', () => {
  it.each(broken)('is an error of the option, and repeats no password: %s', async (_, url) => {
    const error: unknown = await openPostgresStore({ url }).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(HoldfastError)
    expect(error).toMatchObject({ code: 'INVALID_OPTION', details: { option: 'url' } })
    expect(inspect(error, { depth: 9, showHidden: true })).not.toContain('s3cret')
  })

  it('is one of the address to listen at, too, before anything is connected', async () => {
    for (const [, listen] of broken) {
      const opened = openPostgresStore({ url: 'postgres://app@127.0.0.1:1/app', listen })
      await expect(opened).rejects.toMatchObject({ code: 'INVALID_OPTION', details: { option: 'listen' } })
    }
  })
})
