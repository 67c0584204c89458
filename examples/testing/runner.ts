// These tests are run by vitest and by `node --test`, to show that the kit needs neither. Yours import `test` from the one you
// use.

type Test = (name: string, body: () => Promise<void>) => unknown

export const { test }: { readonly test: Test } =
  process.env['VITEST'] === undefined ? await import('node:test') : await import('vitest')
