// `holdfast migrate`: creates the tables, or brings them up to date.

import type { Command } from 'commander'
import { examples, type Act } from '../call.ts'
import { shownStore } from '../store-address.ts'

export function registerMigrate(program: Command, act: Act): void {
  const command = program
    .command('migrate')
    .summary('create the tables of a store, or bring them up to date')
    .description(
      'Creates the tables of a store, or brings them up to date. Safe to run again and from many machines at once. Every ' +
        'Holdfast does the same when it opens; this is for those who want it done before they deploy.',
    )
    .addHelpText('after', examples('migrate --store sqlite:app.db'))
  act(command, async (call) => {
    // Opening is migrating.
    const { store } = await call.open({ store: 'creatable' })
    const address = shownStore(store)
    await call.printer.answer({ store: address, isCurrent: true }, `The tables of ${address} are up to date.`)
  })
}
