// What the tests of this folder begin with: a schema of their own, a proxy in front of the server, and Holdfasts on both.

import { onTestFinished } from 'vitest'
import { createHoldfast, type Holdfast, type HoldfastOptions } from 'holdfast'
import { openPostgresStore, type PostgresStore, type PostgresStoreOptions } from '../../src/stores/postgres/index.ts'
import { createContractBench, type ContractBench } from '../../src/testing/contract/index.ts'
import { keepLines } from '../holdfast/open.ts'
import { freshSchema } from '../support/postgres-shared.ts'
import { startWireProxy, type WireProxy } from '../support/wire-proxy.ts'

export interface Proxied {
  readonly schema: string
  /** The server itself. */
  readonly url: string
  readonly proxy: WireProxy
  /** The address of the store, past the proxy and through it. */
  readonly direct: string
  readonly through: string
}

/** A fresh schema; the proxy is closed when the test is over. */
export async function proxied(): Promise<Proxied> {
  const { url, schema } = await freshSchema()
  const proxy = await startWireProxy(url)
  onTestFinished(() => proxy.close())
  return { url, schema, proxy, direct: `${url}?schema=${schema}`, through: `${proxy.url}?schema=${schema}` }
}

/** A migrated store on the machine's own time. */
export async function opened(options: PostgresStoreOptions): Promise<{ store: PostgresStore; bench: ContractBench }> {
  const store = await openPostgresStore({ listen: false, connections: 4, ...options })
  onTestFinished(() => store.close())
  await store.migrate()
  return { store, bench: createContractBench({ store, clock: { now: () => Date.now(), advance: () => undefined } }) }
}

/** A Holdfast whose lines are kept. It is closed when the test is over, before what it stands on. */
export async function holdfastAt(
  options: Partial<HoldfastOptions> & Pick<HoldfastOptions, 'store'>,
): Promise<Holdfast> {
  const holdfast = await createHoldfast({ logger: keepLines(), ...options })
  onTestFinished(() => holdfast.close())
  return holdfast
}
