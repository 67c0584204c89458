// fast-check, as the property tests use it. The gate tries the same cases every time: whether a change may land must depend on
// the change, and not on luck. `npm run test:properties` draws others each time, and prints the seed of what it finds;
// `PROPERTY_SEED` sets one.

import fc from 'fast-check'

const seed = process.env['PROPERTY_SEED'] ?? ''
if (seed !== '') fc.configureGlobal({ seed: Number(seed) })

export { fc }
