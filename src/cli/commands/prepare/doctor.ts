// `holdfast doctor`: checks the invariants of a store, and names the violations.

import type { Command } from 'commander'
import { HoldfastError } from '../../../core/errors/error.ts'
import { examples, type Act } from '../../command-call.ts'
import { visible } from '../../../core/text/printable.ts'
import { shownStore } from '../../input/store-address.ts'
import { amount, padEnd } from '../../output/text.ts'

export function registerDoctor(program: Command, act: Act): void {
  const command = program
    .command('doctor')
    .summary('check the invariants of a store')
    .description(
      'Checks the invariants of every run in a store, and prints each one with ok or the ' +
        'runs that break it. Reads everything once and changes nothing; workers may continue meanwhile. Exits with code 70 if an ' +
        'invariant does not hold: then Holdfast has a defect, or the tables were changed by hand.',
    )
    .addHelpText('after', examples('doctor --store sqlite:app.db', 'doctor --store sqlite:app.db --json'))
  act(command, async (call) => {
    const { holdfast, store } = await call.open({ store: 'existing', onlyLooks: true, warnsOfRights: true })
    const { printer } = call
    const checks = await holdfast.doctor()
    const broken = checks.filter(({ offenders }) => offenders.length > 0)
    const width = Math.max(...checks.map(({ name }) => name.length))
    await printer.answer(
      { store: shownStore(store), isSound: broken.length === 0, checks },
      ...checks.map(({ name, offenders }) => {
        const text = offenders.length === 0 ? printer.paint('green', 'ok') : printer.paint('red', 'broken by')
        return [padEnd(name, width), text, ...offenders.map(visible)].join('  ')
      }),
    )
    if (broken.length === 0) return
    const names = broken.map(({ name }) => name)
    throw new HoldfastError(
      'BUG',
      `The store breaks ${amount(names.length, 'invariant')}: ${names.join(', ')}. Were rows changed by hand, by another program, ` +
        'or by a restore of some tables? If not, this is a defect of Holdfast: please report it.',
      { details: { names } },
    )
  })
}
