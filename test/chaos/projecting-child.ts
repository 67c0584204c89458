// A process that projects until it is killed, or one that has inputs decided and says when it is done. Started by
// projections.test.ts.

import { setTimeout } from 'node:timers/promises'
import { createHoldfast } from '../../src/index.ts'
import { counterOf, OwnTables } from '../holdfast/projections/read-model.ts'
import { openAt } from './projecting-store.ts'

const [role = '', address = '', name = '', count = '0'] = process.argv.slice(2)
const counter = counterOf()
const store = await openAt(address)
const silent = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }
const holdfast = await createHoldfast({ store, workflows: [counter], logger: silent })
if (role === 'project') {
  const tables = new OwnTables(store)
  for (const nth of ['1', '2', '3']) {
    const sums = { ...tables.projection(counter, { batch: 7 }), name: `sums${nth}` }
    const handlerOf = () => (event: unknown, tools: unknown) => {
      const { tx } = tools as { readonly tx: unknown }
      return tables.write(tx, event as { readonly by: number }, tools as never, nth)
    }
    await holdfast.project(
      { ...sums, handlerOf: (type) => (type === 'Added' ? handlerOf() : undefined) },
      { lease: '300ms' },
    )
  }
  console.log('projecting')
  await setTimeout(600_000)
}
for (let nth = 0; nth < Number(count); nth += 1) {
  await holdfast.execute(counter, { type: 'Add', id: `${nth % 5}`, by: 1 }, { commandId: `${name}-${nth}` })
  if (nth % 10 === 0) await setTimeout(20)
}
await holdfast.close()
await store.close()
