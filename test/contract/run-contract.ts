// Runs the contract on a store under vitest, one test a case. Every store's test calls this and nothing else.

import { describe, expect, it } from 'vitest'
import { createContractBench, storeContract, type ContractSubject } from '../../src/testing/contract/index.ts'

/**
 * `open` gives an empty store for every case, on a clock that only the case moves. A store that cannot be opened here is
 * skipped visibly, with the reason; so are slow cases, if there is a reason to skip only those. After its case the store is
 * closed, or finished where `open` says how.
 */
export function runContract(
  store: string,
  open: () => Promise<ContractSubject & { readonly finish?: () => Promise<void> }>,
  missing?: string,
  missingSlow?: string,
  splitsCalls = false,
): void {
  describe(`HE-X1 WC-X1 ${store} keeps the contract of every store`, () => {
    const cases = storeContract.map((one) => [one.name, one] as const)
    it.for(cases)(
      '%s',
      { timeout: 120_000 },
      async ([, { needs, near = false, slow = false, inOneCall = false, run }], context) => {
        if (missing !== undefined) context.skip(missing)
        if (slow && missingSlow !== undefined) context.skip(missingSlow)
        if (inOneCall && splitsCalls) context.skip('it is about one call, and this test splits calls')
        const subject = await open()
        try {
          await subject.store.migrate()
          if (needs !== undefined && !subject.store.capabilities[needs]) context.skip(`${store} lacks ${needs}`)
          await run(createContractBench({ ...subject, near }))
        } finally {
          await (subject.finish ?? (() => subject.store.close()))()
        }
      },
    )

    it('no two cases have one name, so that a failure says which', () => {
      const names = storeContract.map(({ name }) => name)
      expect(new Set(names).size).toBe(names.length)
    })
  })
}
