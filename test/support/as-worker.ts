// A store that is opened with the rights of a worker and no others. Encrypting payloads anew changes what stands in a journal,
// which no worker may: that one call is made as migrator.

import type { Store, StoreAdmin } from '../../src/store.ts'
import { openPostgresStore } from '../../src/stores/postgres/index.ts'
import { createRoles, type Roled } from './postgres-roles.ts'
import { freshSchema } from './postgres-shared.ts'
import { openTestStore, type TestStore } from './postgres-store.ts'

export class AsWorker {
  private readonly server: () => Promise<string>
  private making: Promise<{ readonly roled: Roled; readonly server: string }> | null = null

  /** Nobody else may open test stores of this server in the same process: those have no roles. */
  constructor(server: () => Promise<string>) {
    this.server = server
  }

  async open(): Promise<TestStore & { readonly roled: Roled }> {
    this.making ??= this.make()
    const { roled, server } = await this.making
    // Who may log in is known once the first schema has the roles.
    const opened = await openTestStore({
      server,
      hears: true,
      url: roled.urlOf('worker'),
      onMade: (schema) => roled.grant(schema),
    })
    return { ...opened, roled }
  }

  /** What the contract is run on. */
  async subject(): Promise<Pick<TestStore, 'clock'> & { readonly store: Store & StoreAdmin }> {
    const { store, clock, schema, roled } = await this.open()
    const now = clock.expression
    const url = roled.urlOf('migrator')
    return {
      clock,
      store: rewrittenBy(store, () => openPostgresStore({ url, schema, now, listen: false, connections: 2 })),
    }
  }

  async drop(): Promise<void> {
    await (await this.making)?.roled.drop()
  }

  private async make(): Promise<{ readonly roled: Roled; readonly server: string }> {
    const server = await this.server()
    return { roled: await createRoles(server, (await freshSchema()).schema), server }
  }
}

/** The same store, whose payloads are rewritten by another one. */
function rewrittenBy(store: Store & StoreAdmin, migrator: () => Promise<StoreAdmin & Pick<Store, 'close'>>) {
  const rewritePayloads: StoreAdmin['rewritePayloads'] = async (request) => {
    const other = await migrator()
    try {
      return await other.rewritePayloads(request)
    } finally {
      await other.close()
    }
  }
  return new Proxy(store, {
    get(target, name) {
      if (name === 'rewritePayloads') return rewritePayloads
      const value: unknown = Reflect.get(target, name)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
}
